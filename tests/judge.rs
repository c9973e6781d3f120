//! `probe judge`: the good evidence passes with ten green links, and every way to be bad fails with its own link, reason and exit code.

use std::collections::BTreeSet;

use rlk_lint::probe::judge::link::{Link, State};
use rlk_lint::probe::judge::{Judgement, judge};
use serde_json::{Value, json};

use crate::evidence::{
    CSV_HEADER, Candidate, Evidence, Format, MONO, PARTIAL, REDUCE, candidate, csv, dispatches, readback, sha256, torch,
};

fn judged(evidence: &Evidence) -> Judgement {
    let folder = tempfile::tempdir().unwrap();
    evidence.seal(folder.path());
    judge(folder.path()).unwrap()
}

/// Links that did not pass, with their state and reasons.
fn told(judged: &Judgement) -> Vec<String> {
    let problems = judged.chain.links.iter().flat_map(|link| &link.problems);
    let told: BTreeSet<String> =
        problems.map(|problem| format!("{:?} {} {}", problem.link, problem.state.word(), problem.reason)).collect();
    told.into_iter().collect()
}

/// The evidence spoilt by `change` tells exactly `expected` and has the verdict that follows from it.
fn spoilt(name: &str, expected: &[&str], change: impl FnOnce(&mut Evidence)) {
    let mut evidence = Evidence::good();
    change(&mut evidence);
    let judged = judged(&evidence);
    assert_eq!(told(&judged), expected, "{name}\n{}", judged.human());
    let worst = ["unsupported", "mismatch", "incomplete"].into_iter().find(|state| expected.iter().any(|told| told.contains(state)));
    assert_eq!(judged.chain.verdict.word(), worst.unwrap_or("pass"), "{name}");
}

fn cache(change: impl FnOnce(&mut Candidate)) -> impl FnOnce(&mut Evidence) {
    move |evidence| {
        let mut candidate = candidate(MONO);
        change(&mut candidate);
        candidate.put(evidence);
        // Loaded, checked and reproduced alike, so that what the code itself is wrong in is all that is left.
        let binary = candidate.binary();
        let object = format!("objects/{}.hsaco", sha256(&binary));
        evidence.files.insert(format!("recorder/{object}"), binary);
        for pid in crate::evidence::PIDS {
            evidence.edit_lines(&format!("recorder/{pid}-0.jsonl"), |lines| {
                for line in lines.iter_mut().filter(|line| line["event"] == "load" && line["name"] == MONO) {
                    line["object"] = json!(object);
                }
            });
        }
        for path in ["baseline.json", "reproduction.json"] {
            evidence.edit(path, |document| {
                for code in document["code"].as_array_mut().unwrap().iter_mut().filter(|code| code["kernel"] == MONO) {
                    code["code_id"] = json!(candidate.code_id());
                }
            });
        }
    }
}

#[test]
fn the_good_evidence_has_ten_green_links_in_every_format() {
    for format in [Format::Json, Format::Csv, Format::Rocpd, Format::Torch] {
        let evidence = Evidence { format, ..Evidence::good() };
        let judged = judged(&evidence);
        assert_eq!(told(&judged), [""; 0], "{}", judged.human());
        assert_eq!(judged.chain.verdict, State::Pass);
        assert_eq!(judged.chain.links.iter().filter(|link| link.state == State::Pass).count(), 10);
        // 2 processes: 17 partials and 17 sums each on qkv, one kernel each on o_proj.
        let seen: Vec<(&str, u64)> = judged.observed.routes.iter().map(|(route, seen)| (route.as_str(), seen.dispatches)).collect();
        assert_eq!(seen, [("o_proj", 2), ("qkv", 68)]);
        assert!(judged.observed.complete);
    }
}

