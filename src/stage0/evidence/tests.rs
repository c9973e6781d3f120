//! Statements read from texts and modules, and the age of evidence in small histories. All expected values are written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::statements::Vendor;
use super::*;
use crate::names::ModuleInput;
use crate::profile::Input;
use crate::sources::commit::{CommitEntry, bare_repository};
use crate::sources::{LoadOptions, load};
use crate::stage0::{Rows, Side};
use crate::syntax::extract;
use crate::text::TextFile;

fn shapes(statements: &Statements) -> Vec<(Option<i64>, i64, i64, u32)> {
    statements.shapes.iter().map(|stated| (stated.value.m, stated.value.n, stated.value.k, stated.line)).collect()
}

#[test]
fn a_report_states_device_revision_shapes_tiles_and_comparison() {
    let text = "# Runs on MI300X (gfx942)\n\nNothing here was measured on an H100.\nCommit 162875d, made with a deadbee of words.\n\n\
                | region | M | N | K | tile |\n| --- | --: | ---: | --- | --- |\n| `lm_head` | 8 | 37,984 | 4096 | (16, 128, 4, 2, 2, 1) |\n\n\
                Compared with torch.equal; raw bits were not kept.\n| M | N |\n| 1 | 2 |\n";
    let found = statements::read(text);
    let devices: Vec<(&str, u32)> = found.devices.iter().map(|device| (device.value.name.as_str(), device.line)).collect();
    // The H100 stands in prose, and the heading names the device.
    assert_eq!(devices, [("gfx942", 1), ("mi300x", 1)]);
    // `deadbee` has no digit and is a word.
    assert_eq!(found.revisions.iter().map(|stated| stated.value.as_str()).collect::<Vec<_>>(), ["162875d"]);
    assert_eq!(shapes(&found), [(Some(8), 37984, 4096, 8)]);
    assert_eq!(found.shapes.first().unwrap().value.name, "lm_head");
    assert_eq!(found.tiles.first().unwrap(), &Stated { value: [16, 128, 4, 2, 2, 1], line: 8 });
    assert_eq!(found.comparisons.first().unwrap(), &Stated { value: Comparison::ValueEqual, line: 10 });
}

#[test]
fn json_states_shapes_by_key_and_outcomes_behind_their_names() {
    let found =
        statements::read("[\n{\"m\": 8, \"n\": 1536, \"k\": 4096, \"gpu\": \"MI300X\"},\n{\"rows\": 1, \"n\": 4096, \"k\": 1024}\n]\n");
    assert_eq!(shapes(&found), [(Some(1), 4096, 1024, 3), (Some(8), 1536, 4096, 2)]);
    let found = statements::read("{\"passed\":12,\"failed\":0,\"skipped\":3}");
    assert_eq!((found.outcomes.passed, found.outcomes.failed, found.outcomes.skipped), (12, 0, 3));
    let found = statements::read("== 12 passed, 1 error, 3 skipped in 4.2s ==");
    assert_eq!((found.outcomes.passed, found.outcomes.failed, found.outcomes.skipped), (12, 1, 3));
}

#[test]
fn reuse_of_scores_is_read_from_its_value() {
    for (text, reused) in [
        ("\"use_rollout_logprobs\": true", true),
        ("--use-rollout-logprobs=1", true),
        ("use_rollout_logprobs: False", false),
        ("use_rollout_logprobs is not said", false),
    ] {
        assert_eq!(!statements::read(text).score_reuse.is_empty(), reused, "{text}");
    }
}

#[test]
fn devices_are_known_by_name_and_by_form() {
    let arch = |word: &str| statements::device(word).and_then(|device| device.arch);
    assert_eq!(arch("mi300x").as_deref(), Some("gfx942"));
    assert_eq!(arch("gfx90a").as_deref(), Some("gfx90a"));
    assert_eq!(arch("sm90a").as_deref(), Some("sm_90"));
    assert_eq!(arch("sm_80").as_deref(), Some("sm_80"));
    assert_eq!([arch("smooth"), arch("gfx"), arch("h1000"), arch("sm9")], [None, None, None, None]);
}

fn module(text: &str) -> (Statements, Option<Stated<String>>) {
    super::module::read(&extract(text), &TextFile::new("s", "tests/test_a.py", text))
}

