//! Inline ignore comments: `# rlk-lint: ignore[RLK301, RLK302] reason`.
//!
//! In: comments with their places, and findings. Out: the findings that stay, those that were silenced with the reason given, and findings
//! about the comments themselves: one without a reason or without a rule (RLK191), one that silenced nothing (RLK192). Refused: a comment
//! without a reason silences nothing.

use crate::catalog;
use crate::text::{Files, Span};

use super::Finding;

/// Word that makes a comment ours.
const MARK: &str = "rlk-lint:";

/// Rules about ignore comments, which an ignore comment cannot silence.
const ABOUT_COMMENTS: [&str; 2] = ["RLK191", "RLK192"];

/// One ignore comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The comment, from `#` to its end.
    pub span: Span,
    /// Rule ids as written; empty if the comment is malformed.
    pub rules: Vec<String>,
    /// Reason as written; empty if there is none.
    pub reason: String,
}

impl Suppression {
    /// Reads one comment (with its `#`) that covers `span`. `None` if it does not ask to ignore anything. Other tools' comments may stand before
    /// and behind the request, each with its own `#`. A malformed request is returned without rules, so that it is reported instead of being
    /// silently without effect.
    #[must_use]
    pub fn parse(comment: &str, span: Span) -> Option<Self> {
        let bodies = comment.match_indices('#').map(|(at, _)| comment[at + 1..].trim_start());
        let request = bodies.filter_map(|body| body.strip_prefix(MARK)).find_map(|body| body.trim_start().strip_prefix("ignore"))?;
        let inside = request.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((ids, reason)) = inside else {
            return Some(Self { span, rules: Vec::new(), reason: String::new() });
        };
        let rules = ids.split(',').map(|id| id.trim().to_ascii_uppercase()).filter(|id| !id.is_empty()).collect();
        let next_comment = reason.match_indices('#').find(|(at, _)| reason[at + 1..].starts_with([' ', '!', '\t'])).map(|(at, _)| at);
        let reason = &reason[..next_comment.unwrap_or(reason.len())];
        Some(Self { span, rules, reason: reason.trim_start_matches(':').trim().to_owned() })
    }

    /// Whether this comment can silence anything.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.rules.is_empty() && !self.reason.is_empty()
    }

    /// One-based line that the comment covers: its own or, if it stands alone, the next one that holds more than a comment.
    #[must_use]
    pub fn covered_line(&self, files: &Files) -> u32 {
        let file = files.get(self.span.file);
        let own = file.line_of(self.span.start);
        let start = file.line_range(own).map_or(self.span.start, |(start, _)| start);
        let before = file.text.get(start as usize..self.span.start as usize).unwrap_or("");
        if !before.trim().is_empty() {
            return own;
        }
        let holds_code = |line: &u32| {
            let text = file.line_text(*line).trim();
            !text.is_empty() && !text.starts_with('#')
        };
        (own + 1..=file.line_count()).find(holds_code).unwrap_or(own)
    }
}

/// What ignore comments made of the findings.
#[derive(Clone, Debug, Default)]
pub struct Suppressed {
    /// Findings that stay, those about comments included.
    pub kept: Vec<Finding>,
    /// Findings that were silenced, each with the reason given.
    pub silenced: Vec<(Finding, String)>,
}

/// Applies `suppressions` to `findings`. A comment silences a finding if the finding's primary place starts on the line that the comment
/// covers, or if the comment stands on one of the lines of that place.
#[must_use]
pub fn suppress(findings: Vec<Finding>, suppressions: &[Suppression], files: &Files) -> Suppressed {
    let mut comments: Vec<Comment<'_>> = suppressions.iter().map(|suppression| Comment::new(suppression, files)).collect();
    comments.sort_by_key(|comment| comment.suppression.span);
    let mut result = Suppressed::default();
    for finding in findings {
        match silenced_by(&finding, &mut comments, files) {
            Some(reason) => result.silenced.push((finding, reason)),
            None => result.kept.push(finding),
        }
    }
    for comment in &comments {
        comment.report(files, &mut result.kept);
    }
    result
}

