//! The chain of links and the verdict.
//!
//! In: what the checks of each link say. Out: the state of every link and one verdict. Refused: a link that nothing was said about counts as
//! incomplete, never as passed.

use serde::Serialize;

/// One link between what was requested and what ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Link {
    /// The device is the one that the contract is for.
    L0,
    /// The request pins the contract.
    L1,
    /// The environment of the processes.
    L2,
    /// The compiled candidates.
    L3,
    /// Their machine code.
    L4,
    /// The same code comes out when it is compiled again.
    L5,
    /// What each process loaded.
    L6,
    /// What the device executed.
    L7,
    /// What the software says about itself.
    L8,
    /// The numbers.
    L9,
}

impl Link {
    /// All links in order.
    pub const ALL: [Self; 10] = [Self::L0, Self::L1, Self::L2, Self::L3, Self::L4, Self::L5, Self::L6, Self::L7, Self::L8, Self::L9];

    /// A word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::L0 => "device",
            Self::L1 => "request",
            Self::L2 => "environment",
            Self::L3 => "candidates",
            Self::L4 => "code",
            Self::L5 => "reproduction",
            Self::L6 => "loaded",
            Self::L7 => "executed",
            Self::L8 => "claims",
            Self::L9 => "numbers",
        }
    }
}

/// State of a link, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Checked, and as it should be.
    Pass,
    /// Not all that has to be seen was seen.
    Incomplete,
    /// Something that was requested is proven not to be so.
    Mismatch,
    /// Not on a device that the contract is for.
    Unsupported,
}

impl State {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Incomplete => "incomplete",
            Self::Mismatch => "mismatch",
            Self::Unsupported => "unsupported",
        }
    }

    /// Exit code of a verdict in this state.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Mismatch => 1,
            Self::Unsupported => 3,
            Self::Incomplete => 4,
        }
    }
}

/// One reason why a link did not pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Problem {
    /// The link.
    pub link: Link,
    /// What it makes of the link.
    pub state: State,
    /// A fixed name of the reason, for scripts.
    pub reason: &'static str,
    /// File of the evidence that shows it; empty if it is about one that is not there.
    pub file: String,
    /// What was found, as one sentence.
    pub what: String,
    /// Route or kernel that it is about; empty for all.
    pub about: String,
}

/// What the checks collect.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    problems: Vec<Problem>,
    facts: Vec<(Link, String)>,
}

impl Findings {
    /// Notes a reason why `link` does not pass.
    pub fn problem(&mut self, link: Link, state: State, reason: &'static str, file: &str, what: impl Into<String>) {
        self.problem_about(link, state, reason, file, what, "");
    }

    /// The same, about one route or kernel.
    pub fn problem_about(&mut self, link: Link, state: State, reason: &'static str, file: &str, what: impl Into<String>, about: &str) {
        self.problems.push(Problem { link, state, reason, file: file.to_owned(), what: what.into(), about: about.to_owned() });
    }

    /// Notes what was checked for `link`. A link with neither facts nor problems was not looked at.
    pub fn fact(&mut self, link: Link, what: impl Into<String>) {
        self.facts.push((link, what.into()));
    }

    /// Whether nothing was said about `file` so far.
    #[must_use]
    pub fn holds_file(&self, file: &str) -> bool {
        !self.problems.iter().any(|problem| problem.file == file)
    }

    /// Whether `link` has no problem so far.
    #[must_use]
    pub fn holds(&self, link: Link) -> bool {
        !self.problems.iter().any(|problem| problem.link == link)
    }
}

/// One link, judged.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct JudgedLink {
    /// The link.
    pub link: Link,
    /// Its word.
    pub name: &'static str,
    /// Its state.
    pub state: State,
    /// What was checked.
    pub facts: Vec<String>,
    /// Why it did not pass.
    pub problems: Vec<Problem>,
}

/// The chain, judged.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Chain {
    /// Worst state of all links: unsupported, then mismatch, then incomplete.
    pub verdict: State,
    /// Every link in order.
    pub links: Vec<JudgedLink>,
}

/// Judges the chain.
#[must_use]
pub fn chain(found: Findings) -> Chain {
    let Findings { mut problems, facts } = found;
    problems.sort();
    problems.dedup();
    let links: Vec<JudgedLink> = Link::ALL
        .into_iter()
        .map(|link| {
            let mut own: Vec<Problem> = problems.iter().filter(|problem| problem.link == link).cloned().collect();
            let facts: Vec<String> = facts.iter().filter(|(of, _)| *of == link).map(|(_, fact)| fact.clone()).collect();
            if own.is_empty() && facts.is_empty() {
                let what = "nothing in the evidence is about this link".to_owned();
                own.push(Problem {
                    link,
                    state: State::Incomplete,
                    reason: "no-evidence",
                    file: String::new(),
                    what,
                    about: String::new(),
                });
            }
            let state = own.iter().map(|problem| problem.state).max().unwrap_or(State::Pass);
            JudgedLink { link, name: link.word(), state, facts, problems: own }
        })
        .collect();
    let verdict = links.iter().map(|link| link.state).max().unwrap_or(State::Incomplete);
    Chain { verdict, links }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_green() -> Findings {
        let mut found = Findings::default();
        for link in Link::ALL {
            found.fact(link, "seen");
        }
        found
    }

    #[test]
    fn only_ten_green_links_pass() {
        assert_eq!(chain(all_green()).verdict, State::Pass);
        for missing in Link::ALL {
            let mut found = all_green();
            found.facts.retain(|(link, _)| *link != missing);
            let judged = chain(found);
            assert_eq!(judged.verdict, State::Incomplete, "{missing:?}");
            let bad: Vec<Link> = judged.links.iter().filter(|link| link.state != State::Pass).map(|link| link.link).collect();
            assert_eq!(bad, [missing]);
        }
    }

    #[test]
    fn a_proven_mismatch_outranks_what_is_missing_and_the_wrong_device_outranks_both() {
        let mut found = all_green();
        found.problem(Link::L7, State::Incomplete, "a", "", "x");
        assert_eq!(chain(found.clone()).verdict.exit_code(), 4);
        found.problem(Link::L8, State::Mismatch, "b", "", "x");
        assert_eq!(chain(found.clone()).verdict.exit_code(), 1);
        found.problem(Link::L0, State::Unsupported, "c", "", "x");
        assert_eq!(chain(found).verdict.exit_code(), 3);
    }
}
