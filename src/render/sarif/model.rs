//! The part of SARIF 2.1.0 that is written, as types: words with a fixed spelling are enums, what may be absent is left out.

use std::collections::BTreeMap;

use serde::Serialize;

/// Schema address that both validators accept.
pub(super) const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// A whole log.
#[derive(Serialize)]
pub(super) struct Log<'a> {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) runs: [Run<'a>; 1],
}

/// The one run of a log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run<'a> {
    pub(super) tool: Tool<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) automation_details: Option<AutomationDetails>,
    pub(super) invocations: [Invocation; 1],
    pub(super) original_uri_base_ids: BTreeMap<BaseId, Described>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) version_control_provenance: Vec<VersionControl>,
    pub(super) column_kind: ColumnKind,
    pub(super) results: Vec<ResultItem<'a>>,
}

/// Unit of columns.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ColumnKind {
    Utf16CodeUnits,
}

/// Folder that a path is relative to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum BaseId {
    #[serde(rename = "%SRCROOT%")]
    SourceRoot,
    #[serde(rename = "COMPANIONS")]
    Companions,
}

#[derive(Serialize)]
pub(super) struct Described {
    pub(super) description: Text,
}

#[derive(Serialize)]
pub(super) struct Tool<'a> {
    pub(super) driver: Driver<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Driver<'a> {
    pub(super) name: &'static str,
    pub(super) full_name: String,
    pub(super) version: &'a str,
    pub(super) semantic_version: &'a str,
    pub(super) information_uri: &'static str,
    pub(super) rules: Vec<Rule<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) short_description: Text,
    pub(super) full_description: Text,
    pub(super) message_strings: BTreeMap<&'a str, Text>,
    pub(super) default_configuration: Configuration,
    pub(super) help_uri: String,
    pub(super) help: Help<'a>,
    pub(super) properties: RuleProperties<'a>,
}

#[derive(Serialize)]
pub(super) struct Help<'a> {
    pub(super) text: String,
    pub(super) markdown: std::borrow::Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct Configuration {
    pub(super) enabled: bool,
    pub(super) level: Severity,
}

#[derive(Serialize)]
pub(super) struct RuleProperties<'a> {
    pub(super) tags: &'a [String],
    pub(super) precision: &'static str,
    #[serde(rename = "problem.severity")]
    pub(super) problem_severity: ProblemSeverity,
}

/// Level of a rule, result or notification.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Note,
    Warning,
    Error,
}

/// GitHub's words for the seriousness of a quality rule.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProblemSeverity {
    Recommendation,
    Warning,
    Error,
}

#[derive(Clone, Serialize)]
pub(super) struct Text {
    pub(super) text: String,
}

#[derive(Serialize)]
pub(super) struct AutomationDetails {
    pub(super) id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invocation {
    pub(super) execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
pub(super) struct Notification {
    pub(super) level: Severity,
    pub(super) message: Text,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) locations: Vec<Location>,
    pub(super) properties: NotificationProperties,
}

#[derive(Serialize)]
pub(super) struct NotificationProperties {
    pub(super) kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionControl {
    pub(super) repository_uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision_id: Option<String>,
    pub(super) mapped_to: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) properties: Option<PatchProperties>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchProperties {
    pub(super) patched_tree: String,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uri: Option<String>,
    pub(super) uri_base_id: BaseId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultItem<'a> {
    pub(super) rule_id: &'a str,
    pub(super) rule_index: usize,
    pub(super) level: Severity,
    pub(super) kind: ResultKind,
    pub(super) message: ResultMessage<'a>,
    pub(super) locations: [Location; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) related_locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) code_flows: Vec<CodeFlow>,
    pub(super) partial_fingerprints: Fingerprints,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baseline_state: Option<BaselineState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) suppressions: Option<Vec<SuppressionItem>>,
    pub(super) properties: ResultProperties<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BaselineState {
    New,
    Unchanged,
    Updated,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResultKind {
    Fail,
}

#[derive(Serialize)]
pub(super) struct ResultMessage<'a> {
    pub(super) text: String,
    pub(super) id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) arguments: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fingerprints {
    pub(super) primary_location_line_hash: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultProperties<'a> {
    pub(super) symbol: std::borrow::Cow<'a, str>,
    pub(super) source: String,
    pub(super) from_patch: bool,
}

#[derive(Serialize)]
pub(super) struct SuppressionItem {
    pub(super) kind: SuppressionKind,
    pub(super) justification: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SuppressionKind {
    InSource,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<usize>,
    pub(super) physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Text>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PhysicalLocation {
    pub(super) artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) region: Option<Region>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context_region: Option<Region>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Region {
    pub(super) start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start_column: Option<u32>,
    pub(super) end_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end_column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) snippet: Option<Text>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CodeFlow {
    pub(super) thread_flows: [ThreadFlow; 1],
}

#[derive(Serialize)]
pub(super) struct ThreadFlow {
    pub(super) locations: Vec<ThreadFlowLocation>,
}

#[derive(Serialize)]
pub(super) struct ThreadFlowLocation {
    pub(super) location: Location,
}
