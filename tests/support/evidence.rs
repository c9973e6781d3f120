//! Evidence directories: one in which all ten links hold, to be spoilt in one way each.
//!
//! Two processes, ranks 0 and 1. Each drives route qkv (4 x 1536 x 4096, split) once eager and 16 times by replay, and o_proj (4 x 4096 x 1024, one
//! chunk) once, and plants a canary of 64 eager launches and 512 by replay. By hand: qkv needs 48 x 1 x 4 workgroups of two waves and 6 of 256
//! threads for its 6144 sums; o_proj needs 128 workgroups of two waves.

use std::collections::BTreeMap;
use std::path::Path;

use rlk_lint::probe::code_object::CodeObject;
use rlk_lint::probe::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::elf::Binary;

pub const CONTRACT: &str = "rlkernel.det_gemm.triton_mfma_rocm.v1";
pub const MONO: &str = "_mfma_gemm_kernel";
pub const PARTIAL: &str = "_mfma_gemm_split_partial_kernel";
pub const REDUCE: &str = "_mfma_gemm_split_reduce_kernel";
pub const PIDS: [u64; 2] = [101, 102];

/// One dispatch of a process: name, threads, workgroups, start.
pub type Dispatch = (String, u32, [u32; 3], u64);

#[derive(Clone)]
pub struct Evidence {
    /// Content by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Dispatches by process, written as a trace when sealed.
    pub dispatches: BTreeMap<u64, Vec<Dispatch>>,
    /// `metadata.config` of the trace.
    pub config: Value,
    /// Name of the device in the trace.
    pub agent: String,
    /// How the trace is written.
    pub format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Csv,
    Rocpd,
    Torch,
    /// The case brings its own.
    None,
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Base 32 without padding, as Triton names folders.
pub fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    let (mut held, mut bits) = (0u32, 0u32);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::try_from(held >> bits & 31).unwrap()]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        out.push(char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::try_from(held << (5 - bits) & 31).unwrap()]));
    }
    out
}

/// What a folder of the cache is made of.
#[derive(Clone)]
pub struct Candidate {
    pub kernel: &'static str,
    pub machine: u32,
    pub arch: &'static str,
    pub matrix: Vec<u32>,
    pub threads: u64,
    pub spills: u64,
    pub salt: u32,
    pub kpack: u64,
    pub k_width: u64,
    pub instr: [u64; 3],
    pub block_k: u64,
    pub layout: &'static str,
    pub ttgir: bool,
}

pub fn candidate(kernel: &'static str) -> Candidate {
    let reduce = kernel == REDUCE;
    Candidate {
        kernel,
        machine: 0x4c,
        arch: "gfx942",
        matrix: if reduce { vec![] } else { vec![0x61, 0x61] },
        threads: if reduce { 256 } else { 128 },
        spills: 0,
        salt: 1,
        kpack: 2,
        k_width: 8,
        instr: [16, 16, 16],
        block_k: 64,
        layout: "mma",
        ttgir: true,
    }
}

impl Candidate {
    pub fn binary(&self) -> Vec<u8> {
        let Self { kernel, machine, matrix, threads, spills, salt, .. } = self;
        Binary { kernel, machine: *machine, matrix, threads: *threads, spills: *spills, salt: *salt }.bytes()
    }

    /// Key of the cache: of the kernel alone, since a swapped binary keeps it.
    pub fn hash(&self) -> String {
        sha256(self.kernel.as_bytes())
    }

    pub fn folder(&self) -> String {
        base32(&Sha256::digest(self.kernel.as_bytes()))
    }

    fn ttgir(&self) -> String {
        let [m, n, k] = self.instr;
        let Self { k_width, block_k, layout, .. } = self;
        let mut text = format!(
            "#blocked = #ttg.blocked<{{sizePerThread = [1, 8], order = [1, 0]}}>\n#mma = #ttg.amd_mfma<{{version = 3, warpsPerCTA = [2, 1], instrShape = [{m}, {n}, {k}], isTransposed = true}}>\n"
        );
        if self.kernel != REDUCE {
            text.push_str(&format!(
                "  %0 = tt.dot %a, %b, %c : tensor<16x{block_k}xbf16, #ttg.dot_op<{{opIdx = 0, parent = #{layout}, kWidth = {k_width}}}>> * tensor<{block_k}x32xbf16, #ttg.dot_op<{{opIdx = 1, parent = #{layout}, kWidth = {k_width}}}>> -> tensor<16x32xf32, #{layout}>\n"
            ));
        }
        text
    }