#[test]
fn devices_and_requests_that_are_not_those_of_the_contract() {
    spoilt("no KFD", &["L0 unsupported no-device"], |evidence| {
        evidence.edit("device.json", |device| {
            for witness in ["sysfs", "hsa", "hip"] {
                device[witness] = json!({"tried": ["x"], "asked": null, "devices": []});
            }
        });
    });
    spoilt("gfx950", &["L0 unsupported other-device"], |evidence| {
        evidence.edit("device.json", |device| {
            for (witness, arch) in [("sysfs", "gfx950"), ("hsa", "gfx950"), ("hip", "gfx95")] {
                for gpu in device[witness]["devices"].as_array_mut().unwrap() {
                    gpu["arch"] = json!(arch);
                }
            }
        });
    });
    spoilt("witnesses disagree", &["L0 unsupported witnesses-disagree"], |evidence| {
        evidence.edit("device.json", |device| device["hip"]["devices"].as_array_mut().unwrap().truncate(1));
    });
    spoilt("no device report", &["L0 incomplete no-device-report"], |evidence| drop(evidence.files.remove("device.json")));
    spoilt("rehearsal", &["L0 unsupported rehearsal"], |evidence| {
        evidence.edit("request.json", |request| request["label"] = json!("rehearsal"));
    });
    let pin = |value: Value| {
        move |evidence: &mut Evidence| {
            evidence.edit("request.json", |request| request["environment"] = value.clone());
            for pid in crate::evidence::PIDS {
                evidence.edit_lines(&format!("recorder/{pid}-0.jsonl"), |lines| {
                    for line in lines.iter_mut().filter(|line| line.get("environment").is_some()) {
                        line["environment"] = value.clone();
                    }
                    lines[0]["environment_at_start"] = value.clone();
                });
            }
        }
    };
    spoilt("auto", &["L1 mismatch request-not-pinned"], pin(json!({"RL_KERNEL_DET_GEMM_BACKEND": "auto"})));
    spoilt("unset", &["L1 mismatch request-not-pinned"], pin(json!({})));
    spoilt("the tree", &["L1 mismatch request-not-pinned"], pin(json!({"RL_KERNEL_DET_GEMM_BACKEND": "triton_tree"})));
    spoilt("dirty", &["L1 mismatch source-dirty", "L1 mismatch sources-changed"], |evidence| {
        evidence.edit("request.json", |request| request["sources"][0]["dirty"] = json!(true));
    });
    spoilt("changed", &["L1 mismatch sources-changed"], |evidence| {
        evidence.edit("request.json", |request| request["sources_after"][0]["sha256"] = json!("0"));
    });
    spoilt("forbidden variable", &["L2 mismatch forbidden-variable"], |evidence| {
        evidence.edit_lines("recorder/102-0.jsonl", |lines| lines[0]["environment"]["TRITON_KERNEL_OVERRIDE"] = json!("1"));
    });
    spoilt("variable changed on the way", &["L2 mismatch environment-changed"], |evidence| {
        evidence.edit_lines("recorder/101-0.jsonl", |lines| {
            lines.last_mut().unwrap()["environment"]["RL_KERNEL_DET_GEMM_BACKEND"] = json!("triton_tree");
        });
    });
    spoilt("other library", &["L2 mismatch library-differs"], |evidence| {
        evidence.edit_lines("recorder/101-0.jsonl", |lines| {
            lines.last_mut().unwrap()["libraries"]["/opt/lib/libamdhip64.so.7"] = json!("f".repeat(64));
        });
    });
    spoilt("library that nobody froze", &["L2 mismatch library-not-frozen"], |evidence| {
        evidence.edit_lines("recorder/101-0.jsonl", |lines| {
            lines.last_mut().unwrap()["libraries"]["/torch/lib/libroctracer64.so"] = json!("f".repeat(64));
        });
    });
    spoilt("versions", &["L2 mismatch versions-disagree"], |evidence| {
        evidence.edit_lines("recorder/101-0.jsonl", |lines| lines.last_mut().unwrap()["versions"]["triton"] = json!("3.9.0"));
    });
}