/// A comment with the lines that it covers and what became of its rules.
struct Comment<'a> {
    suppression: &'a Suppression,
    covered: u32,
    own: u32,
    used: Vec<bool>,
}

impl<'a> Comment<'a> {
    fn new(suppression: &'a Suppression, files: &Files) -> Self {
        let own = files.get(suppression.span.file).line_of(suppression.span.start);
        Self { suppression, covered: suppression.covered_line(files), own, used: vec![false; suppression.rules.len()] }
    }

    fn report(&self, files: &Files, out: &mut Vec<Finding>) {
        let Suppression { span, rules, .. } = self.suppression;
        let path = files.get(span.file).path.to_string();
        let mut push = |id: &str, message: &'static str, arguments: Vec<String>| {
            if let Some(rule) = catalog::rule(id) {
                out.push(Finding::new(rule, message, arguments, *span, path.clone()));
            }
        };
        if !self.suppression.is_complete() {
            let message = if rules.is_empty() { "malformed" } else { "default" };
            push("RLK191", message, vec![files.slice(*span).trim().to_owned()]);
            return;
        }
        for (id, used) in rules.iter().zip(&self.used) {
            if !is_rule_id(id) {
                push("RLK192", "unknown", vec![id.clone()]);
            } else if !used {
                push("RLK192", "default", vec![id.clone(), self.covered.to_string()]);
            }
        }
    }
}

fn is_rule_id(id: &str) -> bool {
    catalog::rule(id).is_some_and(|rule| rule.id == id)
}