    pub fn put(&self, evidence: &mut Evidence) {
        let folder = format!("cache/{}", self.folder());
        evidence.files.retain(|path, _| !path.starts_with(&folder));
        let name = self.kernel;
        let metadata = json!({
            "hash": self.hash(), "name": name, "target": {"backend": "hip", "arch": self.arch, "warp_size": 64}, "shared": 6144,
            "num_warps": self.threads / 64, "triton_version": "3.7.0", "kpack": self.kpack, "matrix_instr_nonkdim": 16,
        });
        let mut parts = vec![("json", metadata.to_string().into_bytes()), ("hsaco", self.binary())];
        if self.ttgir {
            parts.push(("ttgir", self.ttgir().into_bytes()));
        }
        let children: BTreeMap<String, String> = parts
            .iter()
            .map(|(kind, _)| (format!("{name}.{kind}"), format!("/where/it/was/made/{}/{name}.{kind}", self.folder())))
            .collect();
        for (kind, bytes) in parts {
            evidence.files.insert(format!("{folder}/{name}.{kind}"), bytes);
        }
        evidence.files.insert(format!("{folder}/__grp__{name}.json"), json!({ "child_paths": children }).to_string().into_bytes());
    }

    pub fn code_id(&self) -> String {
        CodeObject::read(&self.binary()).unwrap().code_id
    }
}

pub fn candidates() -> Vec<Candidate> {
    [MONO, PARTIAL, REDUCE].map(candidate).to_vec()
}

impl Evidence {
    pub fn good() -> Self {
        let mut evidence = Self {
            files: BTreeMap::new(),
            dispatches: BTreeMap::new(),
            config: json!({"kernel_rename": false, "minimum_output_data": 0, "kernel_filter_include": ".*"}),
            agent: "gfx942".to_owned(),
            format: Format::Json,
        };
        let gpu = |arch: &str, pci: &str| json!({"arch": arch, "pci": pci, "compute_units": 304});
        let answer = |arch: &str| json!({"tried": ["x"], "asked": "x", "devices": [gpu(arch, "0000:0c:00.0"), gpu(arch, "0000:22:00.0")]});
        let device = json!({
            "schema": "rlk-lint/device/v1", "masks": {}, "sysfs": answer("gfx942"), "hsa": answer("gfx942"), "hip": answer("gfx94"),
        });
        evidence.put("device.json", &device);
        let sources = json!([{"id": "rl-kernel", "commit": "a".repeat(40), "dirty": false, "sha256": "b".repeat(64)}]);
        let environment = json!({"RL_KERNEL_DET_GEMM_BACKEND": "triton_mfma"});
        let request = json!({
            "schema": "rlk-lint/request/v1", "label": "runner", "contract": CONTRACT, "arch": "gfx942", "processes": 2,
            "environment": environment, "sources": sources, "sources_after": sources,
            "libraries": {"libamdhip64.so.7": "c".repeat(64), "libtriton.so": "d".repeat(64)},
        });
        evidence.put("request.json", &request);
        let code: Vec<Value> =
            candidates().iter().map(|candidate| json!({"kernel": candidate.kernel, "code_id": candidate.code_id()})).collect();
        let tile = |route: &str, n: u64, k: u64| json!({"route": route, "n": n, "k": k, "m": [1, 64], "block_m": 16, "block_n": 32, "num_warps": 2});
        let baseline = json!({
            "schema": "rlk-lint/baseline/v1", "contract": CONTRACT, "arch": "gfx942", "triton": "3.7.0", "wavefront": 64, "chunk_k": 1024,
            "split_max_rows": 64, "kernels": {"mono": MONO, "partial": PARTIAL, "reduce": REDUCE}, "reduce": {"block": 1024, "threads": 256},
            "forbidden": ["Cijk_*", "_tree_gemm_kernel"], "tiles": [tile("qkv", 1536, 4096), tile("o_proj", 4096, 1024)],
            "rules": {"instructions": ["v_mfma_f32_16x16x16_bf16"], "instr_shape": [16, 16, 16], "k_width": 8, "block_k": 64, "vgpr_spills": 0},
            "code": code,
        });
        evidence.put("baseline.json", &baseline);
        evidence.put("reproduction.json", &json!({"schema": "rlk-lint/reproduction/v1", "triton": "3.7.0", "code": code}));
        for candidate in candidates() {
            candidate.put(&mut evidence);
            let binary = candidate.binary();
            evidence.files.insert(format!("recorder/objects/{}.hsaco", sha256(&binary)), binary);
        }
        for (rank, pid) in PIDS.into_iter().enumerate() {
            let lines = evidence.recording(u64::try_from(rank).unwrap(), pid);
            evidence.put_lines(&format!("recorder/{pid}-0.jsonl"), &lines);
            evidence.dispatches.insert(pid, dispatches());
        }
        let log = format!("start\n[RL-Kernel][route] mode=strict module=gemm requested=triton_mfma actual={CONTRACT} fallback=false\n");
        evidence.files.insert("drive.log".to_owned(), log.into_bytes());
        for pid in PIDS {
            evidence.put(&format!("readbacks/vllm-rollout-{pid}.json"), &readback());
        }
        let sample = |kind: &str, k: u64| {
            json!({"m": 4, "n": 96, "k": k, "sample": kind, "candidate": "16x32", "split": false, "bytes": 768,
                "reference": "e".repeat(64), "found": "e".repeat(64), "different_bytes": 0})
        };
        let samples = [sample("normal", 4096), sample("signed zeros", 4096), sample("subnormals", 1000), sample("cancellation", 4096)];
        evidence.put("numbers.json", &json!({"schema": "rlk-lint/numbers/v1", "samples": samples}));
        evidence
    }

