//! A first profile for a checkout, with comments.
//!
//! In: facts about the checkout, gathered by the caller. Out: the text of a profile, which parses. Refused: nothing; what the facts do not
//! settle is left as a comment that says what to write.

use std::fmt::Write as _;

use super::family::is_dotted;
use super::source::stays_inside;
use super::{Input, Profile, Role, SCHEMA};
use crate::text::{FileId, sanitize};

/// Packages by which a source is recognised: package, id of the source, role. The first that a checkout has decides.
pub const KNOWN_PACKAGES: &[(&str, &str, Role)] = &[
    ("rl_engine", "rl-kernel", Role::Kernel),
    ("vime", "vime", Role::Orchestrator),
    ("slime", "vime", Role::Orchestrator),
    ("vllm", "vllm", Role::Rollout),
    ("megatron", "megatron", Role::Training),
];

/// What was seen of a checkout.
#[derive(Clone, Debug, Default)]
pub struct CheckoutFacts {
    /// Name of its folder.
    pub name: String,
    /// Full id of the commit that is checked out.
    pub head: Option<String>,
    /// Full id of that commit's tree.
    pub tree: Option<String>,
    /// Address of the remote, as git has it. Credentials in it are left out.
    pub remote: Option<String>,
    /// Names of the folders at its root.
    pub folders: Vec<String>,
    /// Packages among [`KNOWN_PACKAGES`] that it has, with the folder that holds each (`.` for the root).
    pub packages: Vec<(String, String)>,
    /// Paths of Python files called `det_gemm.py` or `mfma_gemm.py`, relative to its root, in order.
    pub gemm_modules: Vec<String>,
    /// `sources.json` files: path relative to its root, and text.
    pub pins: Vec<(String, String)>,
}

/// Where a GitHub workflow that runs the action lies in a checkout, and its text.
#[must_use]
pub fn github_workflow() -> (&'static str, String) {
    (".github/workflows/rlk-lint.yml", of_this_version(include_str!("init/github.yml")))
}

/// Where a GitLab job lies in a checkout, and its text. The checkout's own pipeline has to include it.
#[must_use]
pub fn gitlab_job() -> (&'static str, String) {
    (".gitlab/rlk-lint.yml", of_this_version(include_str!("init/gitlab.yml")))
}

fn of_this_version(template: &str) -> String {
    template.replace("{{version}}", env!("CARGO_PKG_VERSION"))
}

/// The text of a commented profile for a checkout. It parses, given the same `sources.json` files.
#[must_use]
pub fn profile_text(facts: &CheckoutFacts) -> String {
    // Pins for ROCm are what the default platform is about.
    let mut candidates: Vec<_> = facts.pins.iter().enumerate().map(|(at, (path, _))| (!path.contains("rocm"), path, at)).collect();
    candidates.sort();
    for (_, _, at) in candidates {
        let text = write(facts, Some(at));
        if parses(facts, &text) {
            return text;
        }
    }
    write(facts, None)
}

fn parses(facts: &CheckoutFacts, text: &str) -> bool {
    let input = Input { file: FileId(0), name: "rlk-lint.toml", text, paths: &[] };
    let found = |path: &str| facts.pins.iter().find(|(at, _)| at == path).map(|(_, text)| text.clone());
    Profile::parse(&input, &mut |pins| found(&pins.path).ok_or_else(|| "not among the facts".to_owned())).is_ok()
}

/// A TOML basic string on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c == '\t' || sanitize(c.encode_utf8(&mut [0; 4])).len() > 4 => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn list(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ")
}

fn write(facts: &CheckoutFacts, pins: Option<usize>) -> String {
    let mut out = format!(
        "# What rlk-lint reads, at which revisions, and under which assumptions. `rlk-lint check` looks for this file in the current folder and\n\
         # in those above it. Paths are relative to the folder of this file.\n\n\
         schema = \"{SCHEMA}\"\n\n\
         # Files larger than this are not read, and reported as a gap.\n\
         # max-file-bytes = 4194304\n\n"
    );
    out.push_str(PLATFORM);
    let main = main_source(&mut out, facts);
    companions(&mut out, facts, pins, &main);
    family(&mut out, facts, &main.root);
    paths(&mut out, &facts.folders);
    out.push_str(RULES);
    out
}

