//! What files that are not Python tell a program: entry points of distributions, strings of JSON documents, and dotted paths that launch scripts
//! and argument defaults give to flags.
//!
//! In: the sources that were read. Out: entry points by group, and for each attribute that `argparse` makes of a flag the dotted paths that it
//! gets. Only paths that lead to a module of the sources count. What a launch script gives in a branch that the profile's environment rules out is
//! left out; in one that nothing decides, it may be given or not. Refused: nothing; a file that is not what its name says tells nothing here.

use std::collections::BTreeMap;

use super::{Loaded, counts};
use crate::names::{ModuleId, Program};
use crate::sources::FileKind;
use crate::syntax::json;
use crate::syntax::shell::{self, HoleKind, Script, Word};
use crate::syntax::{Literal, OpKind, Passing, Scope};
use crate::values::{Given, Known};

/// Entry points by group: `module:attribute`.
pub type EntryPoints = BTreeMap<String, Vec<String>>;

/// Dotted paths by the attribute of the parsed arguments that holds them.
pub type Arguments = BTreeMap<String, Given>;

/// Entry points that the sources' `pyproject.toml` files declare.
#[must_use]
pub fn entry_points(loaded: &Loaded) -> EntryPoints {
    let mut out = EntryPoints::new();
    for file in loaded.sources.iter().flat_map(|source| &source.files).filter(|file| file.kind == FileKind::Toml) {
        let text = loaded.files.get(file.file);
        if text.path.rsplit('/').next() != Some("pyproject.toml") {
            continue;
        }
        let table: toml::Table = text.text.parse().unwrap_or_default();
        let Some(project) = table.get("project") else { continue };
        let groups = project.get("entry-points").and_then(toml::Value::as_table).into_iter().flatten();
        let groups = groups.map(|(group, points)| (group.as_str(), points));
        let scripts = [("console_scripts", "scripts"), ("gui_scripts", "gui-scripts")];
        let scripts = scripts.into_iter().filter_map(|(group, key)| project.get(key).map(|points| (group, points)));
        for (group, points) in groups.chain(scripts) {
            let points = points.as_table().into_iter().flatten();
            let named =
                points.filter_map(|(_, point)| point.as_str()).map(|point| point.split('[').next().unwrap_or(point).trim().to_owned());
            out.entry(group.to_owned()).or_default().extend(named);
        }
    }
    for points in out.values_mut() {
        points.sort();
        points.dedup();
    }
    out
}

/// Strings of the JSON documents whose file name some module has as a string, by `index of the source:path`.
#[must_use]
pub fn documents(loaded: &Loaded) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut out = BTreeMap::new();
    for (index, source) in loaded.sources.iter().enumerate() {
        for file in source.files.iter().filter(|file| file.kind == FileKind::Json) {
            let text = loaded.files.get(file.file);
            let named = text.path.rsplit('/').next().is_some_and(|name| loaded.program.strings.find(name).is_some());
            let named = named || loaded.program.strings.find(&text.path).is_some();
            if let Some(strings) = named.then(|| json::strings(&text.text).ok()).flatten() {
                let values = strings.into_iter().filter(|string| !string.is_key).map(|string| (string.path, string.text));
                out.insert(format!("{index}:{}", text.path), values.collect());
            }
        }
    }
    out
}