fn silenced_by(finding: &Finding, comments: &mut [Comment<'_>], files: &Files) -> Option<String> {
    if ABOUT_COMMENTS.contains(&finding.rule.id.as_str()) {
        return None;
    }
    let file = files.get(finding.primary.file);
    let first = file.line_of(finding.primary.start);
    let last = file.line_of(finding.primary.end.saturating_sub(1).max(finding.primary.start));
    let from = comments.partition_point(|comment| comment.suppression.span.file < finding.primary.file);
    let mut reason = None;
    for comment in comments[from..].iter_mut().take_while(|comment| comment.suppression.span.file == finding.primary.file) {
        let covers = comment.covered == first || (first..=last).contains(&comment.own);
        if !covers || !comment.suppression.is_complete() {
            continue;
        }
        if let Some(at) = comment.suppression.rules.iter().position(|id| *id == finding.rule.id) {
            comment.used[at] = true;
            reason.get_or_insert_with(|| comment.suppression.reason.clone());
        }
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{FileId, TextFile};

    fn comments(files: &Files) -> Vec<Suppression> {
        let mut found = Vec::new();
        for (id, file) in files.iter() {
            for line in 1..=file.line_count() {
                let (start, end) = file.line_range(line).unwrap();
                if let Some(hash) = file.line_text(line).find('#') {
                    let from = start + u32::try_from(hash).unwrap();
                    let span = Span::new(id, from, end);
                    found.extend(Suppression::parse(files.slice(span), span));
                }
            }
        }
        found
    }

    fn run(text: &str, findings: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<String>) {
        let mut files = Files::default();
        let id = files.add(TextFile::new("rl", "a.py", text));
        let findings = findings
            .iter()
            .map(|(rule, at)| {
                let start = u32::try_from(text.find(at).unwrap()).unwrap();
                let span = Span::new(id, start, start + u32::try_from(at.len()).unwrap());
                Finding::new(catalog::rule(rule).unwrap(), "default", vec!["x".into()], span, "s")
            })
            .collect();
        let result = suppress(findings, &comments(&files), &files);
        let kept = result.kept.iter().map(|f| (f.rule.id.clone(), f.message.to_owned())).collect();
        (kept, result.silenced.into_iter().map(|(_, reason)| reason).collect())
    }

    fn kept(id: &str, message: &str) -> (String, String) {
        (id.to_owned(), message.to_owned())
    }

    #[test]
    fn a_reason_silences_the_named_rule_on_that_line() {
        let (left, silenced) = run("load()  # rlk-lint: ignore[RLK101] read from a mirror\n", &[("RLK101", "load()")]);
        assert_eq!((left, silenced), (vec![], vec!["read from a mirror".to_owned()]));
    }

    #[test]
    fn a_comment_that_stands_alone_covers_the_next_line_of_code() {
        let text = "x\n  # rlk-lint: ignore[rlk101]: why\n# more\n\nload()\n";
        let (left, silenced) = run(text, &[("RLK101", "load()"), ("RLK101", "x")]);
        assert_eq!((left, silenced), (vec![kept("RLK101", "default")], vec!["why".to_owned()]));
    }

    #[test]
    fn a_comment_inside_a_call_over_several_lines_covers_it() {
        let (left, silenced) = run("load(\n  a,  # rlk-lint: ignore[RLK101] why\n)\n", &[("RLK101", "load(\n  a,")]);
        assert_eq!((left, silenced), (vec![], vec!["why".to_owned()]));
    }

    #[test]
    fn without_a_reason_nothing_is_silenced() {
        let (left, silenced) = run("load()  # rlk-lint: ignore[RLK101]\n", &[("RLK101", "load()")]);
        assert_eq!((left, silenced), (vec![kept("RLK101", "default"), kept("RLK191", "default")], vec![]));
        let (left, _) = run("load()  # rlk-lint: ignore please\n", &[]);
        assert_eq!(left, [kept("RLK191", "malformed")]);
        let (left, _) = run("load()  # rlk-lint: ignore[] why\n", &[]);
        assert_eq!(left, [kept("RLK191", "malformed")]);
    }

    #[test]
    fn each_unused_or_unknown_rule_is_reported() {
        let (left, silenced) = run("load()  # rlk-lint: ignore[RLK101, RLK192, RLK999, unpinned-source] why\n", &[("RLK101", "load()")]);
        assert_eq!(left, [kept("RLK192", "default"), kept("RLK192", "unknown"), kept("RLK192", "unknown")]);
        assert_eq!(silenced, ["why"]);
    }

    #[test]
    fn findings_about_comments_cannot_be_silenced() {
        let (left, silenced) = run("load()  # rlk-lint: ignore[RLK191] why\n", &[("RLK191", "load()")]);
        assert_eq!((left, silenced), (vec![kept("RLK191", "default"), kept("RLK192", "default")], vec![]));
    }

    #[test]
    fn the_reason_ends_where_another_comment_starts() {
        let reason = |comment: &str| Suppression::parse(comment, Span::new(FileId(0), 0, 0)).map(|suppression| suppression.reason);
        assert_eq!(reason("# rlk-lint: ignore[RLK101] see #581  # noqa: F401").as_deref(), Some("see #581"));
        assert_eq!(reason("# rlk-lint: ignore[RLK101]  # noqa: F401").as_deref(), Some(""));
        assert_eq!(reason("# rlk-lint: ignore[RLK101]  #! RLK191").as_deref(), Some(""));
        assert_eq!(reason("# noqa  # rlk-lint: ignore[RLK101] why").as_deref(), Some("why"));
        assert_eq!(reason("## rlk-lint:ignore [RLK101] why").as_deref(), Some("why"));
    }

    #[test]
    fn other_comments_are_not_ours() {
        for comment in ["# plain", "# noqa: F401", "# rlk-lint: on", "# see rlk-lint: ignore[RLK101] x"] {
            assert_eq!(Suppression::parse(comment, Span::new(FileId(0), 0, 0)), None, "{comment}");
        }
    }
}
