//! SARIF 2.1.0 for GitHub code scanning.
//!
//! In: a document. Out: one log with one run: all rules of the catalog, results anchored in the main repository, gaps as notifications.
//! Refused: absolute paths, commits in paths or ids, addresses with a scheme in locations, a link in a message that leads nowhere, more
//! results than GitHub takes (the most severe stay, and a notification says what was left out).
//!
//! A finding in a companion is shown on the line of the main repository that leads to it, and fingerprinted by its own line, so that moving
//! the pin keeps the alert. An empty log closes all alerts: do not write one for a run that linted nothing or stopped.

mod model;
mod per_source;
mod result;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::catalog::{Level, RULES, RuleMeta};
use crate::findings::{Finding, Gap};
use crate::text::sanitize;

use super::places::{Address, Places, host_path, percent_encode};
use super::tally::plural;
use super::{Document, TOOL_HOME, TOOL_NAME, rule_page};
use model::{
    ArtifactLocation, AutomationDetails, BaseId, ColumnKind, Configuration, Described, Driver, Help, Invocation, Location, Log,
    Notification, NotificationProperties, PatchProperties, PhysicalLocation, ProblemSeverity, Rule, RuleProperties, Run, SCHEMA, Severity,
    Text, Tool, VersionControl,
};
use result::Results;

pub use per_source::write_for;

/// Results that GitHub shows of one run, the most severe ones. It takes 25,000, which would only make the log larger.
pub const MAX_RESULTS: usize = 5_000;
/// Bytes that a log may have once it is compressed: GitHub takes 10 MB, and may count them in thousands.
const MAX_COMPRESSED: usize = 9_900_000;
/// Results up to which a log is indented for people; a larger one would only grow by it.
const MAX_INDENTED: usize = 1_000;
/// Gaps that are written one by one; the others are counted.
const MAX_NOTIFICATIONS: usize = 1_000;

/// What a log contains.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'n> {
    /// Whether suppressed findings are written too, marked as such. GitHub shows them as open alerts.
    pub show_suppressed: bool,
    /// What a reader has to know about the log, as a sentence.
    pub note: Option<&'n str>,
}

/// Writes the log.
///
/// # Errors
/// If the writer fails.
pub fn write(document: Document<'_>, options: Options<'_>, out: &mut dyn Write) -> io::Result<()> {
    write_within(document, options, MAX_COMPRESSED, out)
}

/// Writes as many of the most severe results as fit into `limit` compressed bytes.
fn write_within(document: Document<'_>, options: Options<'_>, limit: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut most = MAX_RESULTS;
    loop {
        let log = log(&document, options, most);
        let written = log.runs[0].results.len();
        let mut bytes = if written > MAX_INDENTED { serde_json::to_vec(&log)? } else { serde_json::to_vec_pretty(&log)? };
        bytes.push(b'\n');
        let size = compressed(&bytes, limit)?;
        if size <= limit || written == 0 {
            return out.write_all(&bytes);
        }
        // What stays is more severe and not shorter, so that a share of the results takes about that share of the bytes.
        most = (written.min(most) * limit / size * 19 / 20).min(written - 1);
    }
}

/// Bytes that are left after compression; those of a log that is small enough as it is are not counted.
fn compressed(bytes: &[u8], limit: usize) -> io::Result<usize> {
    if bytes.len() <= limit {
        return Ok(bytes.len());
    }
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut encoder = flate2::write::GzEncoder::new(Counter(0), flate2::Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.0)
}

fn log<'a>(document: &Document<'a>, options: Options<'_>, most: usize) -> Log<'a> {
    let places = Places::new(document);
    let (chosen, left_out) = choose(document, options, most);
    let mut notifications = gap_notifications(document, &places);
    if left_out > 0 {
        notifications.insert(0, cut_notification(left_out, most));
    }
    notifications.extend(options.note.map(|note| warning(note.to_owned(), "findings-left-out")));
    let mut results = Results::new(document, &places, options.show_suppressed);
    let results = chosen.into_iter().map(|(finding, reason)| results.item(finding, reason)).collect();
    let run = Run {
        tool: Tool { driver: driver(document) },
        automation_details: document.info.category.as_deref().map(|category| AutomationDetails { id: format!("{category}/") }),
        invocations: [Invocation { execution_successful: true, tool_execution_notifications: notifications }],
        original_uri_base_ids: base_ids(document),
        version_control_provenance: provenance(document, &places),
        column_kind: ColumnKind::Utf16CodeUnits,
        results,
    };
    Log { schema: SCHEMA, version: "2.1.0", runs: [run] }
}

/// A finding to write, with the reason if it is suppressed.
type Chosen<'a> = (&'a Finding, Option<&'a str>);

/// The findings to write, in order, and how many had to be left out: the least severe, and of those the last.
fn choose<'a>(document: &Document<'a>, options: Options<'_>, most: usize) -> (Vec<Chosen<'a>>, usize) {
    let report = document.report;
    let suppressed = report.suppressed.iter().filter(|_| options.show_suppressed);
    // An upload stands for everything that is there: what the base has too is left in, marked as such, or GitHub would close its alerts.
    let all: Vec<Chosen<'a>> = report
        .findings
        .iter()
        .chain(&report.known)
        .map(|finding| (finding, None))
        .chain(suppressed.map(|(finding, reason)| (finding, Some(reason.as_str()))))
        .filter(|(finding, _)| finding.level != Level::Off)
        .collect();
    let left_out = all.len().saturating_sub(most);
    if left_out == 0 {
        return (all, 0);
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| (all[*at].1.is_some(), std::cmp::Reverse(all[*at].0.level), *at));
    order.truncate(most);
    order.sort_unstable();
    (order.into_iter().map(|at| all[at]).collect(), left_out)
}