    pub fn put(&mut self, path: &str, value: &Value) {
        self.files.insert(path.to_owned(), serde_json::to_vec(value).unwrap());
    }

    pub fn put_lines(&mut self, path: &str, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.files.insert(path.to_owned(), text.into_bytes());
    }

    /// Changes a JSON document.
    pub fn edit(&mut self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut value: Value = serde_json::from_slice(&self.files[path]).unwrap();
        change(&mut value);
        self.put(path, &value);
    }

    /// Changes the lines of a recording.
    pub fn edit_lines(&mut self, path: &str, change: impl FnOnce(&mut Vec<Value>)) {
        let text = String::from_utf8(self.files[path].clone()).unwrap();
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        change(&mut lines);
        self.put_lines(path, &lines);
    }

    fn recording(&self, rank: u64, pid: u64) -> Vec<Value> {
        let environment = json!({"RL_KERNEL_DET_GEMM_BACKEND": "triton_mfma"});
        let mut lines = vec![json!({
            "event": "start", "schema": "rlk-lint/recorder/v1", "pid": pid, "parent": 1, "environment": environment,
            "environment_at_start": environment,
        })];
        for candidate in candidates() {
            let constants = format!("[('a_ptr', '*bf16'), ('CHUNK_K', {})]", 1024);
            let specialization = json!({"name": candidate.kernel, "key": constants}).to_string();
            lines.push(json!({"event": "compile", "name": candidate.kernel, "specialization": specialization}));
            let digest = sha256(&candidate.binary());
            lines.push(json!({
                "event": "load", "name": candidate.kernel, "hash": candidate.hash(), "function": 7, "rank": rank, "world": 2, "files": {},
                "object": format!("objects/{digest}.hsaco"),
            }));
        }
        let count = |name: &str, capturing: bool, count: u64| json!({"name": name, "function": 7, "hash": "", "capturing": capturing, "count": count});
        lines.push(json!({"event": "launches", "rank": rank, "world": 2, "counts": [
            count(MONO, false, 1), count(PARTIAL, false, 1), count(PARTIAL, true, 1), count(REDUCE, false, 1), count(REDUCE, true, 1)]}));
        let step = |route: &str, n: u64, k: u64, phase: &str, calls: u64| json!({"event": "step", "route": route, "function": "linear", "m": 4, "n": n, "k": k, "phase": phase, "calls": calls});
        lines.push(step("qkv", 1536, 4096, "eager", 1));
        lines.push(step("qkv", 1536, 4096, "capture", 1));
        lines.push(step("qkv", 1536, 4096, "replay", 16));
        lines.push(step("o_proj", 4096, 1024, "eager", 1));
        lines.push(json!({"event": "replayed", "route": "qkv", "same_bytes": true}));
        lines.push(json!({"event": "canary", "when": "end", "launches": {"rlk_canary_eager": 64, "rlk_canary_replay": 512}}));
        let libraries = json!({"/opt/lib/libamdhip64.so.7": "c".repeat(64), "/venv/triton/libtriton.so": "d".repeat(64)});
        lines.push(json!({"event": "end", "rank": rank, "world": 2, "versions": {"triton": "3.7.0"}, "environment": environment, "libraries": libraries}));
        lines
    }