/// Dotted paths that flags get from launch scripts and from their own defaults.
#[must_use]
pub fn arguments(loaded: &Loaded, environment: &BTreeMap<String, Known>) -> Arguments {
    let program = &loaded.program;
    // Flag, attribute.
    let mut flags: BTreeMap<String, String> = BTreeMap::new();
    let mut out = Arguments::new();
    for id in program.module_ids().filter(|id| counts(loaded.class_of(*id))) {
        for flag in flags_of(program, id) {
            if let Some(default) = flag.default.filter(|path| leads_somewhere(program, path)) {
                out.entry(flag.attribute.clone()).or_default().paths.push(default);
            }
            flags.insert(flag.name, flag.attribute);
        }
    }
    if flags.is_empty() {
        return out;
    }
    for source in &loaded.sources {
        for file in source.files.iter().filter(|file| file.kind == FileKind::Shell) {
            let text = loaded.files.get(file.file);
            if !counts(loaded.classes.class(&text.source, &text.path)) {
                continue;
            }
            let script = shell::read(&text.text);
            let lists = script.assignments.iter().map(|assignment| &assignment.elements);
            for words in lists.chain(script.commands.iter().map(|command| &command.words)) {
                for pair in words.windows(2) {
                    let (Some(flag), Some(path)) = (pair[0].literal(), pair[1].literal()) else { continue };
                    if let Some(attribute) = flags.get(flag)
                        && leads_somewhere(program, path)
                    {
                        let runs = Branches { text: &text.text, script: &script, environment }.runs(pair[1].range.0);
                        if runs != Some(false) {
                            let given = out.entry(attribute.clone()).or_default();
                            given.paths.push(path.to_owned());
                            given.perhaps |= runs.is_none();
                        }
                    }
                }
            }
        }
    }
    for given in out.values_mut() {
        given.paths.sort();
        given.paths.dedup();
    }
    out
}

/// A flag that a parser declares.
struct Flag {
    name: String,
    attribute: String,
    default: Option<String>,
}

/// Flags that calls of `add_argument` in a module declare.
fn flags_of(program: &Program, id: ModuleId) -> Vec<Flag> {
    let module = program.module(id);
    if !module.facts.names.iter().any(|name| name == "add_argument") {
        return Vec::new();
    }
    let mut out = Vec::new();
    for scope in &module.facts.scopes {
        let text = |reg: u32| literal(scope, reg).map(|name| module.facts.name(name).to_owned());
        for op in &scope.ops {
            let OpKind::Call { func, args, .. } = &op.kind else { continue };
            let adds = scope.ops.iter().any(
                |op| matches!(&op.kind, OpKind::LoadAttr { dst, name, .. } if dst == func && module.facts.name(*name) == "add_argument"),
            );
            if !adds {
                continue;
            }
            let positional = args.iter().filter(|(passing, _)| *passing == Passing::Position);
            let Some(name) = positional.filter_map(|(_, reg)| text(*reg)).find(|name| name.starts_with("--")) else { continue };
            let keyword = |wanted: &str| {
                let found =
                    args.iter().find(|(passing, _)| matches!(passing, Passing::Keyword(name) if module.facts.name(*name) == wanted));
                found.and_then(|(_, reg)| text(*reg))
            };
            let attribute = keyword("dest").unwrap_or_else(|| name.trim_start_matches('-').replace('-', "_"));
            out.push(Flag { name, attribute, default: keyword("default") });
        }
    }
    out
}

/// The text in a register that holds a literal string.
fn literal(scope: &Scope, reg: u32) -> Option<u32> {
    scope.ops.iter().find_map(|op| match op.kind {
        OpKind::Literal(dst, Literal::Str(text)) if dst == reg => Some(text),
        _ => None,
    })
}

/// Whether a text is a dotted path of something in a module of the sources.
fn leads_somewhere(program: &Program, path: &str) -> bool {
    let plain = path.split('.').all(|part| !part.is_empty() && part.chars().all(|c| c == '_' || c.is_alphanumeric()));
    plain
        && path.rsplit_once('.').is_some_and(|(module, _)| {
            program.find_scope(path).is_some() || program.strings.find(module).is_some_and(|sym| program.find(sym, 0).is_some())
        })
}

/// The branches of a launch script, as the profile's environment decides them.
struct Branches<'a> {
    text: &'a str,
    script: &'a Script,
    environment: &'a BTreeMap<String, Known>,
}

