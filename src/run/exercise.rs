//! What a run on a device has to show, derived from the sources: the static baseline, and the plan of the exerciser.
//!
//! In: the profile's `[probe]`, the Stage 0 record, what was compiled. Out: the two documents. Refused: a shape for which the selection function
//! could not be evaluated; it has no tile, is not driven, and is returned by name.

use serde_json::{Value, json};

use crate::probe::judge::documents::{BASELINE, Baseline, Code, CodeRules, Kernels, Reduce, Tile};
use crate::probe::record::Record as Compiled;
use crate::profile::{CodeContract, ContractValue, Exercise, Family, Probe, ShapeClass};
use crate::stage0::{Dim, Field, Record, Rows, ShapeRow};

/// Rows from which on nothing is declared: far above any batch, and small enough to multiply.
const MOST_ROWS: u64 = 1 << 20;
/// Waves of a workgroup where a launch does not say.
const WAVES: u32 = 4;

fn number(fields: &[Field], name: &str) -> Option<u64> {
    fields.iter().find(|field| field.name == name).and_then(|field| field.value.parse().ok())
}

/// Smallest and largest value of a dimension over rows.
fn extent(dim: Dim, rows: Rows) -> Option<(u64, u64)> {
    let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
    match dim {
        Dim::Fixed(size) => positive(size).map(|size| (size, size)),
        Dim::Rows(times) => {
            let times = positive(times)?;
            let most = rows.to.map_or(Some(MOST_ROWS), positive)?;
            Some((positive(rows.from)?.checked_mul(times)?, most.checked_mul(times)?.min(MOST_ROWS)))
        }
    }
}

/// The tiles of a product with `n` columns and a sum of `k`, by rows of the result, as the selection function was evaluated.
fn tiles(record: &Record, route: &str, m: &[u64], n: u64, k: u64) -> Vec<Tile> {
    let shape = |id: &str| record.shapes.iter().find(|shape: &&ShapeRow| shape.id == id);
    let rows = record.baseline.rows.iter().filter_map(|row| Some((shape(&row.shape)?, row)));
    let mut tiles: Vec<Tile> = Vec::new();
    for (shape, row) in rows {
        for interval in &row.intervals {
            let fields = |name: &str| number(&interval.fields, name);
            let (Some(block_m), Some(block_n), Some(waves)) = (fields("block_m"), fields("block_n"), fields("num_warps")) else { continue };
            let of = |dim| extent(dim, interval.rows);
            let (Some(over), Some(across), Some(deep)) = (of(shape.m), of(shape.n), of(shape.k)) else { continue };
            let holds = |range: (u64, u64), number: u64| (range.0..=range.1).contains(&number);
            if !holds(across, n) || !holds(deep, k) || !m.iter().any(|m| holds(over, *m)) {
                continue;
            }
            let num_warps = u32::try_from(waves).unwrap_or(WAVES);
            let tile = Tile { route: route.to_owned(), n, k, m: over, block_m, block_n, num_warps };
            // Phases of one product say the same of the rows that they share.
            let said = tiles
                .iter()
                .any(|other| other.m.0 <= over.0 && over.1 <= other.m.1 && other.block_m == block_m && other.block_n == block_n);
            if !said {
                tiles.push(tile);
            }
        }
    }
    tiles
}

