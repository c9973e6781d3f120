//! One finding as a SARIF result.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::catalog::RULES;
use crate::findings::compare::Change;
use crate::findings::fingerprint::Prints;
use crate::findings::{Finding, Step};
use crate::text::{ColumnUnit, Span, sanitize};

use super::super::Document;
use super::super::places::{Anchor, Places};
use super::model::{
    BaselineState, CodeFlow, Fingerprints, Location, PhysicalLocation, Region, ResultItem, ResultKind, ResultMessage, ResultProperties,
    SuppressionItem, SuppressionKind, Text, ThreadFlow, ThreadFlowLocation,
};
use super::{artifact, severity};

/// Second places that a message refers to; more are counted.
const MAX_RELATED: usize = 9;
/// Steps of one chain; from a longer one, the middle is left out.
const MAX_STEPS: usize = 100;
/// Lines shown above and below a region.
const CONTEXT_LINES: u32 = 2;
/// Bytes of whole lines shown as context at most; among longer lines, only the neighbourhood on the same line is.
const LONGEST_CONTEXT: usize = 4_000;
/// Bytes of that neighbourhood on either side.
const NEIGHBOURHOOD: u32 = 100;

/// Turns findings into results; keeps the fingerprints of each file.
pub(super) struct Results<'d, 'a> {
    document: &'d Document<'a>,
    places: &'d Places<'a>,
    show_suppressed: bool,
    prints: Prints<'a>,
    indices: BTreeMap<&'static str, usize>,
}

impl<'d, 'a> Results<'d, 'a> {
    pub(super) fn new(document: &'d Document<'a>, places: &'d Places<'a>, show_suppressed: bool) -> Self {
        let indices = RULES.iter().enumerate().map(|(at, rule)| (rule.id.as_str(), at)).collect();
        Self { document, places, show_suppressed, prints: document.prints(), indices }
    }