    /// Writes all files and a manifest that vouches for them.
    pub fn seal(&self, root: &Path) {
        let mut evidence = self.clone();
        match self.format {
            Format::Json => {
                let bytes = serde_json::to_vec(&self.rocprof()).unwrap();
                evidence.files.insert("trace/out_results.json".to_owned(), bytes);
            }
            Format::Csv => {
                for (pid, dispatches) in &self.dispatches {
                    evidence.files.insert(format!("trace/{pid}_kernel_trace.csv"), csv(dispatches).into_bytes());
                }
            }
            Format::Torch => {
                for (pid, dispatches) in &self.dispatches {
                    let bytes = serde_json::to_vec(&torch(dispatches)).unwrap();
                    evidence.files.insert(format!("trace/torch-{pid}.json"), bytes);
                }
            }
            Format::Rocpd => {
                std::fs::create_dir_all(root.join("trace")).unwrap();
                rocpd(&root.join("trace/out_results.db"), &self.dispatches, &self.agent);
                evidence.files.insert("trace/out_results.db".to_owned(), std::fs::read(root.join("trace/out_results.db")).unwrap());
            }
            Format::None => {}
        }
        let mut rows = Vec::new();
        for (path, bytes) in &evidence.files {
            let file = root.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, bytes).unwrap();
            rows.push(json!({"path": path, "role": role(path), "bytes": bytes.len(), "sha256": sha256(bytes)}));
        }
        std::fs::write(root.join("manifest.json"), json!({"schema": "rlk-lint/evidence/v1", "files": rows}).to_string()).unwrap();
    }

    fn rocprof(&self) -> Value {
        let mut names: Vec<&str> = self.dispatches.values().flatten().map(|(name, ..)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let id = |name: &str| names.iter().position(|other| *other == name).unwrap() + 1;
        let symbols: Vec<Value> =
            names.iter().map(|name| json!({"kernel_id": id(name), "code_object_id": 1, "kernel_name": format!("{name}.kd")})).collect();
        let axes = |[x, y, z]: [u32; 3]| json!({"x": x, "y": y, "z": z});
        let tools: Vec<Value> = self
            .dispatches
            .iter()
            .map(|(pid, dispatches)| {
                let records: Vec<Value> = dispatches
                    .iter()
                    .enumerate()
                    .map(|(number, (name, threads, [x, y, z], start))| {
                        json!({
                            "size": 136, "kind": 11, "operation": 3, "thread_id": pid, "correlation_id": {"internal": number, "external": 0},
                            "start_timestamp": start, "end_timestamp": start + 5,
                            "dispatch_info": {
                                "size": 72, "agent_id": {"handle": 4}, "queue_id": {"handle": 1}, "kernel_id": id(name), "dispatch_id": number,
                                "private_segment_size": 0, "group_segment_size": 6144, "workgroup_size": axes([*threads, 1, 1]),
                                "grid_size": axes([x * threads, *y, *z]),
                            },
                        })
                    })
                    .collect();
                json!({
                    "buffer_records": {"kernel_dispatch": records, "memory_copy": []}, "kernel_symbols": symbols,
                    "agents": [{"id": {"handle": 4}, "type": 2, "name": self.agent, "gfx_target_version": 90402}],
                    "metadata": {"pid": pid, "node": {}, "config": self.config, "init_time": 1, "fini_time": 9},
                })
            })
            .collect();
        json!({ "rocprofiler-sdk-tool": tools })
    }
}

/// What one process executes, in order.
pub fn dispatches() -> Vec<Dispatch> {
    let mut list: Vec<Dispatch> = Vec::new();
    let mut push = |name: &str, threads: u32, blocks: [u32; 3]| {
        let start = 1000 + 10 * u64::try_from(list.len()).unwrap();
        list.push((name.to_owned(), threads, blocks, start));
    };
    for _ in 0..64 {
        push("rlk_canary_eager", 256, [1, 1, 1]);
    }
    push("elementwise_kernel", 256, [48, 1, 1]);
    for _ in 0..17 {
        push(PARTIAL, 128, [48, 1, 4]);
        push(REDUCE, 256, [6, 1, 1]);
    }
    push(MONO, 128, [128, 1, 1]);
    for _ in 0..512 {
        push("rlk_canary_replay", 256, [1, 1, 1]);
    }
    list
}