#[test]
fn code_that_is_not_what_the_contract_wants() {
    spoilt("kpack 1", &["L4 mismatch kwidth-differs"], cache(|candidate| (candidate.kpack, candidate.k_width) = (1, 4)));
    spoilt(
        "BLOCK_K 16 on 3.9: metadata says kpack 2",
        &["L3 mismatch cache-contradiction", "L4 mismatch block-k-differs", "L4 mismatch kwidth-differs"],
        cache(|candidate| (candidate.block_k, candidate.k_width) = (16, 4)),
    );
    spoilt(
        "nonkdim 32 or 0",
        &["L4 mismatch instr-shape-differs", "L4 mismatch matrix-instruction-differs"],
        cache(|candidate| (candidate.matrix, candidate.instr) = (vec![0x60], [32, 32, 8])),
    );
    spoilt(
        "nonkdim 4",
        &["L4 mismatch dot-without-matrix-layout", "L4 mismatch matrix-instruction-differs"],
        cache(|candidate| {
            (candidate.matrix, candidate.layout) = (vec![], "blocked");
        }),
    );
    for (machine, arch, opcode) in [(0x4f, "gfx950", 0x35), (0x3f, "gfx90a", 0x67)] {
        spoilt(
            arch,
            &["L4 mismatch code-for-other-processor", "L4 mismatch matrix-instruction-differs"],
            cache(|candidate| {
                (candidate.machine, candidate.arch, candidate.matrix) = (machine, arch, vec![opcode]);
            }),
        );
    }
    spoilt(
        "gfx1100",
        &["L4 mismatch code-for-other-processor", "L4 mismatch dot-without-matrix-layout", "L4 mismatch matrix-instruction-differs"],
        cache(|candidate| (candidate.machine, candidate.arch, candidate.matrix, candidate.layout) = (0x41, "gfx1100", vec![], "blocked")),
    );
    spoilt("spills", &["L4 mismatch code-spills"], cache(|candidate| candidate.spills = 30));
    spoilt("missing ttgir", &["L4 incomplete ttgir-absent"], cache(|candidate| candidate.ttgir = false));
    spoilt("swapped binary", &["L5 mismatch code-not-reproduced", "L6 mismatch code-not-in-cache"], |evidence| {
        Candidate { salt: 2, ..candidate(MONO) }.put(evidence);
    });
    spoilt("swapped binary that was loaded", &["L5 mismatch code-not-reproduced", "L6 mismatch code-not-checked"], |evidence| {
        let original: Value = serde_json::from_slice(&evidence.files["baseline.json"]).unwrap();
        let reproduction = evidence.files["reproduction.json"].clone();
        cache(|candidate| candidate.salt = 2)(evidence);
        evidence.put("baseline.json", &original);
        evidence.files.insert("reproduction.json".to_owned(), reproduction);
    });
    spoilt("override-poisoned cache", &["L3 mismatch forbidden-variable-in-cache"], |evidence| {
        let path = format!("cache/{}/{MONO}.json", candidate(MONO).folder());
        evidence.edit(&path, |metadata| metadata["LLVM_PASS_PLUGIN_PATH"] = json!("/x.so"));
    });
    spoilt("folder of another key", &["L3 mismatch cache-contradiction"], |evidence| {
        let path = format!("cache/{}/{MONO}.json", candidate(MONO).folder());
        evidence.edit(&path, |metadata| metadata["hash"] = json!("0".repeat(64)));
    });
    spoilt("missing binary", &["L3 incomplete cache-unread", "L6 incomplete code-not-in-cache"], |evidence| {
        let path = format!("cache/{}/{MONO}.hsaco", candidate(MONO).folder());
        evidence.files.remove(&path);
    });
    spoilt("truncated binary", &["L3 incomplete cache-unread", "L6 incomplete code-not-in-cache"], |evidence| {
        let path = format!("cache/{}/{MONO}.hsaco", candidate(MONO).folder());
        evidence.files.get_mut(&path).unwrap().truncate(100);
    });
    spoilt("partial compiled without its sum", &["L3 mismatch candidate-missing", "L6 incomplete code-not-in-cache"], |evidence| {
        let folder = format!("cache/{}", candidate(REDUCE).folder());
        evidence.files.retain(|path, _| !path.starts_with(&folder));
    });
    spoilt("other chunk", &["L4 mismatch chunk-k-differs"], |evidence| {
        evidence.edit_lines("recorder/101-0.jsonl", |lines| {
            let line = lines.iter_mut().find(|line| line["event"] == "compile" && line["name"] == MONO).unwrap();
            line["specialization"] = json!(json!({"name": MONO, "key": "[('CHUNK_K', 512)]"}).to_string());
        });
    });
    spoilt("other Triton", &["L5 incomplete other-triton"], |evidence| {
        evidence.edit("reproduction.json", |made| made["triton"] = json!("3.9.0"));
    });
    spoilt("not reproduced", &["L5 incomplete no-reproduction"], |evidence| drop(evidence.files.remove("reproduction.json")));
    spoilt("baseline of another contract", &["L4 mismatch baseline-of-other-contract"], |evidence| {
        evidence.edit("baseline.json", |baseline| baseline["contract"] = json!("rlkernel.det_gemm.triton_tree.v1"));
    });
}

