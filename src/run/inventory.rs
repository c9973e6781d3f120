//! The inventory: every callsite, binding and request for a family, with its class and what became of it.

use std::fmt::Write as _;

use super::{Analysis, Loaded};
use crate::profile::Profile;
use crate::routes::{Binding, Callsite, Hop};
use crate::rules::Snippet;
use crate::stage0::Place;
use crate::stage0::inventory::{BindingRow, CallsiteRow, FamilyRow, GapRow, Inventory, RequestRow, SCHEMA, SourceRow, Step};
use crate::syntax::{Literal, OpKind};
use crate::text::{Span, sanitize};

fn place(loaded: &Loaded, span: Span) -> Place {
    let file = loaded.files.get(span.file);
    Place { source: file.source.to_string(), path: file.path.to_string(), line: file.line_of(span.start) }
}

fn steps(loaded: &Loaded, hops: &[Hop]) -> Vec<Step> {
    hops.iter()
        .map(|hop| Step { at: place(loaded, hop.span), from: hop.from.clone(), to: hop.to.clone(), kind: hop.kind.to_owned() })
        .collect()
}

fn callsite(loaded: &Loaded, callsite: &Callsite) -> CallsiteRow {
    CallsiteRow {
        at: place(loaded, callsite.span),
        class: callsite.class.word().to_owned(),
        kind: callsite.kind.word().to_owned(),
        status: callsite.status.word().to_owned(),
        certainty: callsite.certainty.word().to_owned(),
        caller: loaded.program.qualified(callsite.caller),
        targets: callsite.targets.clone(),
        backward: callsite.backward.clone(),
        kernels: callsite.kernels.clone(),
        contracts: callsite.contracts.clone(),
        conditions: callsite.conditions.iter().map(|span| squeeze(loaded.files.slice(*span))).collect(),
        up: steps(loaded, &callsite.up),
        down: steps(loaded, &callsite.down),
    }
}

fn binding(loaded: &Loaded, binding: &Binding) -> BindingRow {
    BindingRow {
        at: place(loaded, binding.span),
        class: binding.class.word().to_owned(),
        kind: binding.kind.word().to_owned(),
        name: binding.name.clone(),
        targets: binding.targets.clone(),
    }
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes down what an analysis found.
#[must_use]
pub fn inventory(profile: &Profile, loaded: &Loaded, analysis: &Analysis<'_>, snippets: &[Snippet]) -> Inventory {
    let families = analysis.routes.iter().zip(&profile.families).map(|(routes, family)| {
        let mut requests = Vec::new();
        for snippet in snippets {
            for scope in &snippet.facts.scopes {
                for op in &scope.ops {
                    if let OpKind::Literal(_, Literal::Str(text)) = op.kind
                        && family.keys.iter().any(|key| key == snippet.facts.name(text))
                    {
                        let span = Span::new(snippet.file, snippet.start + op.range.0, snippet.start + op.range.1);
                        let file = loaded.files.get(snippet.file);
                        let text = file.line_text(file.line_of(span.start)).trim().to_owned();
                        requests.push(RequestRow { at: place(loaded, span), class: "documentation".to_owned(), text });
                    }
                }
            }
        }
        FamilyRow {
            id: family.id.clone(),
            callsites: routes.callsites.iter().map(|row| callsite(loaded, row)).collect(),
            bindings: routes.bindings.iter().map(|row| binding(loaded, row)).collect(),
            requests,
        }
    });
    Inventory {
        schema: SCHEMA.to_owned(),
        backend: profile.backend.clone(),
        arch: profile.arch.clone(),
        families: families.collect(),
        sources: loaded
            .sources
            .iter()
            .map(|source| SourceRow {
                id: source.id.clone(),
                role: source.role.word().to_owned(),
                commit: source.commit.clone(),
                tree: source.tree.clone(),
                patched_tree: source.patched_tree.clone(),
                patch_sha256: source.patch_sha256.clone(),
                files: source.files.len(),
            })
            .collect(),
        gaps: loaded
            .gaps
            .iter()
            .map(|gap| GapRow { source: gap.source.clone(), path: gap.path.clone(), cause: gap.cause.clone() })
            .collect(),
    }
}

impl Inventory {
    /// As Markdown that can be pasted into an issue.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "# Route inventory ({} / {})\n", cell(&self.backend), cell(&self.arch));
        let _ = writeln!(out, "| source | role | commit | patched tree | files |\n| --- | --- | --- | --- | ---: |");
        for source in &self.sources {
            let commit = source.commit.as_deref().unwrap_or("not pinned");
            let tree = source.patched_tree.as_deref().unwrap_or("");
            let _ = writeln!(out, "| {} | {} | {commit} | {tree} | {} |", cell(&source.id), source.role, source.files);
        }
        for family in &self.families {
            let _ = writeln!(out, "\n## {}\n", cell(&family.id));
            let _ = writeln!(
                out,
                "### Callsites\n\n| place | class | kind | caller | reaches | backward | kernels | status | certainty | condition |"
            );
            let _ = writeln!(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
            for row in &family.callsites {
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                    at(&row.at),
                    row.class,
                    row.kind,
                    cell(&row.caller),
                    cell(&row.targets.join(", ")),
                    cell(row.backward.as_deref().unwrap_or("")),
                    cell(&row.kernels.join(", ")),
                    row.status,
                    row.certainty,
                    cell(&row.conditions.join(" and "))
                );
            }
            let _ = writeln!(out, "\n### Bindings\n\n| place | class | kind | name | stands for |\n| --- | --- | --- | --- | --- |");
            for row in &family.bindings {
                let name = cell(&row.name);
                let _ = writeln!(out, "| {} | {} | {} | {name} | {} |", at(&row.at), row.class, row.kind, cell(&row.targets.join(", ")));
            }
            let _ = writeln!(out, "\n### Documentation-only mentions\n\n| place | text |\n| --- | --- |");
            for row in &family.requests {
                let _ = writeln!(out, "| {} | {} |", at(&row.at), cell(&row.text));
            }
        }
        let _ = writeln!(out, "\n## Not seen\n");
        if self.gaps.is_empty() {
            let _ = writeln!(out, "Nothing: every file of every source was read and parsed.");
        }
        for gap in &self.gaps {
            let path = if gap.path.is_empty() { String::new() } else { format!(" {}", cell(&gap.path)) };
            let _ = writeln!(out, "- {}{path}: {}", cell(&gap.source), cell(&gap.cause));
        }
        out
    }
}

fn at(place: &Place) -> String {
    cell(&format!("{}:{}:{}", place.source, place.path, place.line))
}

/// Text that cannot break a table row.
fn cell(text: &str) -> String {
    sanitize(&squeeze(text)).replace('|', "\\|").replace('<', "&lt;")
}
