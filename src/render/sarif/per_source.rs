//! One log per repository, for an upload to the companions themselves.
//!
//! In: a document and the id of one of its sources. Out: a log in which that source is the checked-out one: its findings on their own lines, under their
//! own paths, with GitHub's own fingerprints. Refused: findings in files that a companion patch touches, whose lines are not those of the commit that
//! the log is for; their number is said.

use std::io::{self, Write};

use super::super::{Document, RunInfo};
use super::{Options, plural, write};
use crate::findings::{Finding, Report};

/// Writes the log of one source.
///
/// # Errors
/// If the writer fails.
pub fn write_for(document: Document<'_>, source: &str, options: Options<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut info: RunInfo = document.info.clone();
    let main = info.sources.iter().find(|source| source.is_main).map(|source| source.id.clone());
    let is_main = main.as_deref() == Some(source);
    info.home = Some(main.unwrap_or_default());
    for other in &mut info.sources {
        other.is_main = other.id == source;
    }
    let patched = info.sources.iter().find(|other| other.id == source).map(|source| source.patched_files.clone()).unwrap_or_default();
    let file = |finding: &Finding| document.files.get(finding.primary.file);
    let ours = |finding: &&Finding| *file(finding).source == *source || (is_main && file(finding).source.is_empty());
    let touched = |finding: &&Finding| *file(finding).source == *source && patched.contains(&*file(finding).path);
    let report = document.report;
    let keep = |findings: &[Finding]| findings.iter().filter(ours).filter(|finding| !touched(finding)).cloned().collect();
    let left_out = report.findings.iter().chain(&report.known).filter(ours).filter(touched).count();
    let own = Report {
        findings: keep(&report.findings),
        known: keep(&report.known),
        suppressed: report.suppressed.iter().filter(|(finding, _)| ours(&finding) && !touched(&finding)).cloned().collect(),
        gaps: report.gaps.iter().filter(|gap| gap.source == source || (is_main && gap.source.is_empty())).cloned().collect(),
        against: report.against.clone(),
        counts: report.counts.clone(),
    };
    let note = (left_out > 0).then(|| {
        format!(
            "{} in files that the companion patch touches left out: their lines are not those of the commit.",
            plural(left_out, "finding")
        )
    });
    let document = Document { report: &own, files: document.files, info: &info };
    write(document, Options { note: note.as_deref(), ..options }, out)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::findings::fingerprint::LineHashes;
    use crate::render::testing::{KERNEL, KERNEL_COMMIT, Sample, sample};

    fn written(sample: &Sample, source: &str) -> Value {
        let mut out = Vec::new();
        write_for(sample.document(), source, Options::default(), &mut out).unwrap();
        if let Some(folder) = std::env::var_os("RLK_KEEP_LOGS") {
            std::fs::write(std::path::Path::new(&folder).join(format!("per-source-{source}.sarif")), &out).unwrap();
        }
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_companions_log_has_native_paths_and_githubs_fingerprints() {
        let sample = sample();
        let log = written(&sample, "kernel");
        let run = &log["runs"][0];
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for (result, line) in results.iter().zip([2, 3]) {
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "rl_engine/gemm.py");
            assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
            assert_eq!(place["region"]["startLine"], line);
            let hash = LineHashes::of(&sample.files.get(KERNEL).text).line(line).unwrap();
            assert_eq!(result["partialFingerprints"]["primaryLocationLineHash"], hash.as_str());
        }
        // The chain starts in the repository that was the main one, which is a companion here.
        let first = &results[0]["codeFlows"][0]["threadFlows"][0]["locations"][0]["location"]["physicalLocation"]["artifactLocation"];
        assert_eq!((first["uri"].as_str(), first["uriBaseId"].as_str()), (Some("github.com/rl-align/main/train.py"), Some("COMPANIONS")));
        let first = &run["versionControlProvenance"][0];
        assert_eq!((first["revisionId"].as_str(), first["mappedTo"]["uriBaseId"].as_str()), (Some(KERNEL_COMMIT), Some("%SRCROOT%")));
        let notes = run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
        assert_eq!(notes.len(), 1, "only its own gap: {notes:?}");
    }

    #[test]
    fn the_main_log_has_what_is_in_the_main_repository_and_on_its_pins() {
        let mut sample = sample();
        sample.report.findings[2].primary = sample.info.sources[0].pin;
        let log = written(&sample, "main");
        let uris: Vec<&str> = log["runs"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap())
            .collect();
        assert_eq!(uris, ["train.py", "rlk-lint.toml"]);
    }

    #[test]
    fn lines_that_the_commit_does_not_have_are_left_out_and_counted() {
        let mut sample = sample();
        sample.info.sources[0].patched_files.insert("rl_engine/gemm.py".into());
        let log = written(&sample, "kernel");
        let run = &log["runs"][0];
        assert_eq!(run["results"], Value::Array(vec![]));
        let notes = run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
        assert_eq!(
            notes.last().unwrap()["message"]["text"],
            "2 findings in files that the companion patch touches left out: their lines are not those of the commit."
        );
    }
}