#[test]
fn processes_that_were_not_recorded_as_declared() {
    spoilt("one rank missing", &["L6 incomplete rank-missing", "L7 incomplete process-not-recorded"], |evidence| {
        evidence.files.remove("recorder/102-0.jsonl");
    });
    spoilt("one rank too many", &["L6 mismatch rank-unexpected"], |evidence| {
        evidence.edit("request.json", |request| request["processes"] = json!(1));
    });
    spoilt(
        "cut off",
        &["L6 incomplete rank-missing", "L6 incomplete recording-unreadable", "L7 incomplete process-not-recorded"],
        |evidence| {
            let bytes = evidence.files.get_mut("recorder/102-0.jsonl").unwrap();
            bytes.truncate(bytes.len() - 10);
        },
    );
    spoilt("killed", &["L6 incomplete recording-cut-off"], |evidence| {
        evidence.edit_lines("recorder/102-0.jsonl", |lines| drop(lines.pop()));
    });
    spoilt("trouble", &["L6 incomplete recorder-trouble"], |evidence| {
        evidence.edit_lines("recorder/102-0.jsonl", |lines| lines.insert(1, json!({"event": "trouble", "where": "load", "error": "x"})));
    });
    spoilt("load not recorded", &["L6 incomplete load-not-recorded"], |evidence| {
        evidence.edit_lines("recorder/102-0.jsonl", |lines| lines.retain(|line| line["event"] != "load" || line["name"] != REDUCE));
    });
    spoilt("binary not kept", &["L6 incomplete binary-absent"], |evidence| {
        let digest = sha256(&candidate(MONO).binary());
        evidence.files.remove(&format!("recorder/objects/{digest}.hsaco"));
    });
    spoilt(
        "nothing recorded",
        &[
            "L2 incomplete no-evidence",
            "L6 incomplete rank-missing",
            "L7 incomplete nothing-launched",
            "L7 incomplete process-not-recorded",
            "L7 incomplete route-not-observed",
        ],
        |evidence| {
            evidence.files.retain(|path, _| !path.ends_with(".jsonl"));
        },
    );
}

