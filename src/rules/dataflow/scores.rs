//! Selected log-probabilities by the names under which frameworks keep them, and whose they are.
//!
//! The name of a key, attribute or parameter is the only thing that says which engine computed a score, so this is where names decide;
//! everything after that is data flow.

use super::Names;
use crate::names::GlobalScope;
use crate::syntax::{OpKind, Reg};

/// Which engine computed a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The rollout engine, while it sampled.
    Rollout,
    /// The trainer, from the weights and tokens.
    Training,
}

/// Whose score a name speaks of; `None` if of none, or of a third model's.
pub(crate) fn score_side(name: &str) -> Option<Side> {
    let lower = name.to_ascii_lowercase();
    let plain = lower.replace(['_', '-'], "");
    if !plain.contains("logprob") && !plain.contains("logp") {
        return None;
    }
    // Switches, places, and scores of other models.
    let others = [
        "use",
        "ref",
        "teacher",
        "reward",
        "entropy",
        "path",
        "provider",
        "mode",
        "kwargs",
        "flag",
        "top",
        "max",
        "num",
        "return",
        "is",
        "has",
        "correction",
        "enable",
        "compute",
    ];
    let words: Vec<&str> = lower.split(['_', '-', '/', '.']).collect();
    if words.iter().any(|word| others.contains(word)) {
        return None;
    }
    if words.iter().any(|word| matches!(*word, "rollout" | "inference" | "sampler" | "behavior")) {
        return Some(Side::Rollout);
    }
    words.iter().any(|word| matches!(*word, "logprob" | "logprobs" | "logp" | "logps" | "prob" | "probs")).then_some(Side::Training)
}

/// Registers of a scope that are read from a place whose name says that it holds scores of one side.
pub(crate) fn score_seeds(names: &Names<'_>, scope: GlobalScope, side: Side) -> Vec<Reg> {
    let facts = names.program.scope(scope);
    let module = &names.program.module(names.program.module_of(scope)).facts;
    let mut out: Vec<Reg> =
        facts.params.iter().filter(|param| score_side(module.name(param.name)) == Some(side)).map(|param| param.reg).collect();
    for op in &facts.ops {
        let (dst, name) = match &op.kind {
            OpKind::LoadAttr { dst, name, .. } => (*dst, Some(module.name(*name))),
            OpKind::LoadItem { dst, key, .. } => (*dst, names.text(scope, *key)),
            OpKind::Call { dst, func, args, decorator: false } => {
                let getter = super::method(names, scope, *func).is_some_and(|(_, name)| matches!(name, "get" | "pop"));
                let key = args.first().filter(|_| getter).and_then(|(_, reg)| names.text(scope, *reg));
                (*dst, key)
            }
            _ => continue,
        };
        if name.and_then(score_side) == Some(side) {
            out.push(dst);
        }
    }
    out
}