#[test]
fn a_test_module_states_the_shapes_whose_roles_are_written() {
    let (found, skip) = module(
        "import pytest\nimport torch\n\npytestmark = pytest.mark.skipif(torch.version.hip is None, reason='gfx942 only')\n\
         SHAPES = [(8, 1536, 4096), (64, 4096, 1024)]\n\n\ndef operands(rows, n, k):\n    return n\n\n\n\
         @pytest.mark.parametrize('rows', [1, 33])\ndef test_a(rows):\n    operands(rows, 6144, 4096)\n\n\n\
         @pytest.mark.parametrize('m,n,k', SHAPES)\ndef test_b(m, n, k):\n    operands(m, n, k)\n\n\n\
         @pytest.mark.parametrize('shape', [(2, 3, 5)])\ndef test_c(shape):\n    m, k, n = shape\n    torch.ones(7, 9)\n",
    );
    // Rows 1 and 33 of test_a on line 14; SHAPES on the line of their decorator; (2, 3, 5) is M, K, N by the line that unpacks it.
    let want =
        [(Some(1), 6144, 4096, 14), (Some(2), 5, 3, 22), (Some(8), 1536, 4096, 17), (Some(33), 6144, 4096, 14), (Some(64), 4096, 1024, 17)];
    assert_eq!(shapes(&found), want);
    let skip = skip.unwrap();
    assert_eq!((skip.value.as_str(), skip.line), ("pytest.mark.skipif(torch.version.hip is None, reason='gfx942 only')", 4));
}

#[test]
fn raw_bits_values_and_tolerances_are_told_apart() {
    let (found, skip) = module(
        "import torch\n\ndef test_a(a, b):\n    assert torch.equal(a.view(torch.int16), b.view(torch.int16))\n    assert torch.equal(a, b.view(torch.int16))\n    \
         assert torch.equal(a.view(4, -1), b.view(4, -1))\n    assert torch.allclose(a, b, atol=1e-3)\n    assert a.numpy().tobytes() == b.numpy().tobytes()\n",
    );
    let want = [
        Stated { value: Comparison::RawBits, line: 4 },
        Stated { value: Comparison::RawBits, line: 8 },
        Stated { value: Comparison::ValueEqual, line: 5 },
        Stated { value: Comparison::ValueEqual, line: 6 },
        Stated { value: Comparison::Tolerance, line: 7 },
    ];
    assert_eq!(found.comparisons, BTreeSet::from(want));
    assert_eq!(skip, None);
}

#[test]
fn the_device_string_of_torch_is_no_vendor() {
    let (found, _) = module("import torch\nx = torch.ones(1, device=\"cuda\")\nassert torch.cuda.is_available()\n");
    assert!(found.vendors.is_empty() && found.devices.is_empty());
    let (found, _) = module("from rl_engine.backends.cuda.gemm import det_gemm\n");
    assert_eq!(found.vendors.first().unwrap().value, Vendor::Cuda);
}

const TABLE: &str = "kernels/table.py";