#[test]
fn what_the_device_executed_against_what_was_requested() {
    let both =
        |change: fn(&mut Vec<crate::evidence::Dispatch>)| move |evidence: &mut Evidence| evidence.dispatches.values_mut().for_each(change);
    spoilt(
        "canary 448 of 512",
        &["L7 incomplete canary-incomplete"],
        both(|list| {
            let mut left = 448;
            list.retain(|(name, ..)| {
                name != "rlk_canary_replay" || {
                    left -= 1;
                    left >= 0
                }
            });
        }),
    );
    spoilt(
        "canary exceeded",
        &["L7 incomplete canary-exceeded"],
        both(|list| {
            let again = list[0].clone();
            list.push(again);
        }),
    );
    spoilt("no canary", &["L7 incomplete canary-absent"], |evidence| {
        evidence.edit_lines("recorder/101-0.jsonl", |lines| lines.retain(|line| line["event"] != "canary"));
    });
    spoilt(
        "empty trace",
        &[
            "L7 incomplete canary-incomplete",
            "L7 incomplete dispatches-not-seen",
            "L7 incomplete route-not-observed",
            "L7 incomplete trace-empty",
        ],
        both(Vec::clear),
    );
    spoilt(
        "a replayed kernel was lost",
        &["L7 incomplete canary-incomplete", "L7 incomplete dispatches-not-seen"],
        both(|list| {
            list.retain(|(name, .., start)| name != "rlk_canary_replay" || *start % 2 == 1);
            let at = list.iter().rposition(|(name, ..)| name == PARTIAL).unwrap();
            list.drain(at..at + 2);
        }),
    );
    spoilt(
        "a replay did not run",
        &["L7 mismatch dispatches-missing"],
        both(|list| {
            let at = list.iter().rposition(|(name, ..)| name == PARTIAL).unwrap();
            list.drain(at..at + 2);
        }),
    );
    spoilt(
        "partial without its sum",
        &["L7 mismatch dispatches-missing", "L7 mismatch partial-without-reduce"],
        both(|list| {
            let at = list.iter().position(|(name, ..)| name == REDUCE).unwrap();
            list.remove(at);
        }),
    );
    spoilt(
        "sum before its partial",
        &["L7 mismatch partial-without-reduce"],
        both(|list| {
            let at = list.iter().position(|(name, ..)| name == PARTIAL).unwrap();
            let (one, other) = (list[at].3, list[at + 1].3);
            (list[at].3, list[at + 1].3) = (other, one);
        }),
    );
    spoilt(
        "other tile",
        &[
            "L7 incomplete route-not-observed",
            "L7 mismatch dispatches-missing",
            "L7 mismatch dispatches-unrequested",
            "L7 mismatch geometry-underivable",
        ],
        both(|list| {
            list.iter_mut().filter(|(name, ..)| name == MONO).for_each(|dispatch| dispatch.2 = [64, 1, 1]);
        }),
    );
    spoilt(
        "a call that nobody requested",
        &["L7 mismatch dispatches-unrequested"],
        both(|list| {
            let again = list.iter().find(|(name, ..)| name == MONO).unwrap().clone();
            list.push(again);
        }),
    );
    spoilt(
        "hipBLASLt in the window",
        &["L7 mismatch forbidden-kernel", "L8 mismatch claim-contradicted"],
        both(|list| {
            list.push(("Cijk_Alik_Bljk_BBS_BH".to_owned(), 256, [4, 1, 1], 1700));
        }),
    );
    spoilt(
        "hipBLASLt after the family",
        &[],
        both(|list| {
            list.push(("Cijk_Alik_Bljk_BBS_BH".to_owned(), 256, [4, 1, 1], 900_000));
        }),
    );
    spoilt(
        "the tree in place of the family, with fallback=false",
        &[
            "L7 incomplete route-not-observed",
            "L7 mismatch dispatches-missing",
            "L7 mismatch forbidden-kernel",
            "L8 mismatch claim-contradicted",
        ],
        both(|list| {
            for (name, ..) in list.iter_mut().filter(|(name, ..)| name.starts_with("_mfma")) {
                "_tree_gemm_kernel".clone_into(name);
            }
        }),
    );
    spoilt("one process not traced", &["L7 incomplete process-not-traced"], |evidence| drop(evidence.dispatches.remove(&102)));
    spoilt("another device in the trace", &["L7 mismatch wrong-device-in-trace"], |evidence| "gfx950".clone_into(&mut evidence.agent));
    spoilt("a third process ran the family", &["L7 incomplete process-not-recorded"], |evidence| {
        evidence.dispatches.insert(103, dispatches());
    });
    spoilt("no trace", &["L7 incomplete no-trace", "L7 incomplete process-not-traced", "L7 incomplete route-not-observed"], |evidence| {
        evidence.format = Format::None;
    });
    // A kernel that the request allows is no fault.
    let mut evidence = Evidence::good();
    both(|list| list.push(("Cijk_rope".to_owned(), 256, [4, 1, 1], 1700)))(&mut evidence);
    evidence.edit("request.json", |request| request["allowed"] = json!(["Cijk_ro*"]));
    assert_eq!(told(&judged(&evidence)), [""; 0]);
}

