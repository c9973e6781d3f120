//! Local GEMM shapes: what each rank multiplies, by region, side and phase.
//!
//! In: the workload of the profile. Out: one [`ShapeRow`] per region with a layer and phase with a GEMM. Refused: nothing; the profile was checked.

use super::{Dim, Operand, Place, Rows, ShapeRow};
use crate::profile::workload::{Gemm, Layer, Model, Phase, Region, Side, Topology, Workload};
use crate::text::Span;

/// A product of dimensions, at most one of which depends on rows.
fn product(a: Dim, b: Dim) -> Option<Dim> {
    match (a, b) {
        (Dim::Fixed(a), Dim::Fixed(b)) => a.checked_mul(b).map(Dim::Fixed),
        (Dim::Rows(a), Dim::Fixed(b)) | (Dim::Fixed(b), Dim::Rows(a)) => a.checked_mul(b).map(Dim::Rows),
        (Dim::Rows(_), Dim::Rows(_)) => None,
    }
}

fn operand(role: &str, size: [Dim; 2], column_major: bool) -> Option<Operand> {
    let one = Dim::Fixed(1);
    let (strides, layout) = if column_major { ([one, size[0]], "column-major") } else { ([size[1], one], "row-major") };
    product(size[0], size[1])?;
    Some(Operand { role: role.to_owned(), size, strides, layout: layout.to_owned() })
}

/// The shape of a region in one phase.
fn shape(region: &Region, phase: &Phase, gemm: Gemm, model: &Model, ranks: Topology, at: Vec<Place>, layer: Layer) -> Option<ShapeRow> {
    let (out, inner, _) = model.local_weight(layer, ranks)?;
    let rows = Dim::Rows(1);
    let (mut count, m, n, k, left, right, right_by_columns);
    count = 1;
    match gemm {
        // The weight is (out, in) in memory; its transpose is read by columns unless a copy was prepared.
        Gemm::Forward => {
            (m, n, k) = (rows, Dim::Fixed(out), Dim::Fixed(inner));
            (left, right, right_by_columns) = ("activation", "weight, transposed", !region.prepared.contains(&phase.side));
        }
        Gemm::InputGradient => {
            let shared = if region.halves { out / 2 } else { out };
            count = if region.halves { 2 } else { 1 };
            (m, n, k) = (rows, Dim::Fixed(inner), Dim::Fixed(shared));
            (left, right, right_by_columns) = ("output gradient", "weight", false);
        }
        // The left operand is a copy of the gradient's transpose.
        Gemm::WeightGradient => {
            let (own, tokens) = if region.gathered { (out / ranks.cp.value, Dim::Rows(ranks.cp.value)) } else { (out, rows) };
            (m, n, k) = (Dim::Fixed(own), Dim::Fixed(inner), tokens);
            (left, right, right_by_columns) = ("output gradient, transposed and copied", "activation", false);
        }
    }
    let operands = vec![operand(left, [m, k], false)?, operand(right, [k, n], right_by_columns)?, operand("result", [m, n], false)?];
    Some(ShapeRow {
        id: format!("{}/{}/{}", region.id, phase.side.word(), phase.id),
        region: region.id.clone(),
        side: side(phase.side),
        phase: phase.id.clone(),
        gemm: gemm.word().to_owned(),
        count,
        m,
        n,
        k,
        rows: Rows { from: phase.from, to: phase.to },
        operands,
        at,
    })
}

/// The document's word for a side.
#[must_use]
pub const fn side(side: Side) -> super::Side {
    match side {
        Side::Rollout => super::Side::Rollout,
        Side::Training => super::Side::Training,
    }
}

/// Every shape of a workload, by region and phase in declared order. `place` gives the line of a span of the profile.
#[must_use]
pub fn derive(workload: &Workload, place: &dyn Fn(Span) -> Place) -> Vec<ShapeRow> {
    let Some(model) = &workload.model else { return Vec::new() };
    let mut out = Vec::new();
    for region in &workload.regions {
        let Some(layer) = region.layer else { continue };
        for phase in &workload.phases {
            let (Some(gemm), Some(ranks)) = (phase.gemm, workload.topology(phase.side)) else { continue };
            let Some((_, _, names)) = model.local_weight(layer, ranks) else { continue };
            let mut spans: Vec<Span> = names.iter().filter_map(|name| model.size(name)).map(|size| size.span).collect();
            spans.push(ranks.tp.span);
            if region.gathered && gemm == Gemm::WeightGradient {
                spans.push(ranks.cp.span);
            }
            spans.extend([region.span, phase.span]);
            out.extend(shape(region, phase, gemm, model, ranks, spans.into_iter().map(place).collect(), layer));
        }
    }
    out
}
