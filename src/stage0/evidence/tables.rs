//! Rows of Markdown tables and objects of JSON, as named cells.
//!
//! In: the text of a document. Out: rows with their header names in lower case. Refused: tables without a header line.

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Line, from 1; the first line of the text for JSON, whose objects may share lines.
    pub line: u32,
    /// (header in lower case, text), in order.
    pub cells: Vec<(String, String)>,
}

/// A number, with thousands separators and code marks.
pub(super) fn number(text: &str) -> Option<i64> {
    text.trim().trim_matches('`').replace([',', '_'], "").parse().ok()
}

/// All rows of a text.
pub(super) fn rows(text: &str) -> Vec<Row> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) => of_json(&value, text),
        _ => of_markdown(text),
    }
}

fn of_markdown(text: &str) -> Vec<Row> {
    let mut out = Vec::new();
    let mut header: Option<Vec<String>> = None;
    let mut previous: Option<&str> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.starts_with('|') {
            (header, previous) = (None, None);
            continue;
        }
        let rule = line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
        if rule {
            header = previous.map(|line| cells(line).into_iter().map(|cell| cell.to_lowercase()).collect());
        } else if let Some(header) = &header {
            let line_number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            out.push(Row { line: line_number, cells: header.iter().cloned().zip(cells(line)).collect() });
        }
        previous = Some(line);
    }
    out
}

/// Cells of a line; an escaped bar belongs to its cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut out = vec![String::new()];
    let mut escaped = false;
    for c in line.chars() {
        match c {
            '|' if !escaped => out.push(String::new()),
            _ => {
                if let Some(cell) = out.last_mut() {
                    cell.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    // What follows the last bar is no cell, unless something is written there.
    if out.last().is_some_and(|cell| cell.trim().is_empty()) {
        out.pop();
    }
    out.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Scalar members of every object.
fn of_json(value: &serde_json::Value, text: &str) -> Vec<Row> {
    let mut out = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(members) => {
                let cells: Vec<(String, String)> = members
                    .iter()
                    .filter_map(|(key, value)| match value {
                        serde_json::Value::String(text) => Some((key.to_lowercase(), text.clone())),
                        serde_json::Value::Number(number) => Some((key.to_lowercase(), number.to_string())),
                        _ => None,
                    })
                    .collect();
                if !cells.is_empty() {
                    out.push(Row { line: 1, cells });
                }
                open.extend(members.values().rev());
            }
            serde_json::Value::Array(items) => open.extend(items.iter().rev()),
            _ => {}
        }
    }
    // One object per line is how such files are mostly written: then each row has its own line.
    let starts: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with('{')).map(|(at, _)| at + 1).collect();
    if starts.len() == out.len() {
        for (row, line) in out.iter_mut().zip(starts) {
            row.line = u32::try_from(line).unwrap_or(u32::MAX);
        }
    }
    out
}