#[test]
fn collections_that_hide_something_are_no_observation() {
    let refused = ["L7 incomplete no-trace", "L7 incomplete process-not-traced", "L7 incomplete route-not-observed"];
    let with = |reason: &str| {
        let mut told: Vec<String> = refused.iter().map(|told| (*told).to_owned()).collect();
        told.push(format!("L7 incomplete {reason}"));
        told.sort();
        told
    };
    let check = |name: &str, reason: &str, change: &dyn Fn(&mut Evidence)| {
        let expected = with(reason);
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        spoilt(name, &expected, |evidence| change(evidence));
    };
    for (switch, value, reason) in [
        ("kernel_rename", json!(true), "kernels-renamed"),
        ("truncate", json!(1), "kernels-truncated"),
        ("minimum_output_data", json!(4096), "collection-drops-small-files"),
        ("collection_periods", json!([{"delay": 1}]), "collection-timed"),
        ("kernel_filter_include", json!("mfma"), "collection-filtered"),
        ("kernel_filter_exclude", json!("Cijk"), "collection-filtered"),
    ] {
        check(switch, reason, &|evidence| evidence.config[switch] = value.clone());
    }
    let own = |name: &'static str, bytes: Vec<u8>| {
        move |evidence: &mut Evidence| {
            evidence.format = Format::None;
            evidence.files.insert(name.to_owned(), bytes.clone());
        }
    };
    let mut whole = Evidence::good();
    let folder = tempfile::tempdir().unwrap();
    whole.format = Format::Json;
    whole.seal(folder.path());
    let text = std::fs::read(folder.path().join("trace/out_results.json")).unwrap();
    check("truncated JSON", "trace-truncated", &own("trace/out_results.json", text[..text.len() - 7].to_vec()));
    check("foreign JSON", "trace-foreign", &own("trace/out_results.json", b"{}".to_vec()));
    let v1 = "\"Index\",\"KernelName\",\"gpu-id\",\"queue-id\",\"pid\",\"grd\",\"wgr\"\n0,\"k\",0,0,1,64,64\n";
    check("rocprof v1", "rocprof-old", &own("trace/101_results.csv", v1.into()));
    let v2 = "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Kernel_Name\n1,1,1,1,1,64,64,0,\"k\"\n";
    check("rocprof v2", "rocprof-old", &own("trace/101_results.csv", v2.into()));
    let lines = csv(&dispatches());
    check("truncated CSV", "trace-truncated", &own("trace/101_kernel_trace.csv", lines.as_bytes()[..lines.len() - 3].to_vec()));
    check("column twice", "trace-foreign", &own("trace/101_kernel_trace.csv", format!("{CSV_HEADER},\"Kind\"\n").into()));
    check("column missing", "trace-foreign", &own("trace/101_kernel_trace.csv", lines.replacen("Grid_Size_Z", "Other", 1).into()));
    check("fields missing", "trace-unreadable", &own("trace/101_kernel_trace.csv", format!("{CSV_HEADER}\n1,2\n").into()));
    check("process not named", "trace-without-process", &own("trace/kernel_trace.csv", lines.clone().into()));
    check("no database", "trace-foreign", &own("trace/out.db", b"SQLite? no".repeat(100)));
    whole.format = Format::Rocpd;
    let folder = tempfile::tempdir().unwrap();
    whole.seal(folder.path());
    let bytes = std::fs::read(folder.path().join("trace/out_results.db")).unwrap();
    check("truncated database", "trace-truncated", &own("trace/out.db", bytes[..bytes.len() / 2].to_vec()));
    check("trace of nobody", "trace-foreign", &own("trace/torch-101.json", br#"{"traceEvents": []}"#.to_vec()));
    spoilt("grids missing", &["L7 incomplete dispatches-not-seen", "L7 incomplete geometry-unknown"], |evidence| {
        evidence.format = Format::None;
        for pid in crate::evidence::PIDS {
            let mut trace = torch(&dispatches());
            let events = trace["traceEvents"].as_array_mut().unwrap();
            for event in events.iter_mut().filter(|event| event["name"] == PARTIAL) {
                event["args"].as_object_mut().unwrap().remove("grid");
            }
            evidence.put(&format!("trace/torch-{pid}.json"), &trace);
        }
    });
}

#[test]
fn claims_and_numbers_can_fail_a_run_and_never_pass_one() {
    let log = |line: &'static str| {
        move |evidence: &mut Evidence| drop(evidence.files.insert("drive.log".to_owned(), format!("{line}\n").into_bytes()))
    };
    spoilt(
        "requested=auto",
        &["L8 mismatch claim-requested-auto"],
        log("[RL-Kernel][route] mode=strict module=gemm requested=auto actual=rlkernel.det_gemm.triton_mfma_rocm.v1 fallback=false"),
    );
    spoilt("fallback", &["L8 mismatch fallback-claimed"], log("[RL-Kernel][route] framework=vllm module=attention fallback=true"));
    spoilt(
        "other contract",
        &["L8 mismatch claim-other-contract"],
        log("[RL-Kernel][route] module=gemm requested=triton_mfma actual=rlkernel.det_gemm.triton_tree.v1 fallback=false"),
    );
    spoilt("said twice", &["L8 mismatch route-line-twice"], log("[RL-Kernel][route] fallback=true fallback=false"));
    let second = |change: fn(&mut Value)| {
        move |evidence: &mut Evidence| {
            let mut bad = readback();
            change(&mut bad);
            evidence.put("readbacks/vllm-rollout-102.json", &bad);
        }
    };
    spoilt(
        "two readbacks, one with a fallback",
        &["L8 mismatch fallback-claimed"],
        second(|bad| bad["operators"]["attention"]["provenance"]["fallback"] = json!(true)),
    );
    spoilt(
        "two readbacks that disagree",
        &["L8 mismatch readbacks-disagree"],
        second(|bad| bad["operators"]["attention"]["execution_mode"] = json!("eager")),
    );
    spoilt(
        "fallback not stated",
        &["L8 incomplete fallback-not-stated"],
        second(|bad| {
            bad["operators"]["attention"]["provenance"].as_object_mut().unwrap().remove("fallback");
        }),
    );
    spoilt("never called", &["L8 incomplete operator-not-called"], second(|bad| bad["operators"]["attention"]["call_count"] = json!(0)));
    spoilt("hook missing", &["L8 mismatch hook-not-installed"], second(|bad| bad["installed_hooks"] = json!({})));
    spoilt("no claims", &["L8 incomplete no-evidence"], |evidence| {
        evidence.files.retain(|path, _| !path.starts_with("readbacks/") && path != "drive.log");
    });
    spoilt("bits differ", &["L9 mismatch candidate-bits-differ"], |evidence| {
        evidence.edit("numbers.json", |numbers| numbers["samples"][1]["different_bytes"] = json!(2));
    });
    spoilt("no ragged sum", &["L9 incomplete samples-missing"], |evidence| {
        evidence.edit("numbers.json", |numbers| numbers["samples"][2]["k"] = json!(2048));
    });
    spoilt("part of the bytes", &["L9 incomplete sample-incomplete"], |evidence| {
        evidence.edit("numbers.json", |numbers| numbers["samples"][2]["bytes"] = json!(700));
    });
    spoilt("not compared", &["L9 incomplete no-numbers"], |evidence| drop(evidence.files.remove("numbers.json")));
    spoilt("replay differs", &["L9 mismatch replay-differs"], |evidence| {
        evidence.edit_lines("recorder/101-0.jsonl", |lines| {
            lines.iter_mut().filter(|line| line["event"] == "replayed").for_each(|line| line["same_bytes"] = json!(false));
        });
    });
}