/// A repository with these revisions, each a set of files, and the commit of each.
fn history(at: &Path, revisions: &[&[(&str, &str)]]) -> Vec<String> {
    let files = |revision: &[(&str, &str)]| -> BTreeMap<String, CommitEntry> {
        revision.iter().map(|(path, text)| ((*path).to_owned(), CommitEntry::File(text.as_bytes().to_vec()))).collect()
    };
    let mut commits = vec![bare_repository(at, &files(revisions[0]), "first\n").unwrap().commit];
    for (number, revision) in revisions.iter().enumerate().skip(1) {
        // The tree of another repository with the same content, brought over blob by blob.
        let repository = git2::Repository::open(at).unwrap();
        let parent = repository.find_commit(git2::Oid::from_str(commits.last().unwrap()).unwrap()).unwrap();
        let mut folders: BTreeMap<&str, git2::TreeBuilder<'_>> = BTreeMap::new();
        for (path, text) in *revision {
            let (folder, name) = path.split_once('/').unwrap();
            let builder = folders.entry(folder).or_insert_with(|| repository.treebuilder(None).unwrap());
            builder.insert(name, repository.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
        }
        let mut top = repository.treebuilder(None).unwrap();
        for (folder, builder) in &folders {
            top.insert(folder, builder.write().unwrap(), 0o040_000).unwrap();
        }
        let tree = repository.find_tree(top.write().unwrap()).unwrap();
        let author = parent.author();
        let message = format!("revision {number}\n");
        commits.push(repository.commit(Some("refs/heads/main"), &author, &author, &message, &tree, &[&parent]).unwrap().to_string());
    }
    commits
}

fn shape(id: &str, region: &str, m: Dim, n: i64, k: i64) -> ShapeRow {
    ShapeRow {
        id: id.to_owned(),
        region: region.to_owned(),
        side: Side::Rollout,
        phase: "decode".to_owned(),
        gemm: "forward".to_owned(),
        count: 1,
        m,
        n: Dim::Fixed(n),
        k: Dim::Fixed(k),
        rows: Rows { from: 1, to: Some(64) },
        operands: Vec::new(),
        at: Vec::new(),
    }
}

/// Faults and covered shapes of the one item of a profile, at the last of some revisions.
fn judge(revisions: &[&[(&str, &str)]], tables: &str) -> (Vec<Fault>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let commits = history(&folder.path().join("k.git"), revisions);
    let text = format!(
        "schema = \"rlk-lint/profile/v1\"\n[platform]\nbackend = \"rocm\"\narch = \"gfx942\"\n[[source]]\nid = \"k\"\npath = \"k.git\"\nrole = \"kernel\"\ncommit = \"{}\"\n{}",
        commits.last().unwrap(),
        tables.replace("FIRST", &commits[0])
    );
    let mut files = Files::default();
    let file = files.add(TextFile::new("", "rlk-lint.toml", text.as_str()));
    let profile = Profile::parse(&Input { file, name: "rlk-lint.toml", text: &text, paths: &[] }, &mut |_| Err("none".to_owned())).unwrap();
    let options = LoadOptions { base: folder.path().to_path_buf(), ..LoadOptions::default() };
    let sources = load(&profile, &options, &mut files).unwrap();
    let inputs = sources[0].files.iter().filter(|file| file.kind == FileKind::Python).map(|file| {
        let text = files.get(file.file);
        ModuleInput {
            source: 0,
            path: text.path.to_string(),
            file: file.file,
            roots: vec![".".to_owned()],
            facts: extract(&text.text).into(),
        }
    });
    let program = Program::new(inputs.collect());
    let shapes =
        [shape("lm_head/decode", "lm_head", Dim::Rows(1), 38016, 4096), shape("qkv_proj/decode", "qkv_proj", Dim::Rows(1), 1536, 4096)];
    let ground = Ground { profile: &profile, sources: &sources, files: &files, program: &program, shapes: &shapes };
    let items = read(&ground);
    assert_eq!(items.len(), 1);
    let plain = row(&items[0], &files);
    assert_eq!(plain.counts, items[0].reasons.is_empty());
    (items[0].reasons.iter().map(|reason| reason.fault).collect(), items[0].covers.iter().map(|(id, _)| id.clone()).collect())
}

const ITEM: &str = "[[evidence]]\nid = \"e\"\nsource = \"k\"\npath = \"reports/r.md\"\nsupports = \"kernels/table.py\"\n";
const REPORT: &str = "# MI300X\n\n| region | M | N | K |\n| - | - | - | - |\n| qkv | 8 | 1536 | 4096 |\n";

#[test]
fn a_report_that_names_a_revision_with_the_same_table_counts() {
    // The report is written after the run, so it can name the commit before its own.
    let folder = tempfile::tempdir().unwrap();
    let first = history(&folder.path().join("k.git"), &[&[(TABLE, "a = 1\n")]]).remove(0);
    let report = format!("{REPORT}\nRL-Kernel commit {first}\n");
    let (faults, covers) = judge(&[&[(TABLE, "a = 1\n")], &[(TABLE, "a = 1\n"), ("reports/r.md", &report)]], ITEM);
    assert_eq!((faults, covers), (vec![], vec!["qkv_proj/decode".to_owned()]));
    // The same report, once the table has changed.
    let changed: &[(&str, &str)] = &[(TABLE, "a = 2\n"), ("reports/r.md", &report)];
    let (faults, _) = judge(&[&[(TABLE, "a = 1\n")], &[(TABLE, "a = 1\n"), ("reports/r.md", &report)], changed], ITEM);
    assert_eq!(faults, [Fault::Older]);
}

#[test]
fn without_a_revision_the_history_tells_what_came_first() {
    // The table changes after the report.
    let (faults, _) = judge(&[&[(TABLE, "a = 1\n"), ("reports/r.md", REPORT)], &[(TABLE, "a = 2\n"), ("reports/r.md", REPORT)]], ITEM);
    assert_eq!(faults, [Fault::Older]);
    // The report comes after the table; what revision it was made at is still not known.
    let (faults, _) = judge(&[&[(TABLE, "a = 1\n")], &[(TABLE, "a = 1\n"), ("reports/r.md", REPORT)]], ITEM);
    assert_eq!(faults, [Fault::NoRevision]);
    // Both came with the first commit.
    let (faults, _) = judge(&[&[(TABLE, "a = 1\n"), ("reports/r.md", REPORT)]], ITEM);
    assert_eq!(faults, [Fault::NoRevision]);
}

#[test]
fn an_unknown_revision_and_the_unpadded_vocabulary_do_not_count() {
    let report = "# MI300X\nrevision 0123456789abcdef0123456789abcdef01234567\n\n| region | M | N | K |\n| - | - | - | - |\n| lm_head | 8 | 37984 | 4096 |\n| lm_head | 9 | 37984 | 4096 |\n";
    let (faults, covers) = judge(&[&[(TABLE, "a = 1\n"), ("reports/r.md", report)]], ITEM);
    // Both rows say the same about the region, which is said once.
    assert_eq!((faults, covers), (vec![Fault::UnknownAge, Fault::OtherShape], vec![]));
}

#[test]
fn rows_outside_the_range_and_rows_that_are_not_stated_cover_nothing() {
    for (row, covered) in [
        ("| qkv | 64 | 1536 | 4096 |", 1),
        ("| qkv | 65 | 1536 | 4096 |", 0),
        ("| qkv | | 1536 | 4096 |", 0),
        ("| qkv | 8 | 4096 | 1536 |", 0),
    ] {
        let report = format!("# MI300X\n\n| region | M | N | K |\n| - | - | - | - |\n{row}\n");
        let (_, covers) = judge(&[&[(TABLE, "a = 1\n"), ("reports/r.md", &report)]], ITEM);
        assert_eq!(covers.len(), covered, "{row}");
    }
}

#[test]
fn a_test_counts_through_the_record_of_its_run_only() {
    let test = "import torch\n\ndef operands(rows, n, k):\n    return rows\n\ndef test_a(a):\n    operands(8, 1536, 4096)\n    assert torch.equal(a.view(torch.int16), a.view(torch.int16))\n";
    let item = ITEM.replace("reports/r.md", "tests/test_a.py");
    let (faults, covers) = judge(&[&[(TABLE, "a = 1\n"), ("tests/test_a.py", test)]], &item);
    assert_eq!((faults, covers), (vec![Fault::Unrun, Fault::NoPlatform, Fault::NoRevision], vec!["qkv_proj/decode".to_owned()]));
    let folder = tempfile::tempdir().unwrap();
    let first: &[(&str, &str)] = &[(TABLE, "a = 1\n"), ("tests/test_a.py", test)];
    let commit = history(&folder.path().join("k.git"), &[first]).remove(0);
    let record = format!("tests/test_a.py on MI300X at commit {commit}\n1 passed, 0 failed\n");
    let with_run = format!("{item}run = \"reports/run.txt\"\n");
    let second: &[(&str, &str)] = &[(TABLE, "a = 1\n"), ("tests/test_a.py", test), ("reports/run.txt", &record)];
    assert_eq!(judge(&[first, second], &with_run).0, []);
    let skipped = record.replace("1 passed", "1 skipped");
    let second: &[(&str, &str)] = &[(TABLE, "a = 1\n"), ("tests/test_a.py", test), ("reports/run.txt", &skipped)];
    assert_eq!(judge(&[first, second], &with_run).0, [Fault::Unrun]);
}

#[test]
fn a_file_that_is_not_there_is_no_evidence() {
    let (faults, covers) = judge(&[&[(TABLE, "a = 1\n")]], ITEM);
    assert_eq!((faults, covers), (vec![Fault::Absent], vec![]));
}
