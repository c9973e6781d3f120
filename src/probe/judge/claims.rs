//! L8: what the software says about itself.
//!
//! In: route lines in logs, readbacks of integrations, and what was executed. Out: problems. A claim can fail a run and never pass one, so all that
//! is noted in its favour is that it was read. Refused: a line that says two things about one key, a readback without the field that would show a
//! fallback, and records of one integration that disagree.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use super::documents::Request;
use super::evidence::{Evidence, Role};
use super::executed::Observed;
use super::link::{Findings, Link, State};

/// What a route line begins with.
const MARK: &str = "[RL-Kernel][route]";
/// Longest line of a log that is looked at.
const LONGEST_LINE: u64 = 1 << 20;
/// Id behind which several implementations stand, so that it shows none of them.
const GENERIC: &str = "rlkernel.rocm.triton_det_gemm";

/// A route line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteLine {
    /// Keys and values in the order of the line.
    pub fields: Vec<(String, String)>,
}

impl RouteLine {
    /// Reads a line; `None` if it is no route line.
    ///
    /// # Errors
    /// If a key stands in it twice.
    #[must_use]
    pub fn parse(line: &str) -> Option<Result<Self, String>> {
        let rest = &line[line.find(MARK)? + MARK.len()..];
        let mut route = Self::default();
        for word in rest.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) => {
                    if route.get(key).is_some() {
                        return Some(Err(key.to_owned()));
                    }
                    route.fields.push((key.to_owned(), value.to_owned()));
                }
                // A reason may hold spaces; its words belong to the value before them.
                None => {
                    if let Some((_, value)) = route.fields.last_mut() {
                        value.push(' ');
                        value.push_str(word);
                    }
                }
            }
        }
        Some(Ok(route))
    }

    /// Value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
    }
}

fn logs(evidence: &Evidence, request: &Request, observed: &Observed, found: &mut Findings) -> u64 {
    let mut lines = 0;
    for entry in evidence.of(Role::Log) {
        let stream = match evidence.stream(entry) {
            Ok(stream) => stream,
            Err(what) => {
                found.problem(Link::L8, State::Incomplete, "log-unreadable", &entry.path, what);
                continue;
            }
        };
        let mut input = BufReader::new(stream);
        let mut bytes = Vec::new();
        let mut number = 0u64;
        loop {
            bytes.clear();
            match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
                Ok(0) => break,
                Ok(_) => number += 1,
                Err(error) => {
                    found.problem(Link::L8, State::Incomplete, "log-unreadable", &entry.path, format!("it cannot be read: {error}"));
                    break;
                }
            }
            let Some(route) = RouteLine::parse(&String::from_utf8_lossy(&bytes)) else { continue };
            lines += 1;
            route_line(route, number, &entry.path, request, observed, found);
        }
    }
    lines
}

fn route_line(line: Result<RouteLine, String>, number: u64, file: &str, request: &Request, observed: &Observed, found: &mut Findings) {
    let mut tell = |state, reason, what: String| found.problem(Link::L8, state, reason, file, format!("line {number}: {what}"));
    let route = match line {
        Ok(route) => route,
        Err(key) => {
            tell(State::Mismatch, "route-line-twice", format!("it says '{key}' twice"));
            return;
        }
    };
    match route.get("fallback") {
        Some("false" | "False" | "0") => {
            if !observed.forbidden.is_empty() {
                let ran = observed.forbidden.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                tell(State::Mismatch, "claim-contradicted", format!("it says fallback=false, and {ran} ran in a window of the family"));
            }
        }
        Some(value) => tell(State::Mismatch, "fallback-claimed", format!("it says fallback={value}")),
        None => tell(State::Incomplete, "fallback-not-stated", "it does not say whether there was a fallback".to_owned()),
    }
    if route.get("module") == Some("gemm") {
        if route.get("requested") == Some("auto") {
            tell(State::Mismatch, "claim-requested-auto", "it says requested=auto, so the software chose".to_owned());
        }
        match route.get("actual") {
            Some(actual) if actual == request.contract => {}
            Some(actual) => {
                tell(State::Mismatch, "claim-other-contract", format!("it says actual={actual}, and the request is {}", request.contract))
            }
            None => tell(State::Incomplete, "claim-without-contract", "it does not say what ran".to_owned()),
        }
    }
}

/// Every value below a key named `key`, with its path, without recursion.
fn all<'a>(value: &'a Value, key: &str) -> Vec<(String, &'a Value)> {
    let mut open = vec![(String::new(), value)];
    let mut hits = Vec::new();
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let path = format!("{path}/{name}");
                    if name == key {
                        hits.push((path.clone(), inner));
                    }
                    open.push((path, inner));
                }
            }
            Value::Array(items) => open.extend(items.iter().enumerate().map(|(index, inner)| (format!("{path}/{index}"), inner))),
            _ => {}
        }
    }
    hits.sort_by(|one, other| one.0.cmp(&other.0));
    hits
}

/// Whether a value says that there was no fallback.
fn denies(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Null => true,
        Value::String(text) => text.is_empty() || text.eq_ignore_ascii_case("false"),
        _ => false,
    }
}

