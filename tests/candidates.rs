//! Candidates of the embedded companions. Every number is worked out by hand from the fixture's table and the profile's sizes.

use rlk_lint::stage0::{CandidateCell, Candidates, Record};

/// The record is written once for all tests.
static RECORD: std::sync::LazyLock<Record> = std::sync::LazyLock::new(|| {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_rlk-lint")).env_clear().args(["demo", "--stage0"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
});

fn candidates() -> &'static Candidates {
    RECORD.candidates.as_ref().unwrap()
}

fn cell<'c>(candidates: &'c Candidates, id: &str, shape: &str) -> &'c CandidateCell {
    let row = candidates.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no {id}"));
    row.cells.iter().find(|cell| cell.shape == shape).unwrap_or_else(|| panic!("no {shape}"))
}

/// Issue 581: "Treat the candidate family as launch/tile configurations of the existing rlkernel.det_gemm.triton_mfma_rocm.v1 arithmetic contract, not MFMA
/// versus the numerically different tree backend", and "do not count unrelated test-only or unsupported candidates".
#[test]
fn candidates_are_configurations_of_one_contract_that_the_frozen_sources_build() {
    let found = candidates();
    assert_eq!(found.contract, "rlkernel.det_gemm.triton_mfma_rocm.v1");
    let production: Vec<&str> = found.rows.iter().filter(|row| !row.test_only).map(|row| row.id.as_str()).collect();
    let constants = ["_DECODE", "_QKV_GATE_DECODE", "_LM_HEAD_DECODE", "_SMALL", "_LARGE", "_GATE_UP_LARGE"];
    let expected: Vec<String> =
        constants.iter().flat_map(|id| [(*id).to_owned(), format!("{id}, force_split=True"), format!("{id}, force_split=False")]).collect();
    assert_eq!(production, expected);
    let test: Vec<_> = found.rows.iter().filter(|row| row.test_only).collect();
    assert_eq!(test.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["tests.backends.rocm.test_rocm_mfma_gemm.TILES[0]"]);
    assert!(test[0].origin == "test-table" && test[0].cells.iter().all(|cell| !cell.admissible));
    let why = |what: &str| {
        let row = found.excluded.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("{what}: {:?}", found.excluded));
        assert!(row.at.as_ref().is_some_and(|at| at.line > 0), "{row:?}");
        row.why.clone()
    };
    assert!(why("rl_engine.backends.shared.triton.gemm.det_gemm._tree_gemm_kernel").contains("rlkernel.det_gemm.triton_tree.v1"));
    assert!(why("rl_engine._C.det_gemm_*").contains("no contract"));
    assert!(why("rl_engine.backends.cuda.gemm.det_gemm.DetGemmOp").contains("`cuda`"));
    assert!(why("rl_engine.reference.gemm.NativeGemmOp").contains("no contract"));
}

#[test]
fn workspace_follows_from_the_launch_with_that_configuration() {
    let found = candidates();
    // K = 4096 is four chunks; up to 64 rows are split, each chunk into FP32 partials of rows x 38016.
    let decode = cell(found, "_DECODE", "lm_head/rollout/decode");
    assert_eq!((decode.admissible, decode.baseline, decode.workspace_bytes), (true, false, Some(4 * 32 * 38016 * 4)));
    assert!(cell(found, "_LM_HEAD_DECODE", "lm_head/rollout/decode").baseline);
    assert_eq!(cell(found, "_DECODE", "lm_head/rollout/prefill").workspace_bytes, Some(4 * 64 * 38016 * 4));
    // Forced, 4096 rows need 2491416576 bytes; the budget is 2147483648.
    let forced = cell(found, "_DECODE, force_split=True", "lm_head/training/forward");
    assert_eq!((forced.admissible, forced.workspace_bytes), (false, Some(2_491_416_576)));
    assert!(forced.why[0].value.contains("2147483648") && forced.why[0].at[0].path == "rlk-lint.toml", "{:?}", forced.why);
    let whole = cell(found, "_DECODE, force_split=False", "lm_head/rollout/decode");
    assert_eq!((whole.admissible, whole.workspace_bytes), (true, Some(0)));
    // Nothing bounds prefill, so nothing bounds what splitting it takes.
    let prefill = cell(found, "_DECODE, force_split=True", "lm_head/rollout/prefill");
    assert_eq!((prefill.admissible, prefill.workspace_bytes), (false, None));
}

#[test]
fn an_argument_that_changes_no_launch_makes_no_candidate() {
    let found = candidates();
    // 32 rows are split anyway; K = 1024 is one chunk and never is.
    for (id, shape) in [
        ("_DECODE, force_split=True", "lm_head/rollout/decode"),
        ("_LARGE, force_split=True", "o_proj/training/forward"),
        ("_LARGE, force_split=False", "o_proj/training/forward"),
    ] {
        let cell = cell(found, id, shape);
        assert!(!cell.admissible && cell.why[0].value.contains("without the argument"), "{id} {shape}: {:?}", cell.why);
    }
}

#[test]
fn lds_is_bounded_by_tiles_and_stages() {
    let found = candidates();
    let lds = |id: &str| cell(found, id, "down/training/input-gradient").lds_bytes;
    // (block_m + block_n) * 64 * 2 bytes, twice for two stages.
    assert_eq!(lds("_DECODE"), Some((16 + 32) * 64 * 2 * 2));
    assert_eq!(lds("_LARGE"), Some(65_536));
    // 49152 bytes once fit into 65536; 98304 do not, so what the compiler takes is still to be shown.
    let large = cell(found, "_GATE_UP_LARGE", "down/training/input-gradient");
    assert_eq!((large.admissible, large.lds_bytes), (true, Some(98_304)));
    assert!(large.missing.iter().any(|need| need.contains("98304")), "{:?}", large.missing);
    assert!(!cell(found, "_LARGE", "down/training/input-gradient").missing.iter().any(|need| need.contains("LDS")));
    // No evidence of the companions counts, and the profile names no certificate.
    assert!(
        found
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .all(|cell| cell.evidence.is_empty() && cell.missing.contains(&"a certificate".to_owned()))
    );
}
