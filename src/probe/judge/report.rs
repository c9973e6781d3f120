//! The judgement, for people and for machines.
//!
//! In: a [`Judgement`]. Out: text or JSON. Refused: a text in which a rehearsal can be taken for evidence; control characters of the evidence.

use std::fmt::Write as _;

use serde::Serialize;

use super::Judgement;
use super::documents::Label;
use super::link::{JudgedLink, State};
use crate::text::sanitize;

/// Schema of the JSON form.
pub const SCHEMA: &str = "rlk-lint/judgement/v1";
/// Problems of one link that are shown to people; all are in the JSON.
const SHOWN: usize = 20;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Route<'a> {
    route: &'a str,
    dispatches: u64,
    kernels: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'a> {
    schema: &'static str,
    label: Label,
    contract: &'a str,
    verdict: State,
    exit_code: u8,
    links: &'a [JudgedLink],
    observed: Vec<Route<'a>>,
}

impl Judgement {
    /// As JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let observed = self.observed.routes.iter().map(|(route, seen)| Route {
            route,
            dispatches: seen.dispatches,
            kernels: seen.kernels.iter().map(String::as_str).collect(),
        });
        let document = Document {
            schema: SCHEMA,
            label: self.label,
            contract: &self.contract,
            verdict: self.chain.verdict,
            exit_code: self.chain.verdict.exit_code(),
            links: &self.chain.links,
            observed: observed.collect(),
        };
        serde_json::to_value(document).unwrap_or_default()
    }

    /// For people.
    #[must_use]
    pub fn human(&self) -> String {
        let mut out = String::new();
        if self.label == Label::Rehearsal {
            out.push_str("REHEARSAL: exercises the machinery; no evidence about the contract, and it can never pass\n\n");
        }
        for link in &self.chain.links {
            let _ = writeln!(out, "{:?} {:<13} {}", link.link, link.name, link.state.word());
            for fact in &link.facts {
                let _ = writeln!(out, "      {}", sanitize(fact));
            }
            for problem in link.problems.iter().take(SHOWN) {
                let file = if problem.file.is_empty() { String::new() } else { format!("{}: ", problem.file) };
                let _ = writeln!(out, "    - {} [{}] {}{}", problem.state.word(), problem.reason, sanitize(&file), sanitize(&problem.what));
            }
            if link.problems.len() > SHOWN {
                let _ = writeln!(out, "    - and {} more, all in --format json", link.problems.len() - SHOWN);
            }
        }
        if !self.observed.routes.is_empty() {
            out.push_str("\nobserved dispatches by route\n");
            for (route, seen) in &self.observed.routes {
                let kernels = seen.kernels.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let _ = writeln!(out, "    {:<16} {:>9}  {}", sanitize(route), seen.dispatches, sanitize(&kernels));
            }
        }
        let rehearsal = if self.label == Label::Rehearsal { " (rehearsal)" } else { "" };
        let _ = writeln!(out, "\nverdict: {}{rehearsal} (exit {})", self.chain.verdict.word(), self.chain.verdict.exit_code());
        out
    }
}
