//! The list of rules: their metadata, pages and messages.
//!
//! In: `rules/<slug>/rule.toml` and `rules/<slug>/README.md`, embedded at build time. Out: [`RULES`], in order of id. Refused: nothing at
//! run time; a malformed rule file fails the tests, since the files are part of the binary.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Not reported.
    Off,
    /// Worth knowing.
    Note,
    /// Should be looked at before merging.
    Warning,
    /// Breaks the consistency contract, or prevents the check of it.
    Error,
}

impl Level {
    /// The word used in SARIF, profiles and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// How often a finding of a rule is right, in the words of GitHub code scanning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Decided on exact data.
    VeryHigh,
    /// Wrong only where the resolution was.
    High,
    /// Needs a reader.
    Medium,
    /// A hint.
    Low,
}

impl Precision {
    /// The word used in SARIF.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::VeryHigh => "very-high",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// Metadata of one rule, as written in its `rule.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleMeta {
    /// `RLKnnn`; never reused, never renamed.
    pub id: String,
    /// Pascal case name.
    pub name: String,
    /// Default level.
    pub level: Level,
    /// How often it is right.
    pub precision: Precision,
    /// At most ten tags.
    pub tags: Vec<String>,
    /// Version in which it appeared.
    pub since: String,
    /// One sentence, plain text.
    pub summary: String,
    /// Two to four sentences, plain text.
    pub description: String,
    /// Messages by key, with `'{0}'`-style placeholders in single quotes and a final period.
    pub messages: BTreeMap<String, String>,
    /// Options that the profile may set for this rule, with their defaults.
    #[serde(default)]
    pub options: BTreeMap<String, toml::Value>,
    /// Folder name.
    #[serde(skip)]
    pub slug: &'static str,
    /// Markdown page.
    #[serde(skip)]
    pub page: &'static str,
}

impl RuleMeta {
    /// The message `key` with `{n}` replaced by `arguments[n]`. An unknown key gives the arguments joined, never a panic.
    #[must_use]
    pub fn format(&self, key: &str, arguments: &[String]) -> String {
        let Some(template) = self.messages.get(key) else {
            return arguments.join(" ");
        };
        let mut out = String::with_capacity(template.len() + 32);
        let mut rest = template.as_str();
        while let Some(open) = rest.find('{') {
            let Some(close) = rest[open..].find('}') else { break };
            out.push_str(&rest[..open]);
            match rest[open + 1..open + close].parse::<usize>().ok().and_then(|index| arguments.get(index)) {
                Some(argument) => out.push_str(argument),
                None => out.push_str(&rest[open..=open + close]),
            }
            rest = &rest[open + close + 1..];
        }
        out.push_str(rest);
        out
    }
}

macro_rules! rules {
    ($($slug:literal),* $(,)?) => {
        /// Folder names of all rules, in order of id.
        pub const SLUGS: &[&str] = &[$($slug),*];

        const EMBEDDED: &[(&str, &str, &str)] = &[$((
            $slug,
            include_str!(concat!("../rules/", $slug, "/rule.toml")),
            include_str!(concat!("../rules/", $slug, "/README.md")),
        )),*];
    };
}

rules! {
    "unpinned-source",
    "pin-mismatch",
    "dirty-tree",
    "patch-mismatch",
    "syntax-gap",
    "suppression-without-reason",
    "unused-suppression",
    "stale-baseline-entry",
    "untraced-callsite",
    "documentation-only",
    "unresolved-dispatch",
    "dead-patch-target",
    "dead-on-platform",
    "changed-route",
    "silent-fallback",
    "contract-switch",
    "relaxed-tolerance",
    "value-equality",
    "approximate-route",
    "pinned-field",
    "rollout-score-reuse",
    "out-of-memory-retry",
    "lenient-default",
    "partial-checkpoint-load",
    "grown-tolerance",
    "changed-under-contract",
    "address-keyed-cache",
    "unchecked-refresh",
    "no-backward-owner",
    "reported-constant",
    "unrecorded-backward",
    "first-execution-record",
    "variable-not-handed-on",
    "variable-not-in-cache-key",
    "late-or-unrecorded-variable",
    "not-warmed",
    "claim-without-source",
    "foreign-evidence",
    "stale-evidence",
    "unproven-evidence",
    "foreign-processor",
    "matrix-instruction",
    "operand-layout",
    "pinned-constant",
    "resource-budget",
    "compile-setting",
    "incomplete-schedule",
    "cache-contradiction",
    "code-differs",
}

/// All rules, in order of id.
///
/// # Panics
/// If an embedded `rule.toml` is malformed, which a unit test rules out.
pub static RULES: LazyLock<Vec<RuleMeta>> = LazyLock::new(|| {
    EMBEDDED
        .iter()
        .map(|(slug, metadata, page)| {
            let mut rule: RuleMeta = toml::from_str(metadata).unwrap_or_else(|error| panic!("rules/{slug}/rule.toml: {error}"));
            rule.slug = slug;
            rule.page = page;
            rule
        })
        .collect()
});

/// The rule with this id or folder name.
#[must_use]
pub fn rule(id_or_slug: &str) -> Option<&'static RuleMeta> {
    RULES.iter().find(|rule| rule.id.eq_ignore_ascii_case(id_or_slug) || rule.slug == id_or_slug)
}