const PLATFORM: &str = "\
# The machine that routes are resolved for.
[platform]
backend = \"rocm\" # rocm, cuda or cpu
arch = \"gfx942\"  # gfx... for rocm, sm_... for cuda

# Environment variables of the job. A string is the value, false means \"not set\". Of a variable that is not listed, both branches are followed.
[platform.environment]
# RL_KERNEL_DET_GEMM_BACKEND = \"triton_mfma\"
# RL_KERNEL_MODE = false

# Values of names that the sources read: a string, a boolean, an integer, { present = true } or { none = true }.
[platform.known]
\"torch.version.hip\" = { present = true }
\"torch.version.cuda\" = { none = true }

";

const RULES: &str = "\
# Levels of rules: off, note, warning or error. `rlk-lint rules` lists them, `rlk-lint explain RLK101` shows one.
[rules]
# RLK101 = \"error\"

# Levels for some paths only.
# [[rules-for]]
# paths = [\"legacy/**\"]
# RLK101 = \"off\"
";

struct Main {
    id: String,
    /// Folder on the import path, `.` for the root.
    root: String,
}

fn main_source(out: &mut String, facts: &CheckoutFacts) -> Main {
    let known = KNOWN_PACKAGES.iter().find_map(|(package, id, role)| {
        let (_, folder) = facts.packages.iter().find(|(name, _)| name == package)?;
        Some((*id, *role, folder.as_str()))
    });
    let (id, role, root) = match known {
        Some((id, role, root)) if stays_inside(root) => (id.to_owned(), role, root),
        Some((id, role, _)) => (id.to_owned(), role, "."),
        None => (id_from(&facts.name), Role::Kernel, "."),
    };
    out.push_str(
        "# The sources. Each is a git repository, read at its commit and never from the working tree, or, without `commit`, a folder as it stands.\n\
         # A path may be left out here and given with `--source ID=PATH`.\n[[source]]\n",
    );
    let _ = writeln!(out, "id = {}", quoted(&id));
    out.push_str("path = \".\"\n");
    if let Some(address) = facts.remote.as_deref().and_then(public_address) {
        let _ = writeln!(out, "repository = {}", quoted(&address));
    }
    match facts.head.as_deref().filter(|head| is_full(head)) {
        Some(head) => {
            out.push_str(
                "# What is checked out is linted, and is its own pin. A full commit id here would be read instead, whatever is checked out.\n",
            );
            let _ = writeln!(out, "# commit = {}", quoted(head));
            if let Some(tree) = facts.tree.as_deref().filter(|tree| is_full(tree)) {
                let _ = writeln!(out, "# tree = {}", quoted(tree));
            }
        }
        None => out.push_str("# commit = \"...\" # the full id; without it the folder is read as it is, and nobody can repeat the run\n"),
    }
    out.push_str("# Folders on the import path.\n");
    let _ = writeln!(out, "roots = [{}]", quoted(root));
    if known.is_none() {
        out.push_str("# No package was recognised here, so this is a guess: kernel, orchestrator, rollout or training.\n");
    }
    let _ = writeln!(out, "role = {}", quoted(role.word()));
    out.push_str("main = true # results are reported against this one\n\n");
    Main { id, root: root.to_owned() }
}

fn is_full(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// A folder's name as an id.
fn id_from(name: &str) -> String {
    let plain: String =
        name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).collect();
    let id = plain.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if id.is_empty() { "source".to_owned() } else { id.to_owned() }
}

/// The address of a remote as a web address without credentials; `None` for a path.
fn public_address(remote: &str) -> Option<String> {
    let rest = match remote.split_once("://") {
        Some(("https" | "http" | "ssh" | "git" | "git+ssh", rest)) => rest.to_owned(),
        Some(_) => return None,
        // git@host:owner/name
        None => {
            let (host, path) = remote.split_once(':')?;
            (host.len() > 1 && !host.contains('/') && !path.starts_with(['/', '\\'])).then(|| format!("{host}/{path}"))?
        }
    };
    let (host, path) = rest.split_once('/')?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let path = path.split(['?', '#']).next().unwrap_or("").trim_end_matches('/').trim_end_matches(".git");
    (!host.is_empty() && !path.is_empty()).then(|| format!("https://{host}/{path}"))
}

