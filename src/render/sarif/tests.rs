//! What the validators do not catch. Set `RLK_KEEP_LOGS` to a folder to keep the logs for a look by hand.

use serde_json::Value;

use super::*;
use crate::findings::{Related, Step};
use crate::render::testing::{KERNEL, KERNEL_COMMIT, MAIN_COMMIT, Sample, TRAIN, sample, span_of};
use crate::text::{FileId, Span, TextFile};

fn rendered(name: &str, sample: &Sample, options: Options<'_>) -> Value {
    let mut out = Vec::new();
    write(sample.document(), options, &mut out).unwrap();
    if let Some(folder) = std::env::var_os("RLK_KEEP_LOGS") {
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.sarif")), &out).unwrap();
    }
    serde_json::from_slice(&out).unwrap()
}

fn run_of(log: &Value) -> &Value {
    let runs = log["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "two runs of one tool stop the upload");
    &runs[0]
}

fn results(log: &Value) -> &[Value] {
    run_of(log)["results"].as_array().unwrap()
}

/// Every string under a key, anywhere below.
fn strings<'a>(value: &'a Value, key: &str, out: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                match inner {
                    Value::String(text) if name == key => out.push(text),
                    other => strings(other, key, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, key, out)),
        _ => {}
    }
}

/// Numbers in `[text](number)` of a message, escaped brackets apart.
fn link_targets(message: &str) -> Vec<u64> {
    let bytes = message.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    (1..bytes.len())
        .filter(|at_close| at(*at_close) == b']' && at(at_close - 1) != b'\\' && at(at_close + 1) == b'(')
        .map(|close| message[close + 2..].split(')').next().unwrap().parse().expect("a number"))
        .collect()
}

#[test]
fn every_link_in_a_message_leads_to_a_related_location_and_every_one_is_linked() {
    let log = rendered("links", &sample(), Options { show_suppressed: true, note: None });
    let mut linked = 0;
    for result in results(&log) {
        let related = result.get("relatedLocations").and_then(Value::as_array).cloned().unwrap_or_default();
        let ids: Vec<u64> = related.iter().map(|location| location["id"].as_u64().unwrap()).collect();
        assert_eq!(link_targets(result["message"]["text"].as_str().unwrap()), ids);
        assert!(related.iter().all(|location| !location["message"]["text"].as_str().unwrap().is_empty()));
        linked += ids.len();
    }
    assert_eq!(linked, 3);
}

#[test]
fn what_looks_like_a_link_in_source_text_is_none() {
    let log = rendered("escaped", &sample(), Options::default());
    assert!(results(&log)[1]["message"]["text"].as_str().unwrap().contains("launch\\[grid\\](7) \\u{202e}"));
    assert_eq!(results(&log)[1]["message"]["arguments"][1], "launch\\[grid\\](7) \\u{202e}");
}