pub fn readback() -> Value {
    json!({
        "framework": "vllm", "target": "rollout", "installed_hooks": {"attention": "hook.v1"}, "fallbacks": [],
        "operators": {"attention": {
            "case_id": "R/R", "implementation": "rl_kernel", "backend_id": "rlkernel.rocm.attention", "call_count": 3,
            "execution_mode": "compiled_hip_graph",
            "provenance": {"fallback": false, "actual_backend": "triton", "reference_only": false,
                "deterministic_projection": {"backend_id": "rlkernel.rocm.triton_det_gemm", "deterministic": true, "split_k": false}},
        }},
    })
}

fn role(path: &str) -> &'static str {
    match path {
        "device.json" => "device",
        "request.json" => "request",
        "baseline.json" => "baseline",
        "reproduction.json" => "reproduction",
        "numbers.json" => "numbers",
        _ if path.starts_with("cache/") => "cache",
        _ if path.starts_with("recorder/objects/") => "object",
        _ if path.starts_with("recorder/") => "recorder",
        _ if path.starts_with("readbacks/") => "readback",
        _ if path.ends_with(".log") => "log",
        _ if path.starts_with("trace/torch-") => "torch-trace",
        _ if path.ends_with(".csv") => "rocprof-csv",
        _ if path.ends_with(".db") => "rocpd",
        _ if path.starts_with("trace/") => "rocprof-json",
        _ => "note",
    }
}

/// Header of rocprofv3 1.0.0.
pub const CSV_HEADER: &str = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"";

pub fn csv(dispatches: &[Dispatch]) -> String {
    let mut text = format!("{CSV_HEADER}\n");
    for (number, (name, threads, [x, y, z], start)) in dispatches.iter().enumerate() {
        text.push_str(&format!(
            "\"KERNEL_DISPATCH\",\"Agent 4\",1,0,7,{number},9,\"{name}\",{number},{start},{},0,0,64,0,32,{threads},1,1,{},{y},{z}\n",
            start + 5,
            x * threads
        ));
    }
    text
}

pub fn torch(dispatches: &[Dispatch]) -> Value {
    let mut events = vec![json!({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.5, "args": {"stream": "none", "grid": "odd"}})];
    for (name, threads, blocks, start) in dispatches {
        let [_, _, _] = blocks;
        events.push(json!({
            "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 1, "ts": *start as f64 / 1000.0, "dur": 1.0,
            "args": {"device": 0, "stream": 1, "correlation": 5, "kind": "Dispatch Kernel", "grid": blocks, "block": [threads, 1, 1]},
        }));
    }
    json!({
        "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4, "warpSize": 64}],
        "hip_runtime_version": 71, "traceEvents": events,
    })
}

/// A database with the view that is read, over tables as far as the view needs them.
pub fn rocpd(path: &Path, dispatches: &BTreeMap<u64, Vec<Dispatch>>, agent: &str) {
    let mut database = rusqlite::Connection::open(path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE rocpd_info_agent (id INTEGER PRIMARY KEY, absolute_index INTEGER, name TEXT);
             CREATE TABLE rocpd_kernel_dispatch (id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, kernel TEXT, queue_id INTEGER,
                start INTEGER, wx INTEGER, gx INTEGER, gy INTEGER, gz INTEGER);
             CREATE VIEW kernels AS SELECT K.id, K.kernel AS name, K.pid, A.absolute_index AS agent_abs_index, K.queue_id, K.start,
                K.wx AS workgroup_x, 1 AS workgroup_y, 1 AS workgroup_z, K.gx AS grid_x, K.gy AS grid_y, K.gz AS grid_z
                FROM rocpd_kernel_dispatch K INNER JOIN rocpd_info_agent A ON A.id = K.agent_id;",
        )
        .unwrap();
    database.execute("INSERT INTO rocpd_info_agent VALUES (1, 4, ?1)", [agent]).unwrap();
    let transaction = database.transaction().unwrap();
    for (pid, list) in dispatches {
        for (name, threads, [x, y, z], start) in list {
            transaction
                .execute(
                    "INSERT INTO rocpd_kernel_dispatch (pid, agent_id, kernel, queue_id, start, wx, gx, gy, gz) VALUES (?1, 1, ?2, 1, ?3, ?4, ?5, ?6, ?7)",
                    rusqlite::params![*pid as i64, format!("{name}.kd"), *start as i64, threads, x * threads, y, z],
                )
                .unwrap();
        }
    }
    transaction.commit().unwrap();
}