fn role_of(id: &str) -> Role {
    KNOWN_PACKAGES.iter().find(|(_, known, _)| *known == id).map_or(Role::Orchestrator, |(_, _, role)| *role)
}

fn companions(out: &mut String, facts: &CheckoutFacts, pins: Option<usize>, main: &Main) {
    let names = pins.and_then(|at| facts.pins.get(at)).map(|(_, text)| pinned_names(text)).unwrap_or_default();
    let names: Vec<_> = names.into_iter().filter(|name| *name != main.id && id_from(name) == *name).collect();
    if !names.is_empty() {
        out.push_str("# The companions that this checkout pins. Their commits and patches come from [[pins]] below.\n");
        for name in &names {
            let role = role_of(name);
            let _ = writeln!(out, "[[source]]\nid = {}\n# path = {}", quoted(name), quoted(&format!("../{name}")));
            if !KNOWN_PACKAGES.iter().any(|(_, id, _)| id == name) {
                out.push_str("# This name is not a known one, so this is a guess: kernel, orchestrator, rollout or training.\n");
            }
            let _ = writeln!(out, "role = {}\n", quoted(role.word()));
        }
    }
    for (id, role) in [("vime", Role::Orchestrator), ("vllm", Role::Rollout), ("megatron", Role::Training)] {
        if id != main.id && !names.iter().any(|name| name == id) {
            let _ = writeln!(
                out,
                "# [[source]]\n# id = \"{id}\"\n# path = \"../{id}\"\n# commit = \"...\" # the full id: `git -C ../{id} rev-parse HEAD`\n# role = \"{}\"\n",
                role.word()
            );
        }
    }
    if let Some((path, _)) = pins.and_then(|at| facts.pins.get(at)).filter(|_| !names.is_empty()) {
        out.push_str("# Commits and companion patches, as the checkout records them at its pinned commit.\n");
        let _ = writeln!(out, "[[pins]]\nsource = {}\npath = {}\n", quoted(&main.id), quoted(path));
    }
    for (at, (path, _)) in facts.pins.iter().enumerate() {
        if Some(at) != pins || names.is_empty() {
            let _ = writeln!(out, "# [[pins]]\n# source = {}\n# path = {}\n", quoted(&main.id), quoted(path));
        }
    }
}

/// Names that a `sources.json` pins; none if it is no such file.
fn pinned_names(text: &str) -> Vec<String> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(map)) => map.keys().cloned().collect(),
        Ok(serde_json::Value::Array(list)) => {
            let name = |entry: &serde_json::Value| ["repo", "id", "name"].iter().find_map(|key| Some(entry.get(key)?.as_str()?.to_owned()));
            list.iter().filter_map(name).collect()
        }
        _ => Vec::new(),
    }
}

/// Names of one family, as far as the paths of its modules tell.
#[derive(Default)]
struct Names {
    sinks: Vec<String>,
    facades: Vec<String>,
    lookalikes: Vec<String>,
    contracts: Vec<String>,
}