#[test]
fn no_rule_has_more_than_ten_tags_or_a_security_severity() {
    let log = rendered("rules", &sample(), Options::default());
    let rules = run_of(&log)["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), RULES.len());
    for rule in rules {
        assert!(rule["properties"]["tags"].as_array().unwrap().len() <= 10, "{}", rule["id"]);
        assert!(rule["properties"].get("security-severity").is_none(), "{}", rule["id"]);
    }
}

#[test]
fn every_result_has_a_fingerprint_of_its_own_line() {
    let sample = sample();
    let log = rendered("fingerprints", &sample, Options::default());
    let expected = |file, line| crate::findings::fingerprint::LineHashes::of(&sample.files.get(file).text).line(line).unwrap();
    let hashes: Vec<&str> =
        results(&log).iter().map(|result| result["partialFingerprints"]["primaryLocationLineHash"].as_str().unwrap()).collect();
    // Those of the companion's lines 2 and 3 are 2e2b4295d17d14b1:1 and 47fa61cec1d7eaf4:1; its source and path, each with an end marker, are mixed in.
    assert_eq!([expected(KERNEL, 2), expected(KERNEL, 3)], ["2e2b4295d17d14b1:1", "47fa61cec1d7eaf4:1"]);
    assert_eq!(hashes, [&*expected(TRAIN, 3), "2628c18bfe8bef87:1", "d5faddb005b8f096:1"]);
}

#[test]
fn moving_the_pin_keeps_the_fingerprint_and_the_paths() {
    let before = rendered("before", &sample(), Options::default());
    let mut moved = sample();
    let other = "3333333333333333333333333333333333333333";
    moved.info.sources[0].commit = Some(other.into());
    let after = rendered("after", &moved, Options::default());
    for (one, two) in results(&before).iter().zip(results(&after)) {
        for key in ["ruleId", "locations", "partialFingerprints", "relatedLocations", "codeFlows"] {
            assert_eq!(one.get(key), two.get(key), "{key}");
        }
    }
    let mut uris = Vec::new();
    strings(&after, "uri", &mut uris);
    assert!(uris.iter().all(|uri| !uri.contains(other) && !uri.contains(MAIN_COMMIT)));
}

#[test]
fn every_primary_location_lies_in_the_main_repository() {
    let log = rendered("primary", &sample(), Options { show_suppressed: true, note: None });
    for result in results(&log) {
        let locations = result["locations"].as_array().unwrap();
        assert_eq!(locations.len(), 1);
        let place = &locations[0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
        assert_eq!(place["region"]["startLine"], place["region"]["endLine"]);
        assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
    }
    let shown = |at: usize| &results(&log)[at]["locations"][0]["physicalLocation"];
    assert_eq!(shown(1)["artifactLocation"]["uri"], "train.py");
    assert_eq!(shown(1)["region"]["snippet"]["text"], "gemm.run()");
    assert_eq!(shown(2)["artifactLocation"]["uri"], "rlk-lint.toml");
    assert_eq!(shown(2)["region"]["startLine"], 3);
}

#[test]
fn no_location_has_a_scheme_a_root_or_a_commit() {
    let mut sample = sample();
    let odd = sample.files.add(TextFile::new("main", "./a b/#é%:?.py", "z\n"));
    sample.report.findings[0].primary = Span::new(odd, 0, 1);
    let log = rendered("uris", &sample, Options { show_suppressed: true, note: None });
    let mut uris = Vec::new();
    strings(&run_of(&log)["results"], "uri", &mut uris);
    strings(&run_of(&log)["invocations"], "uri", &mut uris);
    assert!(uris.contains(&"a%20b/%23%C3%A9%25%3A%3F.py"));
    assert!(uris.contains(&"github.com/rl-align/rl-kernel/rl_engine/gemm.py"));
    for uri in uris {
        assert!(!uri.contains(':') && !uri.starts_with(['/', '.']) && !uri.contains(KERNEL_COMMIT), "{uri}");
    }
}

#[test]
fn columns_are_utf16_units() {
    // Line 3 is `x = "é😀"; gemm.run()`: before the call stand x, space, =, space, quote, é, 😀 (two units), quote, ;, space: 11 units.
    let log = rendered("columns", &sample(), Options::default());
    assert_eq!(run_of(&log)["columnKind"], "utf16CodeUnits");
    let region = &results(&log)[1]["locations"][0]["physicalLocation"]["region"];
    assert_eq!((region["startColumn"].as_u64(), region["endColumn"].as_u64()), (Some(12), Some(22)));
}

#[test]
fn a_chain_ends_on_the_primary_location() {
    let mut sample = sample();
    let import = span_of(&sample.files, TRAIN, "import gemm");
    sample.report.findings[0].flow = vec![Step { span: import, message: "an import".into() }];
    let log = rendered("flows", &sample, Options::default());
    for result in results(&log) {
        let steps = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
        assert!(steps.len() >= 2);
        assert_eq!(steps.last().unwrap()["location"]["physicalLocation"], result["locations"][0]["physicalLocation"]);
        assert!(steps.iter().all(|step| step["location"]["message"]["text"].is_string()));
    }
    let first = &results(&log)[2]["codeFlows"][0]["threadFlows"][0]["locations"][0]["location"]["physicalLocation"];
    assert_eq!(first["artifactLocation"]["uri"], "github.com/rl-align/rl-kernel/rl_engine/gemm.py");
}

#[test]
fn provenance_names_the_commits_and_no_password() {
    let log = rendered("provenance", &sample(), Options::default());
    let provenance = run_of(&log)["versionControlProvenance"].as_array().unwrap();
    assert_eq!(provenance[0]["repositoryUri"], "https://github.com/rl-align/main");
    assert_eq!(provenance[0]["revisionId"], MAIN_COMMIT);
    assert_eq!(provenance[0]["mappedTo"]["uriBaseId"], "%SRCROOT%");
    assert_eq!(provenance[1]["repositoryUri"], "https://github.com/rl-align/rl-kernel");
    assert_eq!(provenance[1]["revisionId"], KERNEL_COMMIT);
    assert_eq!(provenance[1]["mappedTo"]["uri"], "github.com/rl-align/rl-kernel/");
    assert!(!log.to_string().contains("token:x"));
}

#[test]
fn gaps_are_notifications_and_the_run_stays_successful() {
    let log = rendered("gaps", &sample(), Options::default());
    let invocation = &run_of(&log)["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    let notes = invocation["toolExecutionNotifications"].as_array().unwrap();
    assert_eq!(notes[0]["level"], "error");
    assert_eq!(notes[0]["message"]["text"], "Source 'vllm': It was not there. Give its path.");
    assert_eq!(notes[1]["level"], "warning");
    assert_eq!(notes[1]["properties"]["kind"], "syntax");
    assert_eq!(notes[1]["locations"][0]["physicalLocation"]["region"]["startLine"], 3);
}

#[test]
fn the_category_is_left_to_the_upload_unless_given() {
    assert!(run_of(&rendered("plain", &sample(), Options::default())).get("automationDetails").is_none());
    let mut sample = sample();
    sample.info.category = Some("rocm".into());
    assert_eq!(run_of(&rendered("category", &sample, Options::default()))["automationDetails"]["id"], "rocm/");
}

#[test]
fn suppressed_findings_are_left_out_unless_asked_for() {
    let log = rendered("unsuppressed", &sample(), Options::default());
    assert_eq!(results(&log).len(), 3);
    assert!(results(&log).iter().all(|result| result.get("suppressions").is_none()));
    let log = rendered("suppressed", &sample(), Options { show_suppressed: true, note: None });
    assert_eq!(results(&log).len(), 4);
    assert_eq!(results(&log)[0]["suppressions"], Value::Array(vec![]));
    assert_eq!(results(&log)[3]["suppressions"][0]["justification"], "it is only\\u{1b} a test");
}

#[test]
fn a_clean_run_writes_an_empty_list_of_results() {
    let mut sample = sample();
    sample.report = crate::findings::Report::default();
    let log = rendered("clean", &sample, Options::default());
    assert_eq!(run_of(&log)["results"], Value::Array(vec![]));
}

#[test]
fn of_too_many_results_the_most_severe_stay_in_order() {
    let mut sample = sample();
    let text: String = (0..30_000).map(|line| format!("value_{line} = gemm_{line}.run(a, b)\n")).collect();
    let file = sample.files.add(TextFile::new("main", "many.py", text));
    let names: Vec<String> = (0..30_000).map(|line| format!("gemm_{line}.run")).collect();
    let mut at = 0;
    sample.report.findings.clear();
    for (line, name) in names.iter().enumerate() {
        let start = u32::try_from(sample.files.get(file).text[at..].find(name.as_str()).unwrap() + at).unwrap();
        at = start as usize;
        let span = Span::new(file, start, start + u32::try_from(name.len()).unwrap());
        let mut finding =
            Finding::new(crate::catalog::rule("RLK101").unwrap(), "default", vec![name.clone(), "x".into()], span, name.clone());
        finding.level = if line % 3 == 0 { Level::Note } else { Level::Error };
        finding.flow = vec![Step { span: span_of(&sample.files, TRAIN, "import gemm"), message: "the trainer starts".into() }];
        sample.report.findings.push(finding);
    }
    let log = rendered("many", &sample, Options::default());
    let results = results(&log);
    assert_eq!(results.len(), MAX_RESULTS);
    assert!(results.iter().all(|result| result["level"] == "error"), "there are 20,000 errors");
    let lines: Vec<u64> =
        results.iter().map(|result| result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64().unwrap()).collect();
    assert!(lines.is_sorted());
    let note = &run_of(&log)["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(note["message"]["text"], "25000 results left out, the least severe ones: GitHub shows 5000 results.");
}

#[test]
fn a_log_that_compresses_badly_is_cut_to_what_github_takes() {
    let mut sample = sample();
    // Digits without a pattern: about half a byte each.
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", state)
    };
    let template = sample.report.findings[1].clone();
    sample.report.findings = (0..400)
        .map(|at| {
            let mut finding = template.clone();
            finding.level = if at % 2 == 0 { Level::Error } else { Level::Note };
            finding.arguments[0] = (0..8).map(|_| noise()).collect();
            finding
        })
        .collect();
    let mut out = Vec::new();
    write_within(sample.document(), Options::default(), usize::MAX, &mut out).unwrap();
    let limit = compressed(&out, 0).unwrap() * 2 / 3;
    out.clear();
    write_within(sample.document(), Options::default(), limit, &mut out).unwrap();
    assert!(compressed(&out, limit).unwrap() <= limit);
    let log: Value = serde_json::from_slice(&out).unwrap();
    let kept = results(&log);
    assert!(kept.len() > 50 && kept.len() < 400, "{}", kept.len());
    let errors = kept.iter().filter(|result| result["level"] == "error").count();
    assert_eq!(errors, kept.len().min(200), "the most severe stay");
    let note = run_of(&log)["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap();
    assert_eq!(note, format!("{} results left out, the least severe ones: GitHub takes 10 MB of compressed log.", 400 - kept.len()));
}

#[test]
fn many_second_places_and_long_chains_are_cut_and_counted() {
    let mut sample = sample();
    let span = span_of(&sample.files, TRAIN, "import gemm");
    sample.report.findings[0].related = (0..30).map(|at| Related { span, message: format!("place {at}") }).collect();
    sample.report.findings[0].flow = (0..500).map(|at| Step { span, message: format!("step {at}") }).collect();
    let log = rendered("long", &sample, Options::default());
    let result = &results(&log)[0];
    assert_eq!(result["relatedLocations"].as_array().unwrap().len(), 9);
    assert!(result["message"]["text"].as_str().unwrap().ends_with(" 21 more places are not listed."));
    let steps = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
    assert!(steps.len() <= 100);
    assert_eq!(steps[48]["location"]["message"]["text"], "step 48 (402 steps after this one are not listed)");
    assert_eq!(steps[49]["location"]["message"]["text"], "step 451");
}

#[test]
fn odd_spans_give_valid_regions() {
    let mut sample = sample();
    let single = sample.files.add(TextFile::new("main", "single.py", "x"));
    let empty = sample.files.add(TextFile::new("main", "empty.py", ""));
    let wide = sample.files.add(TextFile::new("main", "wide.py", format!("a = '{}'\nb\n", "é".repeat(9_000))));
    let template = sample.report.findings[0].clone();
    let mut regions = |name: &str, spans: &[(FileId, u32, u32)]| -> Vec<Value> {
        sample.report.findings = spans
            .iter()
            .map(|(file, start, end)| Finding { primary: Span::new(*file, *start, *end), related: vec![], ..template.clone() })
            .collect();
        let log = rendered(name, &sample, Options::default());
        let places: Vec<Value> = results(&log).iter().map(|result| result["locations"][0]["physicalLocation"].clone()).collect();
        for place in &places {
            let region = &place["region"];
            assert_eq!(region["startLine"], region["endLine"]);
            assert!(region["endColumn"].as_u64() >= region["startColumn"].as_u64());
            assert!(region["snippet"]["text"].as_str().unwrap().chars().count() <= 200);
        }
        places
    };
    let odd = regions("odd", &[(wide, 0, 18_000), (wide, 6, 7), (TRAIN, 3, 40), (TRAIN, 9_000, 9_999), (TRAIN, 20, 10)]);
    let context = &odd[0]["contextRegion"];
    assert_eq!((context["startColumn"].as_u64(), context["endColumn"].as_u64()), (Some(1), Some(251)));
    // Nothing is larger than the whole file, so that no region can be its context.
    let whole = regions("whole files", &[(single, 0, 1), (empty, 0, 0)]);
    assert!(whole.iter().all(|place| place.get("contextRegion").is_none()), "{whole:?}");
}

#[test]
fn a_companion_without_address_or_commit_still_has_a_place() {
    let mut sample = sample();
    sample.info.sources[0].repository = Some("/srv/secret/rl-kernel".into());
    sample.info.sources[0].commit = None;
    let log = rendered("local", &sample, Options::default());
    assert!(!log.to_string().contains("/srv/secret"));
    let related = &results(&log)[1]["relatedLocations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(related["uri"], "kernel/rl_engine/gemm.py");
    sample.info.sources.clear();
    sample.report.findings.remove(1);
    let log = rendered("unknown", &sample, Options::default());
    assert_eq!(results(&log)[1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "rlk-lint.toml");
}

#[test]
fn a_patched_companion_says_that_its_lines_have_moved() {
    let mut sample = sample();
    sample.info.sources[0].patched_tree = Some("4".repeat(40));
    let second = |log: &Value| results(log)[1]["message"]["text"].as_str().unwrap().to_owned();
    let elsewhere = second(&rendered("patched elsewhere", &sample, Options::default()));
    assert!(elsewhere.ends_with("gemm.py#L2."), "{elsewhere}");
    sample.info.sources[0].patched_files.insert("rl_engine/gemm.py".into());
    let log = rendered("patched", &sample, Options::default());
    let text = |at: usize| results(&log)[at]["message"]["text"].as_str().unwrap().to_owned();
    assert!(text(1).ends_with("gemm.py (line 2 once the companion patch is applied, which leaves this line as it is)."), "{}", text(1));
    assert!(text(2).ends_with("gemm.py:3, a line that the companion patch adds."), "{}", text(2));
    assert_eq!(run_of(&log)["versionControlProvenance"][1]["properties"]["patchedTree"], "4".repeat(40));
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let bytes = || {
        let mut out = Vec::new();
        write(sample().document(), Options { show_suppressed: true, note: None }, &mut out).unwrap();
        out
    };
    assert_eq!(bytes(), bytes());
}