fn driver<'a>(document: &Document<'a>) -> Driver<'a> {
    let version = document.info.tool_version.as_str();
    Driver {
        name: TOOL_NAME,
        full_name: format!("{TOOL_NAME} {version}"),
        version,
        semantic_version: version,
        information_uri: TOOL_HOME,
        rules: RULES.iter().map(rule).collect(),
    }
}

fn rule(meta: &'static RuleMeta) -> Rule<'static> {
    let page = rule_page(meta.slug);
    let link = format!("\n[The page of {} on the web]({page})\n", meta.id);
    Rule {
        id: &meta.id,
        name: &meta.name,
        short_description: Text { text: meta.summary.clone() },
        full_description: Text { text: meta.description.clone() },
        message_strings: meta.messages.iter().map(|(key, text)| (key.as_str(), Text { text: text.clone() })).collect(),
        default_configuration: Configuration { enabled: meta.level != Level::Off, level: severity(meta.level) },
        help_uri: page,
        help: Help { text: format!("{}\n\n{}", meta.summary, meta.description), markdown: Cow::Owned(format!("{}{link}", meta.page)) },
        properties: RuleProperties {
            tags: &meta.tags,
            precision: meta.precision.word(),
            problem_severity: match meta.level {
                Level::Error => ProblemSeverity::Error,
                Level::Warning => ProblemSeverity::Warning,
                Level::Note | Level::Off => ProblemSeverity::Recommendation,
            },
        },
    }
}

const fn severity(level: Level) -> Severity {
    match level {
        Level::Error => Severity::Error,
        Level::Warning => Severity::Warning,
        Level::Note | Level::Off => Severity::Note,
    }
}

fn base_ids(document: &Document<'_>) -> BTreeMap<BaseId, Described> {
    let describe = |text: &str| Described { description: Text { text: text.to_owned() } };
    let mut ids = BTreeMap::from([(BaseId::SourceRoot, describe("The root of the checked-out repository."))]);
    if document.info.sources.iter().any(|source| !source.is_main) {
        ids.insert(BaseId::Companions, describe("Directory that holds one checkout per pinned companion repository."));
    }
    ids
}

/// The main repository first, then the companions in the order of the profile; local repositories have no public address and are left out.
fn provenance(document: &Document<'_>, places: &Places<'_>) -> Vec<VersionControl> {
    let mut sources: Vec<_> = document.info.sources.iter().collect();
    sources.sort_by_key(|source| !source.is_main);
    let entry = |source: &&super::SourceInfo| {
        let address = source.repository.as_deref().and_then(host_path)?;
        let folder = places.folder(&source.id).filter(|_| !source.is_main);
        Some(VersionControl {
            repository_uri: format!("https://{}", percent_encode(&address)),
            revision_id: source.commit.clone(),
            mapped_to: match folder {
                Some(folder) => ArtifactLocation { uri: Some(format!("{}/", percent_encode(folder))), uri_base_id: BaseId::Companions },
                None => ArtifactLocation { uri: None, uri_base_id: BaseId::SourceRoot },
            },
            properties: source.patched_tree.clone().map(|patched_tree| PatchProperties { patched_tree }),
        })
    };
    sources.iter().filter_map(entry).collect()
}

fn gap_notifications(document: &Document<'_>, places: &Places<'_>) -> Vec<Notification> {
    let gaps = &document.report.gaps;
    let mut notifications: Vec<Notification> =
        gaps.iter().take(MAX_NOTIFICATIONS).map(|gap| gap_notification(gap, document, places)).collect();
    if let Some(more) = gaps.len().checked_sub(MAX_NOTIFICATIONS).filter(|more| *more > 0) {
        notifications.push(warning(format!("{} more could not be listed here.", plural(more, "gap")), "gaps-left-out"));
    }
    notifications
}

fn gap_notification(gap: &Gap, document: &Document<'_>, places: &Places<'_>) -> Notification {
    let mut text = sanitize(&gap.cause).into_owned();
    if !gap.next.is_empty() {
        text = format!("{text} {}", sanitize(&gap.next));
    }
    if !gap.source.is_empty() {
        text = format!("Source '{}': {text}", sanitize(&gap.source));
    }
    let locations = match gap.span {
        Some(span) if (span.file.0 as usize) < document.files.len() => vec![result::location(span, document, places)],
        _ if gap.path.is_empty() => Vec::new(),
        _ => vec![whole_file(&places.address_in(&gap.source, &gap.path))],
    };
    Notification {
        level: if gap.kind.is_fatal() && !gap.allowed { Severity::Error } else { Severity::Warning },
        message: Text { text },
        locations,
        properties: NotificationProperties { kind: gap.kind.word() },
    }
}

fn cut_notification(left_out: usize, most: usize) -> Notification {
    let why = if most < MAX_RESULTS { "takes 10 MB of compressed log".to_owned() } else { format!("shows {MAX_RESULTS} results") };
    let text = format!("{} left out, the least severe ones: GitHub {why}.", plural(left_out, "result"));
    warning(text, "results-left-out")
}

fn warning(text: String, kind: &'static str) -> Notification {
    Notification { level: Severity::Warning, message: Text { text }, locations: Vec::new(), properties: NotificationProperties { kind } }
}

fn artifact(address: &Address) -> ArtifactLocation {
    let uri_base_id = match address {
        Address::Main(_) => BaseId::SourceRoot,
        Address::Companion(_) => BaseId::Companions,
    };
    ArtifactLocation { uri: Some(percent_encode(address.path())), uri_base_id }
}

fn whole_file(address: &Address) -> Location {
    let physical_location = PhysicalLocation { artifact_location: artifact(address), region: None, context_region: None };
    Location { id: None, physical_location, message: None }
}