    /// The result for one finding; `reason` is given for a suppressed one.
    pub(super) fn item(&mut self, finding: &'a Finding, reason: Option<&str>) -> ResultItem<'a> {
        let anchor = self.places.anchor(finding);
        let primary = self.primary(anchor);
        let related = self.related(finding, anchor);
        let code_flows = self.code_flows(finding, anchor, &primary);
        let suppressions = self.show_suppressed.then(|| {
            let item = |reason: &str| SuppressionItem { kind: SuppressionKind::InSource, justification: sanitize(reason).into_owned() };
            reason.map(item).into_iter().collect()
        });
        ResultItem {
            rule_id: &finding.rule.id,
            rule_index: self.indices.get(finding.rule.id.as_str()).copied().unwrap_or(0),
            level: severity(finding.level),
            kind: ResultKind::Fail,
            message: self.message(finding, anchor, &related),
            locations: [primary],
            related_locations: related,
            code_flows,
            partial_fingerprints: Fingerprints { primary_location_line_hash: self.prints.of(finding) },
            suppressions,
            baseline_state: finding.change.map(|change| match change {
                Change::New => BaselineState::New,
                Change::Changed => BaselineState::Updated,
                Change::Unchanged => BaselineState::Unchanged,
            }),
            properties: ResultProperties {
                symbol: sanitize(&finding.symbol),
                source: sanitize(&self.document.files.get(finding.primary.file).source).into_owned(),
                from_patch: finding.from_patch,
            },
        }
    }

    fn primary(&self, anchor: Anchor) -> Location {
        match anchor.shown {
            Some(span) => location(span, self.document, self.places),
            None => {
                let region = Region { start_line: 1, start_column: None, end_line: 1, end_column: None, snippet: None };
                let artifact_location = artifact(&self.places.profile());
                Location {
                    id: None,
                    physical_location: PhysicalLocation { artifact_location, region: Some(region), context_region: None },
                    message: None,
                }
            }
        }
    }

    /// Second places with ids from 1: the companion's own line, if there is one, and then the finding's.
    fn related(&self, finding: &Finding, anchor: Anchor) -> Vec<Location> {
        let own = anchor.companion.map(|span| (span, "the companion source"));
        let theirs = finding.related.iter().map(|related| (related.span, related.message.as_str()));
        own.into_iter()
            .chain(theirs.take(MAX_RELATED))
            .enumerate()
            .map(|(at, (span, message))| {
                let text = Text { text: escape_links(message).into_owned() };
                Location { id: Some(at + 1), message: Some(text), ..location(span, self.document, self.places) }
            })
            .collect()
    }

    /// The message, followed by a link to each second place.
    fn message(&self, finding: &'a Finding, anchor: Anchor, related: &[Location]) -> ResultMessage<'a> {
        let arguments: Vec<String> = finding.arguments.iter().map(|argument| escape_links(argument).into_owned()).collect();
        let mut text = finding.rule.format(finding.message, &arguments);
        for place in related {
            let (Some(id), Some(message)) = (place.id, &place.message) else { continue };
            let link = link_text(&message.text);
            text.push_str(&match anchor.companion {
                Some(span) if id == 1 => {
                    let place = escape_links(&self.places.on_the_web(span, finding.from_patch)).into_owned();
                    format!(" See [{link}]({id}) at {place}.")
                }
                _ => format!(" See [{link}]({id})."),
            });
        }
        if let Some(more) = finding.related.len().checked_sub(MAX_RELATED).filter(|more| *more > 0) {
            text.push_str(&format!(" {more} more places are not listed."));
        }
        ResultMessage { text, id: finding.message, arguments }
    }

    /// The chain, ending on the line that the result is shown at.
    fn code_flows(&self, finding: &Finding, anchor: Anchor, primary: &Location) -> Vec<CodeFlow> {
        if finding.flow.is_empty() && anchor.companion.is_none() {
            return Vec::new();
        }
        let mut locations: Vec<ThreadFlowLocation> = Vec::new();
        if finding.flow.is_empty() {
            locations.extend(anchor.companion.map(|span| self.step(span, "The finding, in the companion source")));
        }
        let (head, tail, cut) = shortened(&finding.flow);
        locations.extend(head.iter().map(|step| self.step(step.span, &step.message)));
        if cut > 0
            && let Some(last) = locations.last_mut().and_then(|step| step.location.message.as_mut())
        {
            last.text.push_str(&format!(" ({cut} steps after this one are not listed)"));
        }
        locations.extend(tail.iter().map(|step| self.step(step.span, &step.message)));
        let ends_there = finding.flow.last().is_some_and(|step| Some(step.span) == anchor.shown);
        if !ends_there {
            let message = match anchor.companion {
                Some(_) => "Where this repository leads there",
                None => "The finding",
            };
            let location = Location { message: Some(Text { text: message.to_owned() }), ..primary.clone() };
            locations.push(ThreadFlowLocation { location });
        }
        vec![CodeFlow { thread_flows: [ThreadFlow { locations }] }]
    }

    fn step(&self, span: Span, message: &str) -> ThreadFlowLocation {
        let text = Text { text: escape_links(message).into_owned() };
        ThreadFlowLocation { location: Location { message: Some(text), ..location(span, self.document, self.places) } }
    }
}

/// The first and last steps of a chain, and how many were left out between them.
fn shortened(flow: &[Step]) -> (&[Step], &[Step], usize) {
    if flow.len() < MAX_STEPS {
        return (flow, &[], 0);
    }
    let half = (MAX_STEPS - 2) / 2;
    (&flow[..half], &flow[flow.len() - half..], flow.len() - 2 * half)
}

/// A place with its snippet and context.
pub(super) fn location(span: Span, document: &Document<'_>, places: &Places<'_>) -> Location {
    let file = document.files.get(span.file);
    let span = places.one_line(span);
    let start = file.position(span.start, ColumnUnit::Utf16);
    let end = file.position(span.end, ColumnUnit::Utf16);
    let region = Region {
        start_line: start.line,
        start_column: Some(start.column),
        end_line: start.line,
        end_column: Some(end.column.max(start.column)),
        snippet: Some(Text { text: document.files.slice(span).to_owned() }),
    };
    let artifact_location = artifact(&places.address(span.file));
    let context_region = context(span, document);
    Location { id: None, physical_location: PhysicalLocation { artifact_location, region: Some(region), context_region }, message: None }
}

/// What surrounds a one-line span: the lines around it or, if they are too long, its neighbourhood. `None` if there is nothing beyond it.
fn context(span: Span, document: &Document<'_>) -> Option<Region> {
    let file = document.files.get(span.file);
    let line = file.line_of(span.start);
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let last = (line + CONTEXT_LINES).min(file.line_count());
    let (start, _) = file.line_range(first)?;
    let (_, end) = file.line_range(last)?;
    let text = file.text.get(start as usize..end as usize)?;
    if text.len() > LONGEST_CONTEXT {
        return neighbourhood(span, document);
    }
    let wider = start < span.start || end > span.end || first < line || last > line;
    let snippet = Some(Text { text: text.to_owned() });
    wider.then_some(Region { start_line: first, start_column: None, end_line: last, end_column: None, snippet })
}

/// The part of the same line around a span.
fn neighbourhood(span: Span, document: &Document<'_>) -> Option<Region> {
    let file = document.files.get(span.file);
    let (first, last) = file.line_range(file.line_of(span.start))?;
    let inner = |offset: u32| (0..4).map(|back| offset.saturating_sub(back)).find(|at| file.text.is_char_boundary(*at as usize));
    let start = inner(span.start.saturating_sub(NEIGHBOURHOOD).max(first))?;
    let end = inner(span.end.saturating_add(NEIGHBOURHOOD).min(last))?;
    if start >= span.start && end <= span.end {
        return None;
    }
    let (from, to) = (file.position(start, ColumnUnit::Utf16), file.position(end, ColumnUnit::Utf16));
    let text = file.text.get(start as usize..end as usize)?.to_owned();
    let region = Region {
        start_line: from.line,
        start_column: Some(from.column),
        end_line: from.line,
        end_column: Some(to.column),
        snippet: Some(Text { text }),
    };
    Some(region)
}

/// Text for a message: nothing that steers a terminal, and no accidental link. Square brackets are escaped only where SARIF would read
/// a link, since GitHub may show the backslash.
pub(super) fn escape_links(text: &str) -> Cow<'_, str> {
    let clean = sanitize(text);
    if clean.contains("](") { Cow::Owned(clean.replace('[', "\\[").replace(']', "\\]")) } else { clean }
}

/// Text inside the brackets of a link.
fn link_text(text: &str) -> Cow<'_, str> {
    if text.contains(['[', ']']) && !text.contains("\\[") { Cow::Owned(text.replace('[', "\\[").replace(']', "\\]")) } else { text.into() }
}