fn family_names(facts: &CheckoutFacts, root: &str) -> Names {
    let mut names = Names::default();
    for path in &facts.gemm_modules {
        let inside = if root == "." { Some(path.as_str()) } else { path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) };
        let Some(module) = inside.and_then(|path| path.strip_suffix(".py")).map(|path| path.replace('/', ".")) else { continue };
        if !is_dotted(&module) {
            continue;
        }
        let within = |part: &str| module.split('.').any(|word| word == part);
        let mut add = |list: fn(&mut Names) -> &mut Vec<String>, ends: &[&str]| {
            list(&mut names).extend(ends.iter().map(|end| format!("{module}.{end}")));
        };
        if module.ends_with(".mfma_gemm") {
            add(|names| &mut names.sinks, &["_mfma_gemm_*"]);
            add(|names| &mut names.facades, &["mfma_gemm", "mfma_linear*"]);
            add(|names| &mut names.contracts, &["_mfma_gemm_*"]);
        } else if within("pytorch") {
            add(|names| &mut names.lookalikes, &["NativeGemmOp", "native_gemm"]);
        } else if within("triton") {
            add(|names| &mut names.sinks, &["_det_gemm_*", "_tree_gemm_*"]);
            add(|names| &mut names.facades, &["TritonDetGemmOp", "deterministic_gemm_triton"]);
        } else {
            add(|names| &mut names.facades, &["DetGemmOp", "deterministic_gemm"]);
        }
    }
    if facts.packages.iter().any(|(name, _)| name == "rl_engine") {
        names.sinks.push("rl_engine._C.det_gemm_*".to_owned());
    }
    names
}

fn family(out: &mut String, facts: &CheckoutFacts, root: &str) {
    let names = family_names(facts, root);
    out.push_str(
        "# An operator family: which names are kernels (sinks), and which are their public front (facades). A `*` may end a name.\n",
    );
    if names.sinks.is_empty() {
        out.push_str(
            "# [[family]]\n# id = \"det_gemm\"\n# sinks = [\"package.module._kernel\", \"package._C.det_gemm_*\"]\n# facades = [\"package.module.DetGemmOp\"]\n\
             # keys = [\"det_gemm\"]\n# lookalikes = [\"package.module.NativeGemmOp\"]\n\n",
        );
        return;
    }
    out.push_str("# These names follow from the paths of the modules. Check them: what is missing here is not traced.\n[[family]]\nid = \"det_gemm\"\n");
    let mut array = |key: &str, list: &[String]| {
        let _ = writeln!(out, "{key} = [");
        for name in list {
            let _ = writeln!(out, "    {},", quoted(name));
        }
        out.push_str("]\n");
    };
    array("sinks", &names.sinks);
    array("facades", &names.facades);
    if !names.lookalikes.is_empty() {
        array("lookalikes", &names.lookalikes);
    }
    out.push_str("# Strings by which registries and documentation ask for the family.\nkeys = [\"det_gemm\"]\n\n");
    out.push_str("# The arithmetic contract of each implementation.\n[family.contracts]\n");
    for name in &names.contracts {
        let _ = writeln!(out, "{} = \"rlkernel.det_gemm.triton_mfma_rocm.v1\"", quoted(name));
    }
    out.push_str("# \"package.module._kernel\" = \"rlkernel.det_gemm.name.v1\"\n\n");
    out.push_str("# Entry points besides those in pyproject.toml, scripts and configuration files.\n# [[entry]]\n# symbol = \"package.module.main\"\n\n");
}

fn paths(out: &mut String, folders: &[String]) {
    out.push_str(
        "# What paths are good for. The first glob that matches decides; what no glob matches is production. `id:glob` is for one source.\n[paths]\n",
    );
    let present = |names: &[&str]| {
        names.iter().filter(|name| folders.iter().any(|folder| folder == *name)).map(|name| format!("{name}/**")).collect::<Vec<_>>()
    };
    let mut test = present(&["test", "testing"]);
    test.splice(0..0, ["tests/**", "**/tests/**", "**/conftest.py"].map(str::to_owned));
    let mut documentation = present(&["doc"]);
    documentation.splice(0..0, ["docs/**", "*.md", "**/*.md"].map(str::to_owned));
    let mut benchmark = present(&["benchmark", "bench", "perf"]);
    benchmark.insert(0, "benchmarks/**".to_owned());
    let mut example = present(&["example", "samples"]);
    example.insert(0, "examples/**".to_owned());
    for (class, globs) in [("test", test), ("benchmark", benchmark), ("example", example), ("documentation", documentation)] {
        let _ = writeln!(out, "{class} = [{}]", list(&globs));
    }
    out.push_str("# reference = [\"...\"] # loaded only for comparison\n\n");
}

#[cfg(test)]
mod tests;
