//! The route graph of an inventory, for Graphviz.
//!
//! In: an [`Inventory`]. Out: one directed graph: functions as nodes in one cluster per source, steps and callsites as edges. A step is labelled
//! with its kind; a callsite also with its certainty and the conditions that nothing decides. Refused: nothing; every name is quoted. Nodes and
//! edges are sorted, so that the same inventory gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::stage0::Inventory;
use crate::text::sanitize;

/// The graph as text.
#[must_use]
pub fn dot(inventory: &Inventory) -> String {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut edges: BTreeSet<(&str, &str, String, bool)> = BTreeSet::new();
    for row in inventory.families.iter().flat_map(|family| &family.callsites) {
        for step in row.up.iter().chain(&row.down) {
            owners.insert(&step.from, &step.at.source);
            names.extend([step.from.as_str(), step.to.as_str()]);
            edges.insert((&step.from, &step.to, step.kind.clone(), false));
        }
        owners.insert(&row.caller, &row.at.source);
        names.insert(&row.caller);
        for target in &row.targets {
            names.insert(target);
            let mut label = format!("{}, {}, {}", row.kind, row.status, row.certainty);
            if !row.conditions.is_empty() {
                label.push_str("\nif ");
                label.push_str(&row.conditions.join("\nand "));
            }
            edges.insert((&row.caller, target, label, true));
        }
    }
    let mut out = String::from("digraph routes {\n  rankdir=LR;\n  node [shape=box];\n");
    let clusters: BTreeSet<&str> = owners.values().copied().collect();
    for (number, source) in clusters.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{number} {{\n    label={};", quoted(source));
        for (name, _) in owners.iter().filter(|(_, owner)| *owner == source) {
            let _ = writeln!(out, "    {};", quoted(name));
        }
        out.push_str("  }\n");
    }
    for name in names.iter().filter(|name| !owners.contains_key(*name)) {
        let _ = writeln!(out, "  {};", quoted(name));
    }
    for (from, to, label, callsite) in &edges {
        let style = if *callsite { ", style=bold" } else { "" };
        let _ = writeln!(out, "  {} -> {} [label={}{style}];", quoted(from), quoted(to), quoted(label));
    }
    out.push_str("}\n");
    out
}

/// A quoted string of the language; a line break becomes one of the label.
fn quoted(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| sanitize(line).replace('\\', "\\\\").replace('"', "\\\"")).collect();
    format!("\"{}\"", lines.join("\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Inventory {
        serde_json::from_value(serde_json::json!({
            "schema": "rlk-lint/inventory/v1", "backend": "rocm", "arch": "gfx942", "sources": [], "gaps": [],
            "families": [{ "id": "gemm", "bindings": [], "requests": [], "callsites": [{
                "at": { "source": "a", "path": "m.py", "line": 3 }, "class": "production", "kind": "call", "status": "routed",
                "certainty": "possible", "caller": "m.f", "targets": ["say \"x\"\\"], "kernels": [], "contracts": [],
                "conditions": ["x > 1"],
                "up": [{ "at": { "source": "b", "path": "e.py", "line": 1 }, "from": "e.main", "to": "m.f", "kind": "calls" }],
                "down": []
            }] }]
        }))
        .unwrap()
    }

    #[test]
    fn nodes_stand_in_their_source_and_edges_say_kind_certainty_and_condition() {
        let expected = concat!(
            "digraph routes {\n  rankdir=LR;\n  node [shape=box];\n",
            "  subgraph cluster_0 {\n    label=\"a\";\n    \"m.f\";\n  }\n",
            "  subgraph cluster_1 {\n    label=\"b\";\n    \"e.main\";\n  }\n",
            "  \"say \\\"x\\\"\\\\\";\n",
            "  \"e.main\" -> \"m.f\" [label=\"calls\"];\n",
            "  \"m.f\" -> \"say \\\"x\\\"\\\\\" [label=\"call, routed, possible\\nif x > 1\", style=bold];\n",
            "}\n"
        );
        assert_eq!(dot(&small()), expected);
        assert_eq!(dot(&small()), dot(&small()));
    }
}