fn constant(contract: &CodeContract, values: &str, name: &str) -> u64 {
    let values = if values == "options" { &contract.options } else { &contract.constants };
    match values.get(name) {
        Some(ContractValue::Number(number)) => *number,
        _ => 0,
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The static baseline, and the shapes that have no tile.
pub(super) fn baseline(
    probe: &Probe,
    contract: &CodeContract,
    families: &[Family],
    id: &str,
    arch: &str,
    record: &Record,
    compiled: &Compiled,
) -> (Baseline, Vec<String>) {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let kernels = Kernels { mono: name(&contract.monolithic), partial: name(&contract.partial), reduce: name(&contract.reduce) };
    let launches = || record.baseline.rows.iter().flat_map(|row| &row.intervals).flat_map(|interval| &interval.launches);
    let sum = launches().find(|launch| last(&launch.kernel) == kernels.reduce);
    let wavefront = if arch.starts_with("gfx9") { 64 } else { 32 };
    let waves = sum.and_then(|launch| number(&launch.options, "num_warps")).and_then(|waves| u32::try_from(waves).ok()).unwrap_or(WAVES);
    let sinks = families.iter().flat_map(|family| &family.sinks).map(|sink| last(sink));
    let own = [&kernels.mono, &kernels.partial, &kernels.reduce];
    let mut forbidden: Vec<String> =
        sinks.filter(|sink| !sink.contains('*') && !own.iter().any(|own| own == sink)).map(str::to_owned).collect();
    forbidden.push("Cijk_*".to_owned());
    let of = |shape: &ShapeClass| tiles(record, &shape.name, &shape.m, shape.n, shape.k);
    let without = probe.shapes.iter().filter(|shape| of(shape).is_empty()).map(|shape| shape.name.clone()).collect();
    let baseline = Baseline {
        schema: BASELINE.to_owned(),
        contract: id.to_owned(),
        arch: arch.to_owned(),
        triton: compiled.triton.clone(),
        wavefront,
        chunk_k: constant(contract, "constants", "CHUNK_K"),
        split_max_rows: contract.split_rows.unwrap_or(0),
        reduce: Reduce { block: sum.and_then(|launch| number(&launch.options, "BLOCK")).unwrap_or(0), threads: waves * wavefront },
        kernels,
        forbidden,
        tiles: probe.shapes.iter().flat_map(of).collect(),
        rules: CodeRules {
            instructions: contract.instructions.clone(),
            instr_shape: contract.instr_shape.clone(),
            k_width: 4 * constant(contract, "options", "kpack"),
            block_k: constant(contract, "constants", "BLOCK_K"),
            vgpr_spills: contract.vgpr_spills.unwrap_or(0),
        },
        code: compiled.kernels.iter().map(|kernel| Code { kernel: kernel.kernel.clone(), code_id: kernel.code_id.clone() }).collect(),
    };
    (baseline, without)
}

/// What the exerciser is told.
pub(super) fn plan(probe: &Probe, front: &Exercise, baseline: &Baseline, record: &Record, replays: u64, torch_trace: bool) -> Value {
    let mut steps = Vec::new();
    for shape in &probe.shapes {
        let (function, layout) = if shape.transposed { (&front.linear, "nk") } else { (&front.plain, "kn") };
        for m in shape.m.iter().filter(|m| baseline.tile(&shape.name, **m, shape.n, shape.k).is_some()) {
            steps.push(json!({"route": shape.name, "function": function, "m": m, "n": shape.n, "k": shape.k, "layout": layout}));
        }
    }
    let chunk = baseline.chunk_k.max(2);
    let candidates = record.baseline.constants.iter().map(|constant| {
        let fields = constant.fields.iter().filter_map(|field| Some((field.name.clone(), json!(field.value.parse::<u64>().ok()?))));
        json!({"id": constant.name, "fields": fields.collect::<serde_json::Map<_, _>>()})
    });
    // Small results with sums of several chunks, of one, and of lengths that are no multiple of a chunk or of a tile's depth.
    let shapes = [4 * chunk, chunk, 2 * chunk + 64, chunk + 8].map(|k| json!({"m": 8, "n": 64, "k": k}));
    json!({
        "schema": "rlk-lint/plan/v1", "module": front.module, "seed": 0, "replays": replays, "torch_trace": torch_trace, "steps": steps,
        "verify_bits": {
            "module": probe.module, "function": probe.launch, "config": probe.config, "chunk_k": baseline.chunk_k,
            "candidates": candidates.collect::<Vec<_>>(), "shapes": shapes,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{analyse_all, assumptions, lint, record};
    use crate::sources::embedded;

    #[test]
    fn the_companions_give_the_tiles_that_their_selection_function_chooses() {
        let folder = tempfile::tempdir().unwrap();
        embedded::materialise(folder.path()).unwrap();
        let text = embedded::profile_text().unwrap();
        let opened = lint::open_text(text, "rlk-lint.toml", folder.path().to_path_buf(), &lint::Request::default()).unwrap();
        let (profile, label, loaded) = lint::load(opened, 0).unwrap();
        let assumed = assumptions(&profile, &loaded);
        let record = record::record(&profile, &label, &loaded, &analyse_all(&profile, &loaded, &assumed), &[]);
        let probe = profile.probe.as_ref().unwrap();
        let contract = probe.contract.as_ref().unwrap();
        let compiled = Compiled {
            schema: String::new(),
            label: String::new(),
            triton: "3.7.0".to_owned(),
            arch: "gfx942".to_owned(),
            module: String::new(),
            sources: String::new(),
            launches: Vec::new(),
            kernels: Vec::new(),
        };
        let (baseline, without) = baseline(probe, contract, &profile.families, "contract", "gfx942", &record, &compiled);
        assert_eq!(without, [""; 0]);
        // Read from `select_config` by hand: rows, then the tile and its waves.
        let tile = |route: &str, m, n, k| baseline.tile(route, m, n, k).map(|tile| (tile.block_m, tile.block_n, tile.num_warps));
        assert_eq!(tile("qkv_proj", 8, 1536, 4096), Some((16, 32, 2)));
        assert_eq!(tile("qkv_proj", 64, 1536, 4096), Some((32, 64, 4)));
        assert_eq!(tile("qkv_proj", 4096, 1536, 4096), Some((128, 128, 4)));
        assert_eq!(tile("lm_head", 64, 38016, 4096), Some((16, 128, 4)));
        assert_eq!(tile("o_proj", 64, 4096, 1024), Some((16, 32, 2)));
        assert_eq!(tile("qkv_proj weight gradient, ragged", 1536, 4096, 4001), Some((128, 128, 4)));
        assert_eq!(tile("qkv_proj", 8, 1536, 1), None);
        assert_eq!((baseline.chunk_k, baseline.split_max_rows, baseline.wavefront), (1024, 64, 64));
        assert_eq!((baseline.reduce.block, baseline.reduce.threads), (1024, 256));
        assert_eq!((baseline.rules.k_width, baseline.rules.block_k), (8, 64));
        assert_eq!(baseline.forbidden, ["_tree_gemm_kernel", "Cijk_*"]);

        let plan = plan(probe, probe.exercise.as_ref().unwrap(), &baseline, &record, 16, true);
        // Five shapes with four numbers of rows, two with three, two with one.
        assert_eq!(plan["steps"].as_array().unwrap().len(), 28);
        assert_eq!(plan["steps"][0]["function"], "det_gemm_linear");
        let candidates = plan["verify_bits"]["candidates"].as_array().unwrap();
        let decode = candidates.iter().find(|candidate| candidate["id"] == "_DECODE").unwrap();
        let fields = json!({"block_m": 16, "block_n": 32, "num_warps": 2, "waves_per_eu": 0, "num_stages": 2, "group_m": 1});
        assert_eq!(decode["fields"], fields);
        assert_eq!(candidates.len(), 6);
    }
}