fn readback(value: &Value, file: &str, request: &Request, found: &mut Findings) {
    let mut tell = |state, reason, what: String| found.problem(Link::L8, state, reason, file, what);
    for (path, value) in all(value, "fallback") {
        if !denies(value) {
            tell(State::Mismatch, "fallback-claimed", format!("{path} is {value}"));
        }
    }
    if value.get("fallbacks").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        tell(State::Mismatch, "fallback-claimed", "its list of fallbacks is not empty".to_owned());
    }
    for (path, value) in all(value, "reference_only") {
        if !denies(value) {
            tell(State::Mismatch, "reference-claimed", format!("{path} is {value}"));
        }
    }
    for (path, value) in all(value, "deterministic_projection") {
        let id = value.get("backend_id").and_then(Value::as_str).unwrap_or("");
        if id != request.contract && id != GENERIC {
            tell(State::Mismatch, "claim-other-contract", format!("{path} names backend '{id}', and the request is {}", request.contract));
        }
    }
    let Some(operators) = value.get("operators").and_then(Value::as_object).filter(|operators| !operators.is_empty()) else {
        tell(State::Incomplete, "readback-without-operators", "it names no operator".to_owned());
        return;
    };
    for (name, operator) in operators {
        if operator.get("call_count").and_then(Value::as_u64).unwrap_or(0) == 0 {
            tell(State::Incomplete, "operator-not-called", format!("operator '{name}' was never called"));
        }
        if operator.pointer("/provenance/fallback").is_none() {
            tell(State::Incomplete, "fallback-not-stated", format!("operator '{name}' does not say whether there was a fallback"));
        }
        let hooks = value.get("installed_hooks").and_then(Value::as_object);
        if hooks.is_some_and(|hooks| hooks.get(name).is_none_or(Value::is_null)) {
            tell(State::Mismatch, "hook-not-installed", format!("operator '{name}' has no hook, so what was called is not what it names"));
        }
    }
}

/// Implementations and modes by operator.
type Identity = BTreeMap<String, Vec<String>>;

/// What replicas of one integration have to agree on.
fn identity(value: &Value) -> Identity {
    let operators = value.get("operators").and_then(Value::as_object);
    let field = |operator: &Value, path: &str| operator.pointer(path).map_or_else(String::new, ToString::to_string);
    operators
        .into_iter()
        .flatten()
        .map(|(name, operator)| {
            let paths = [
                "/case_id",
                "/implementation",
                "/backend_id",
                "/execution_mode",
                "/provenance/actual_backend",
                "/provenance/strict_schedule",
            ];
            (name.clone(), paths.iter().map(|path| field(operator, path)).collect())
        })
        .collect()
}

/// L8.
pub fn judge(evidence: &Evidence, request: &Request, observed: &Observed, found: &mut Findings) {
    let lines = logs(evidence, request, observed, found);
    let mut replicas: BTreeMap<(String, String), (String, Identity)> = BTreeMap::new();
    let mut readbacks = 0u64;
    for entry in evidence.of(Role::Readback) {
        match evidence.bytes(entry).and_then(|bytes| serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string())) {
            Err(what) => found.problem(Link::L8, State::Incomplete, "readback-unreadable", &entry.path, what),
            Ok(value) => {
                readbacks += 1;
                readback(&value, &entry.path, request, found);
                let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
                let own = identity(&value);
                match replicas.get(&(text("framework"), text("target"))) {
                    Some((first, other)) if *other != own => {
                        let what = format!("it names other implementations or modes than '{first}', a record of the same integration");
                        found.problem(Link::L8, State::Mismatch, "readbacks-disagree", &entry.path, what);
                    }
                    Some(_) => {}
                    None => {
                        replicas.insert((text("framework"), text("target")), (entry.path.clone(), own));
                    }
                }
            }
        }
    }
    if lines + readbacks > 0 {
        found.fact(Link::L8, format!("{lines} route lines and {readbacks} readbacks; none of them can make a link pass"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_lines_are_read_in_all_their_shapes() {
        let line = "(pid=3) [RL-Kernel][route] mode=strict module=gemm requested=triton_mfma actual=a.v1 fallback=false reason=not on gfx90a new=1";
        let route = RouteLine::parse(line).unwrap().unwrap();
        assert_eq!(route.get("module"), Some("gemm"));
        assert_eq!(route.get("reason"), Some("not on gfx90a"));
        assert_eq!(route.get("new"), Some("1"));
        assert_eq!(RouteLine::parse("[RL-Kernel][route] a=1 b=2 a=1"), Some(Err("a".to_owned())));
        assert_eq!(RouteLine::parse("no route"), None);
    }

    #[test]
    fn a_fallback_is_found_however_deep_it_lies() {
        let mut text = String::new();
        for _ in 0..100 {
            text.push_str("{\"x\":[");
        }
        text.push_str("{\"fallback\": true}");
        for _ in 0..100 {
            text.push_str("]}");
        }
        // Deeper than serde_json nests would be an unreadable readback.
        let value: Result<Value, _> = serde_json::from_str(&text);
        assert!(value.is_err());
        let value = serde_json::json!({"operators": {"a": {"b": [{"fallback": "production"}]}}});
        assert_eq!(all(&value, "fallback").len(), 1);
        assert!(!denies(all(&value, "fallback")[0].1));
    }
}
