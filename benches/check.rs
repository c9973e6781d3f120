//! Times cold runs of `check`: profile, git reads, parsing, analysis, rules. Rendering is not part of it.
//!
//! In: the sources in `RLK_BENCH_SOURCES`, and a profile. Out: minimum, median and maximum, files per second, and the rules that take most. Refused: a rule
//! that takes more than a tenth of a run. Nothing is kept between
//! runs within the program; the system's file cache is warm from the second run on.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rlk_lint::catalog::Level;
use rlk_lint::findings::counts;
use rlk_lint::run::RunError;
use rlk_lint::run::lint::{Judging, RULE_STAGE, Request, lint, open};

const USAGE: &str = "\
Times `rlk-lint check` on real sources. Nothing was timed, since RLK_BENCH_SOURCES is not set.

  RLK_BENCH_SOURCES   id=path,id=path,...  where the sources of the profile lie
  RLK_BENCH_PROFILE   the profile; by default fixtures/profiles/public-2026-08.toml
  RLK_BENCH_RUNS      number of runs; by default 5
  RLK_BENCH_THREADS   number of threads; by default one per processor

Sources of the profile that are not named are left out.

  RLK_BENCH_SOURCES=rl-kernel=../RL-Kernel,megatron=../Megatron-LM cargo bench --bench check";

/// Share of a run that one rule may take.
const MOST_OF_ONE_RULE: f64 = 0.1;

fn main() -> ExitCode {
    let Ok(sources) = std::env::var("RLK_BENCH_SOURCES") else {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    };
    match Bench::from_environment(&sources).and_then(|bench| bench.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

struct Bench {
    profile: PathBuf,
    sources: Vec<(String, PathBuf)>,
    runs: usize,
    threads: usize,
}

impl Bench {
    fn from_environment(sources: &str) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for pair in sources.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (id, path) = pair.split_once('=').ok_or_else(|| format!("RLK_BENCH_SOURCES: `{pair}` is not id=path"))?;
            pairs.push((id.trim().to_owned(), PathBuf::from(path.trim())));
        }
        let profile = std::env::var_os("RLK_BENCH_PROFILE")
            .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/profiles/public-2026-08.toml")), PathBuf::from);
        Ok(Self { profile, sources: pairs, runs: number("RLK_BENCH_RUNS", 5)?.max(1), threads: number("RLK_BENCH_THREADS", 0)? })
    }

    fn run(&self) -> Result<(), String> {
        let mut times = Vec::with_capacity(self.runs);
        let mut rules: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut files = 0;
        for run in 1..=self.runs {
            let start = Instant::now();
            let summary = self.once().map_err(|error| error.to_string())?;
            let took = start.elapsed();
            files = summary.files;
            println!("run {run}: {:.3} s, {files} files, {} findings, {} gaps", took.as_secs_f64(), summary.findings, summary.gaps);
            times.push(took);
            for (rule, share) in summary.shares(took) {
                rules.entry(rule).or_default().push(share);
            }
        }
        times.sort();
        let median = (times[(times.len() - 1) / 2] + times[times.len() / 2]) / 2;
        let [min, middle, max] = [times[0], median, times[times.len() - 1]].map(|time| time.as_secs_f64());
        println!("min {min:.3} s, median {middle:.3} s, max {max:.3} s, {:.0} files/s at the median", per_second(files, median));
        let mut shares: Vec<(f64, String)> = rules.into_iter().map(|(rule, shares)| (middle_of(shares), rule)).collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let listed = shares.iter().take(5).map(|(share, rule)| format!("{rule} {:.1} %", share * 100.0)).collect::<Vec<_>>();
        println!("rules by their share of a run (medians): {}", listed.join(", "));
        match shares.first() {
            Some((share, rule)) if *share > MOST_OF_ONE_RULE => Err(format!("{rule} takes {:.1} % of a run", share * 100.0)),
            _ => Ok(()),
        }
    }

    fn once(&self) -> Result<Summary, RunError> {
        let request = Request {
            profile: Some(self.profile.clone()),
            sources: self.sources.clone(),
            allow_missing: true,
            threads: self.threads,
            diff_base: None,
        };
        let judging = Judging { fail_on: Some(Level::Warning), wanted: &|_| true, category: None };
        let mut opened = open(&request)?;
        let stages: Rc<RefCell<Vec<(String, Instant)>>> = Rc::default();
        let seen = Rc::clone(&stages);
        opened.stage = Some(Box::new(move |stage| seen.borrow_mut().push((stage.to_owned(), Instant::now()))));
        let linted = lint(opened, &judging, self.threads)?;
        let stages = stages.borrow().clone();
        Ok(Summary {
            files: linted.report.counts.get(counts::FILES_READ).copied().unwrap_or(0),
            findings: linted.report.findings.len(),
            gaps: linted.report.gaps.len(),
            stages,
        })
    }
}

/// What a run looked at.
struct Summary {
    files: u64,
    findings: usize,
    gaps: usize,
    /// Each stage with its start.
    stages: Vec<(String, Instant)>,
}

impl Summary {
    /// The share of each rule in a run that took so long.
    fn shares(&self, took: Duration) -> Vec<(String, f64)> {
        let lasted = self.stages.windows(2).map(|pair| (&pair[0].0, pair[1].1.duration_since(pair[0].1)));
        let rules = lasted.filter_map(|(stage, time)| Some((stage.strip_prefix(RULE_STAGE)?, time)));
        rules.map(|(rule, time)| (rule.to_owned(), time.as_secs_f64() / took.as_secs_f64().max(f64::EPSILON))).collect()
    }
}

/// The larger of the two in the middle, if there is no single one.
fn middle_of(mut shares: Vec<f64>) -> f64 {
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).copied().unwrap_or(0.0)
}

#[allow(clippy::cast_precision_loss)]
fn per_second(files: u64, time: Duration) -> f64 {
    files as f64 / time.as_secs_f64().max(f64::EPSILON)
}

fn number(variable: &str, default: usize) -> Result<usize, String> {
    match std::env::var(variable) {
        Ok(text) => text.trim().parse().map_err(|_| format!("{variable}: `{text}` is not a number")),
        Err(_) => Ok(default),
    }
}