impl Branches<'_> {
    /// Whether the place is reached; `None` if nothing decides it. `if`, `elif`, `else` and `fi` are taken for what they are at the start of a line.
    fn runs(&self, place: u32) -> Option<bool> {
        let before = self.text.get(..place as usize)?;
        // One entry for each `if` around the place: whether this branch is taken, and whether an earlier one was.
        let mut open: Vec<(Option<bool>, Option<bool>)> = Vec::new();
        let mut start = 0;
        for line in before.split_inclusive('\n') {
            let at = start;
            start += line.len();
            match line.split_whitespace().next() {
                Some("if") => open.push((self.test(at, line), Some(false))),
                Some("elif") => {
                    let (taken, earlier) = open.pop()?;
                    let earlier = or(earlier, taken);
                    open.push((and_not(self.test(at, line), earlier), earlier));
                }
                Some("else") => {
                    let (taken, earlier) = open.pop()?;
                    let earlier = or(earlier, taken);
                    open.push((and_not(Some(true), earlier), earlier));
                }
                Some("fi") => drop(open.pop()),
                _ => {}
            }
        }
        if open.iter().any(|(taken, _)| *taken == Some(false)) {
            return Some(false);
        }
        open.iter().all(|(taken, _)| *taken == Some(true)).then_some(true)
    }

    /// What the test in a line comes to: `[[ a == b ]]` and the like, if it is the only one.
    fn test(&self, at: usize, line: &str) -> Option<bool> {
        let inside = |place: u32| (at..at + line.len()).contains(&(place as usize));
        let mut commands = self.script.commands.iter().filter(|command| inside(command.range.0));
        let test = commands.find(|command| matches!(command.program(), Some("[[" | "[" | "test")))?;
        let decided = ["&&", "||", "!"].iter().all(|joint| !line.contains(&format!(" {joint} ")));
        let [_, left, operator, right, ..] = &test.words[..] else { return None };
        let (left, right) = (self.value(left, 0)?, self.value(right, 0)?);
        match operator.literal()? {
            "==" | "=" if decided => Some(left == right),
            "!=" if decided => Some(left != right),
            _ => None,
        }
    }

    /// The text of a word, if its variables are known.
    fn value(&self, word: &Word, depth: u32) -> Option<String> {
        let mut out = word.text.clone();
        for hole in word.holes.iter().rev() {
            let HoleKind::Variable { name, default } = &hole.kind else { return None };
            let mut value = self.variable(name, default.as_deref(), hole.range.0, depth)?;
            let written = self.text.get(hole.range.0 as usize..hole.range.1 as usize)?;
            if let Some((_, pattern)) = written.split_once("%%") {
                // `${name%%X*}` ends before the first X.
                let cut = pattern.strip_suffix("*}").filter(|cut| !cut.contains(['*', '?', '[']))?;
                value = value.split(cut).next().unwrap_or("").to_owned();
            } else if written.contains(['#', '%', '^', ',']) || written.contains("//") {
                return None;
            }
            out.insert_str(hole.at, &value);
        }
        Some(out)
    }

    /// The value of a variable: what the script set last before the place, else the profile's environment, else the default.
    fn variable(&self, name: &str, default: Option<&str>, place: u32, depth: u32) -> Option<String> {
        let mut earlier = self.script.assignments.iter().filter(|assignment| assignment.name == name && assignment.range.0 < place);
        let set = earlier.rfind(|assignment| assignment.range.1 <= place && assignment.value.is_some());
        if let Some(value) = set.and_then(|assignment| assignment.value.as_ref()).filter(|_| depth < 8) {
            return self.value(value, depth + 1);
        }
        match self.environment.get(name) {
            Some(Known::Str(value)) => Some(value.clone()),
            Some(Known::None) => default.map(str::to_owned),
            _ => None,
        }
    }
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(true) || b == Some(true) { Some(true) } else { a.zip(b).map(|_| false) }
}

fn and_not(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(false) || b == Some(true) { Some(false) } else { a.zip(b).map(|_| true) }
}