#[test]
fn a_directory_that_nobody_vouches_for() {
    let judged_after = |change: &dyn Fn(&std::path::Path)| {
        let folder = tempfile::tempdir().unwrap();
        Evidence::good().seal(folder.path());
        change(folder.path());
        told(&judge(folder.path()).unwrap())
    };
    assert_eq!(
        judged_after(&|root| std::fs::write(root.join("numbers.json"), "{}").unwrap()),
        ["L9 incomplete digest-differs", "L9 incomplete no-numbers"]
    );
    assert_eq!(judged_after(&|root| std::fs::write(root.join("extra.txt"), "x").unwrap()), ["L1 incomplete file-not-listed"]);
    assert_eq!(judged_after(&|root| std::fs::remove_file(root.join("drive.log")).unwrap()), ["L8 incomplete file-absent"]);
    #[cfg(unix)]
    assert_eq!(
        judged_after(&|root| {
            std::fs::rename(root.join("drive.log"), root.join("real.log")).unwrap();
            std::os::unix::fs::symlink("real.log", root.join("drive.log")).unwrap();
        }),
        ["L1 incomplete file-not-listed", "L1 incomplete not-a-plain-file", "L8 incomplete file-absent"]
    );
    let leaves = |root: &std::path::Path| {
        let mut manifest: Value = serde_json::from_slice(&std::fs::read(root.join("manifest.json")).unwrap()).unwrap();
        let rows = manifest["files"].as_array_mut().unwrap();
        rows.push(json!({"path": "../x", "role": "log", "bytes": 0, "sha256": ""}));
        rows.push(json!({"path": "drive.log", "role": "log", "bytes": 0, "sha256": ""}));
        std::fs::write(root.join("manifest.json"), manifest.to_string()).unwrap();
    };
    assert_eq!(judged_after(&leaves), ["L8 incomplete listed-twice", "L8 incomplete path-leaves-folder"]);
    let empty = tempfile::tempdir().unwrap();
    assert!(judge(empty.path()).unwrap_err().to_string().contains("neither manifest.json nor matrix-plan.json"));
    std::fs::write(empty.path().join("manifest.json"), "{\"schema\": \"x\", \"files\": []}").unwrap();
    assert!(judge(empty.path()).unwrap_err().to_string().contains("its schema is 'x'"));
}

#[test]
fn every_link_can_fail_alone() {
    // The tables above name every link; this holds them to it.
    let text = include_str!("judge.rs");
    for link in Link::ALL {
        assert!(text.contains(&format!("&[\"{link:?} ")), "no bad case is about {link:?} alone");
    }
}
