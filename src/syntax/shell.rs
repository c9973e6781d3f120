//! Shell scripts to facts: which variables are set, exported and expanded, and what is started with which words.
//!
//! In: the text of a shell script (POSIX, with bash's arrays, `[[`, `+=` and here-strings). Out: [`Script`]: assignments, commands, here-documents and
//! expansions with their places, those inside substitutions included. Refused: nothing; what is not read (strings that are run as code, other files, globs,
//! arithmetic, what a loop or branch decides) is listed in [`Script::unseen`], or is a [`Hole`] in a word. Nothing is expanded or run. Branches are
//! all read, in order of the text: that a line stands in an `if` is not kept, and a pattern of a `case` reads as a command of one word.

use super::facts::Range;

/// Depth of substitutions beyond which nothing is read.
const MAX_NESTING: u32 = 64;

/// Words that may stand before a command without being one.
const RESERVED: [&str; 15] = ["!", "{", "}", "coproc", "do", "done", "elif", "else", "esac", "fi", "if", "then", "time", "until", "while"];
/// Words behind which a command goes on as itself.
const WRAPPERS: [&str; 4] = ["builtin", "command", "exec", "nohup"];
/// Builtins whose arguments are assignments.
const DECLARE: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// A part of a word that only the running shell knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoleKind {
    /// `$name`, `${name}`, `${name:-default}`: the name, and the text of the default as it is written.
    Variable {
        /// Name of the variable.
        name: String,
        /// Text behind `-`, `:-`, `=` or `:=`.
        default: Option<String>,
    },
    /// `$(...)`, backquotes or `<(...)`.
    Substitution,
    /// `$((...))`.
    Arithmetic,
}

/// A part of a word that only the running shell knows, with its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Offset in [`Word::text`] at which its value would stand.
    pub at: usize,
    /// Place in the script.
    pub range: Range,
    /// What it is.
    pub kind: HoleKind,
}

/// A word with its quotes removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Place in the script, quotes included.
    pub range: Range,
    /// Text without quotes; nothing stands where a hole is.
    pub text: String,
    /// What is not text.
    pub holes: Vec<Hole>,
    /// Runs of text: offset in `text`, place in the script.
    runs: Vec<(usize, u32)>,
}

impl Word {
    /// The text, if all of the word is known.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        self.holes.is_empty().then_some(self.text.as_str())
    }

    /// Place in the script of an offset in the text.
    #[must_use]
    pub fn place(&self, offset: usize) -> u32 {
        let run = self.runs.iter().rev().find(|(at, _)| *at <= offset);
        run.map_or(self.range.0, |(at, place)| place + u32::try_from(offset - at).unwrap_or(0))
    }

    fn push(&mut self, c: char, place: usize) {
        let follows = self.runs.last().is_some_and(|(at, from)| *from as usize + (self.text.len() - at) == place);
        if !follows {
            self.runs.push((self.text.len(), number(place)));
        }
        self.text.push(c);
    }
}

/// `name=value`, alone, before a command, or behind `export` and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Variable.
    pub name: String,
    /// Place of name and value.
    pub range: Range,
    /// Value; `None` for `export name`.
    pub value: Option<Word>,
    /// Elements of `name=(...)`.
    pub elements: Vec<Word>,
    /// `+=`.
    pub appends: bool,
    /// Whether what is started sees it from here on.
    pub exported: bool,
    /// Command (index into [`Script::commands`]) that alone sees it.
    pub only_for: Option<usize>,
}

/// A command that is started, without the assignments before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// From its first to its last word.
    pub range: Range,
    /// Its words.
    pub words: Vec<Word>,
    /// Its here-documents (indices into [`Script::heredocs`]).
    pub heredocs: Vec<usize>,
}

impl Command {
    /// Name of the program, without its folder.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let word = self.words.first()?;
        word.literal().map(|text| text.rsplit('/').next().unwrap_or(text))
    }
}

/// A here-document that is announced and whose lines follow.
struct Pending {
    delimiter: String,
    quoted: bool,
    /// Whether tabs before its lines do not count (`<<-`).
    tabs: bool,
    /// Where it is announced.
    mark: usize,
    /// The command that reads it, once that has ended.
    command: Option<usize>,
    owned: bool,
}

/// A here-document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heredoc {
    /// Its lines.
    pub range: Range,
    /// Whether the shell leaves its text alone.
    pub quoted: bool,
}

/// What one script says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Assignments in order of place.
    pub assignments: Vec<Assignment>,
    /// Commands in order of place.
    pub commands: Vec<Command>,
    /// Here-documents.
    pub heredocs: Vec<Heredoc>,
    /// Every expansion of a variable, nested ones included, in order of place.
    pub expansions: Vec<Hole>,
    /// What was not read, and why.
    pub unseen: Vec<(Range, &'static str)>,
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic()) && chars.all(|c| c == '_' || c.is_ascii_alphanumeric())
}

/// Reads a script.
#[must_use]
pub fn read(text: &str) -> Script {
    let mut reader = Reader { text, bytes: text.as_bytes(), script: Script::default(), open: vec![(0, text.len(), 0, true)] };
    while let Some((start, end, depth, code)) = reader.open.pop() {
        if depth > MAX_NESTING {
            reader.script.unseen.push(((number(start), number(end)), "substitutions nested too deep"));
        } else if code {
            reader.code(start, end, depth);
        } else {
            // The default of an expansion: text with expansions.
            let mut word = Word::default();
            reader.quoted(start, end, depth, &mut word);
        }
    }
    reader.finish()
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    script: Script,
    /// Ranges still to be read, with their depth, and whether they are commands.
    open: Vec<(usize, usize, u32, bool)>,
}

impl Reader<'_> {
    fn at(&self, at: usize, end: usize) -> u8 {
        if at < end { self.bytes[at] } else { 0 }
    }

    fn char_at(&self, at: usize) -> char {
        self.text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\u{FFFD}')
    }

    /// Commands are numbered as they are read, which is not the order of the text where substitutions are: order and references are made right here.
    fn finish(mut self) -> Script {
        let mut order: Vec<usize> = (0..self.script.commands.len()).collect();
        order.sort_by_key(|at| self.script.commands[*at].range);
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            place[*old] = new;
        }
        let mut old: Vec<Option<Command>> = std::mem::take(&mut self.script.commands).into_iter().map(Some).collect();
        self.script.commands = order.iter().filter_map(|at| old[*at].take()).collect();
        for assignment in &mut self.script.assignments {
            assignment.only_for = assignment.only_for.and_then(|at| place.get(at).copied());
        }
        self.script.assignments.sort_by_key(|assignment| assignment.range);
        self.script.expansions.sort_by_key(|hole| hole.range);
        self.script.unseen.sort_unstable();
        self.script
    }

    /// Reads commands from `start` to `end`.
    fn code(&mut self, start: usize, end: usize, depth: u32) {
        let mut at = start;
        let mut line: Line = Line::default();
        let mut pending: Vec<Pending> = Vec::new();
        while at < end {
            match self.at(at, end) {
                b' ' | b'\t' | b'\r' => at += 1,
                b'\\' if self.at(at + 1, end) == b'\n' => at += 2,
                b'#' => {
                    while at < end && self.bytes[at] != b'\n' {
                        at += 1;
                    }
                }
                b'\n' => {
                    self.end_command(&mut line, &mut pending);
                    at += 1;
                    for announced in std::mem::take(&mut pending) {
                        at = self.heredoc(at, end, depth, &announced);
                    }
                }
                b'<' if self.bytes[at..end].starts_with(b"<<<") => at += 3,
                b'<' if self.at(at + 1, end) == b'<' => {
                    let tabs = self.at(at + 2, end) == b'-';
                    let mark = at;
                    at += if tabs { 3 } else { 2 };
                    while matches!(self.at(at, end), b' ' | b'\t') {
                        at += 1;
                    }
                    let (word, after) = self.word(at, end, depth);
                    let quoted = self.bytes[at..after].iter().any(|byte| matches!(byte, b'\'' | b'"' | b'\\'));
                    pending.push(Pending { delimiter: word.text, quoted, tabs, mark, command: None, owned: false });
                    at = after.max(at + 1);
                }
                b'<' | b'>' if self.at(at + 1, end) == b'(' => at = self.take_word(&mut line, at, end, depth),
                b'<' | b'>' => {
                    // `2>`: the number belongs to the redirection.
                    let belongs = |word: &mut Word| word.range.1 as usize == at && word.text.bytes().all(|byte| byte.is_ascii_digit());
                    line.words.pop_if(belongs);
                    at += 1;
                    while matches!(self.at(at, end), b'>' | b'<' | b'&' | b'|' | b' ' | b'\t') {
                        at += 1;
                    }
                    let (_, after) = self.word(at, end, depth);
                    at = after;
                }
                // `name()`: the definition of a function, whose body follows.
                b'(' if line.words.len() == 1 && self.at(at + 1, end) == b')' => {
                    line = Line::default();
                    at += 2;
                }
                b';' | b'&' | b'|' | b'(' | b')' => {
                    self.end_command(&mut line, &mut pending);
                    at += 1;
                }
                _ => at = self.take_word(&mut line, at, end, depth),
            }
        }
        self.end_command(&mut line, &mut pending);
        for announced in pending {
            at = self.heredoc(at, end, depth, &announced);
        }
    }

    /// Ends a command; the here-documents that it announced are its own.
    fn end_command(&mut self, line: &mut Line, pending: &mut [Pending]) {
        let number_of = self.command(line);
        for announced in pending.iter_mut().filter(|announced| !announced.owned) {
            (announced.command, announced.owned) = (number_of, true);
        }
    }

    /// Reads a word, or an assignment that stands before the command, into the line.
    fn take_word(&mut self, line: &mut Line, at: usize, end: usize, depth: u32) -> usize {
        let (word, mut after) = self.word(at, end, depth);
        if after == at {
            return at + 1;
        }
        if let Some((name, appends, value_at)) = self.assigned(at, after)
            && (line.words.is_empty() || line.declares())
        {
            let mut elements = Vec::new();
            if value_at == after && self.at(after, end) == b'(' {
                after += 1;
                while after < end && self.at(after, end) != b')' {
                    match self.at(after, end) {
                        b' ' | b'\t' | b'\n' | b'\r' => after += 1,
                        b'#' => {
                            while after < end && self.bytes[after] != b'\n' {
                                after += 1;
                            }
                        }
                        _ => {
                            let (element, next) = self.word(after, end, depth);
                            if next == after {
                                after += 1;
                            } else {
                                after = next;
                                elements.push(element);
                            }
                        }
                    }
                }
                after = (after + 1).min(end);
            }
            let value = self.value(word, value_at, after);
            line.assignments.push(Assignment {
                name,
                range: (number(at), number(after)),
                value: Some(value),
                elements,
                appends,
                exported: false,
                only_for: None,
            });
        } else if !(line.words.is_empty() && self.text.get(at..after).is_some_and(|word| RESERVED.contains(&word))) {
            line.words.push(word);
        }
        after
    }

    /// Name, `+=` and place of the value, if the word from `at` is an assignment.
    fn assigned(&self, at: usize, after: usize) -> Option<(String, bool, usize)> {
        let raw = self.text.get(at..after)?;
        let equals = raw.find('=')?;
        let left = &raw[..equals];
        let (name, appends) = match left.strip_suffix('+') {
            Some(name) => (name, true),
            None => (left, false),
        };
        is_name(name).then(|| (name.to_owned(), appends, at + equals + 1))
    }

    /// The part of an assignment's word behind the `=` at `value_at`. Names hold no quotes, so that offsets before it are those in the script.
    fn value(&self, word: Word, value_at: usize, after: usize) -> Word {
        let cut = value_at - word.range.0 as usize;
        let text = word.text.get(cut..).unwrap_or("").to_owned();
        let holes = word.holes.into_iter().map(|hole| Hole { at: hole.at.saturating_sub(cut), ..hole }).collect();
        let mut runs: Vec<(usize, u32)> =
            word.runs.iter().filter(|(offset, _)| *offset >= cut).map(|(offset, place)| (offset - cut, *place)).collect();
        if runs.first().is_none_or(|(offset, _)| *offset > 0) {
            runs.insert(0, (0, number(value_at)));
        }
        Word { range: (number(value_at), number(after)), text, holes, runs }
    }

    /// Ends a command; its number, if there is one.
    fn command(&mut self, line: &mut Line) -> Option<usize> {
        let Line { mut words, mut assignments } = std::mem::take(line);
        let mut from = 0;
        while from + 1 < words.len() && words[from].literal().is_some_and(|word| WRAPPERS.contains(&word)) {
            from += 1;
        }
        // `env [-options] NAME=value... command`.
        if words.get(from).and_then(Word::literal).is_some_and(|word| word == "env" || word.ends_with("/env")) {
            from += 1;
            while let Some(word) = words.get_mut(from) {
                let range = word.range;
                if let Some((name, appends, value_at)) = self.assigned(range.0 as usize, range.1 as usize) {
                    let value = Some(self.value(std::mem::take(word), value_at, range.1 as usize));
                    assignments.push(Assignment { name, range, value, elements: Vec::new(), appends, exported: false, only_for: None });
                } else if word.text.starts_with('-') {
                    from += usize::from(matches!(word.text.as_str(), "-u" | "--unset" | "-C" | "--chdir"));
                } else {
                    break;
                }
                from += 1;
            }
        }
        words.drain(..from.min(words.len()));
        let first = words.first().and_then(Word::literal).map(str::to_owned);
        let declares = first.as_deref().is_some_and(|word| DECLARE.contains(&word));
        if declares {
            let exports = first.as_deref() == Some("export")
                || words.iter().skip(1).filter_map(Word::literal).any(|option| option.starts_with('-') && option.contains('x'));
            for assignment in &mut assignments {
                assignment.exported = exports;
            }
            for word in words.iter().skip(1).filter(|word| word.literal().is_some_and(is_name)) {
                assignments.push(Assignment {
                    name: word.text.clone(),
                    range: word.range,
                    value: None,
                    elements: Vec::new(),
                    appends: false,
                    exported: exports,
                    only_for: None,
                });
            }
            self.script.assignments.append(&mut assignments);
            return None;
        }
        let range = match (words.first(), words.last()) {
            (Some(first), Some(last)) => (first.range.0, last.range.1),
            _ => {
                for assignment in &mut assignments {
                    assignment.only_for = None;
                }
                self.script.assignments.append(&mut assignments);
                return None;
            }
        };
        match first.as_deref() {
            Some("eval") => self.script.unseen.push((range, "a string that is run as code")),
            Some("." | "source") => self.script.unseen.push((range, "another file")),
            _ => {}
        }
        let own = self.script.commands.len();
        for assignment in &mut assignments {
            assignment.only_for = Some(own);
        }
        self.script.assignments.append(&mut assignments);
        self.script.commands.push(Command { range, words, heredocs: Vec::new() });
        Some(own)
    }

    fn heredoc(&mut self, start: usize, end: usize, depth: u32, announced: &Pending) -> usize {
        let Pending { delimiter, quoted, tabs, mark, command, .. } = announced;
        let mut at = start;
        while at < end {
            let stop = self.bytes[at..end].iter().position(|byte| *byte == b'\n').map_or(end, |length| at + length);
            let line = self.text.get(at..stop).unwrap_or("").trim_end_matches('\r');
            if (if *tabs { line.trim_start_matches('\t') } else { line }) == delimiter {
                self.note_heredoc(start, at, depth, *quoted, *command);
                return (stop + 1).min(end);
            }
            at = stop + 1;
        }
        self.script.unseen.push(((number(*mark), number(end)), "a here-document without its end"));
        self.note_heredoc(start.min(end), end, depth, *quoted, *command);
        end
    }

    fn note_heredoc(&mut self, start: usize, end: usize, depth: u32, quoted: bool, command: Option<usize>) {
        let own = self.script.heredocs.len();
        self.script.heredocs.push(Heredoc { range: (number(start), number(end)), quoted });
        if let Some(command) = command.and_then(|at| self.script.commands.get_mut(at)) {
            command.heredocs.push(own);
        }
        if !quoted {
            self.open.push((start, end, depth + 1, false));
        }
    }

    /// Reads one word from `at`; where it ends.
    fn word(&mut self, start: usize, end: usize, depth: u32) -> (Word, usize) {
        let mut word = Word { range: (number(start), number(start)), ..Word::default() };
        let mut at = start;
        while at < end {
            match self.bytes[at] {
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'(' | b')' => break,
                b'<' | b'>' if self.at(at + 1, end) == b'(' => {
                    let close = self.closing(at + 2, end, b')');
                    self.substitution(&mut word, at, at + 2, close, end, depth);
                    at = (close + 1).min(end);
                }
                b'<' | b'>' => break,
                b'\'' => {
                    let close = self.bytes[at + 1..end].iter().position(|byte| *byte == b'\'').map(|length| at + 1 + length);
                    let close = close.unwrap_or_else(|| self.unclosed(at, end, "a quote without its end"));
                    for (offset, c) in self.text.get(at + 1..close).unwrap_or("").char_indices() {
                        word.push(c, at + 1 + offset);
                    }
                    at = (close + 1).min(end);
                }
                b'"' => {
                    let close = self.closing(at + 1, end, b'"');
                    if close >= end {
                        self.unclosed(at, end, "a quote without its end");
                    }
                    self.quoted(at + 1, close.min(end), depth, &mut word);
                    at = (close + 1).min(end);
                }
                b'\\' if self.at(at + 1, end) == b'\n' => at += 2,
                b'\\' if at + 1 < end => {
                    let c = self.char_at(at + 1);
                    word.push(c, at + 1);
                    at += 1 + c.len_utf8();
                }
                b'$' if matches!(self.at(at + 1, end), b'\'' | b'"') => at += 1,
                b'$' | b'`' => at = self.expansion(at, end, depth, &mut word),
                _ => {
                    let c = self.char_at(at);
                    word.push(c, at);
                    at += c.len_utf8();
                }
            }
        }
        word.range.1 = number(at);
        (word, at)
    }

    /// Reads text between double quotes, or as between them.
    fn quoted(&mut self, start: usize, end: usize, depth: u32, word: &mut Word) {
        let mut at = start;
        while at < end {
            match self.bytes[at] {
                b'\\' if self.at(at + 1, end) == b'\n' => at += 2,
                b'\\' if matches!(self.at(at + 1, end), b'"' | b'\\' | b'$' | b'`') => {
                    word.push(char::from(self.bytes[at + 1]), at + 1);
                    at += 2;
                }
                b'$' | b'`' => at = self.expansion(at, end, depth, word),
                _ => {
                    let c = self.char_at(at);
                    word.push(c, at);
                    at += c.len_utf8();
                }
            }
        }
    }

    /// Reads what starts with `$` or a backquote; where it ends.
    fn expansion(&mut self, at: usize, end: usize, depth: u32, word: &mut Word) -> usize {
        if self.bytes[at] == b'`' {
            let close = self.closing(at + 1, end, b'`');
            self.substitution(word, at, at + 1, close, end, depth);
            return (close + 1).min(end);
        }
        match self.at(at + 1, end) {
            b'(' if self.at(at + 2, end) == b'(' => {
                let close = self.closing(at + 2, end, b')');
                let after = (close + 1).min(end);
                let range = (number(at), number(after));
                word.holes.push(Hole { at: word.text.len(), range, kind: HoleKind::Arithmetic });
                self.open.push(((at + 3).min(close), close, depth + 1, false));
                after
            }
            b'(' => {
                let close = self.closing(at + 2, end, b')');
                self.substitution(word, at, at + 2, close, end, depth);
                (close + 1).min(end)
            }
            b'{' => {
                let close = self.closing(at + 2, end, b'}');
                let after = (close + 1).min(end);
                let inside = self.text.get(at + 2..close).unwrap_or("");
                let body = inside.trim_start_matches(['#', '!']);
                let length = body.bytes().take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric()).count();
                let rest = &body[length..];
                let behind = rest.strip_prefix(':').unwrap_or(rest);
                let default = behind.strip_prefix(['-', '=']).map(str::to_owned);
                if length < body.len() {
                    self.open.push((close - (body.len() - length), close, depth + 1, false));
                }
                let range = (number(at), number(after));
                self.variable(word, body[..length].to_owned(), default, range);
                after
            }
            byte if byte == b'_' || byte.is_ascii_alphabetic() => {
                let length = self.bytes[at + 1..end].iter().take_while(|byte| **byte == b'_' || byte.is_ascii_alphanumeric()).count();
                let name = self.text.get(at + 1..at + 1 + length).unwrap_or("").to_owned();
                self.variable(word, name, None, (number(at), number(at + 1 + length)));
                at + 1 + length
            }
            byte if byte.is_ascii_digit() || matches!(byte, b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-') => {
                self.variable(word, char::from(byte).to_string(), None, (number(at), number(at + 2)));
                at + 2
            }
            _ => {
                word.push('$', at);
                at + 1
            }
        }
    }

    fn variable(&mut self, word: &mut Word, name: String, default: Option<String>, range: Range) {
        let hole = Hole { at: word.text.len(), range, kind: HoleKind::Variable { name, default } };
        self.script.expansions.push(hole.clone());
        word.holes.push(hole);
    }

    fn substitution(&mut self, word: &mut Word, at: usize, inner: usize, close: usize, end: usize, depth: u32) {
        let range = (number(at), number((close + 1).min(end)));
        word.holes.push(Hole { at: word.text.len(), range, kind: HoleKind::Substitution });
        self.open.push((inner.min(close), close, depth + 1, true));
    }

    fn unclosed(&mut self, at: usize, end: usize, why: &'static str) -> usize {
        self.script.unseen.push(((number(at), number(end)), why));
        end
    }

    /// Place of the mark that closes what begins before `at`: `)`, `}`, `"` or a backquote. The end if there is none.
    fn closing(&self, start: usize, end: usize, mark: u8) -> usize {
        let mut open = vec![mark];
        let mut at = start;
        let mut pending: Vec<(String, bool)> = Vec::new();
        while at < end {
            let inside = open.last().copied().unwrap_or(mark);
            let byte = self.bytes[at];
            if byte == inside {
                open.pop();
                if open.is_empty() {
                    return at;
                }
                at += 1;
                continue;
            }
            match byte {
                b'\\' => at += 1,
                b'$' if self.at(at + 1, end) == b'{' => {
                    open.push(b'}');
                    at += 1;
                }
                b'$' if self.at(at + 1, end) == b'(' => {
                    open.push(b')');
                    at += 1;
                }
                b'"' => open.push(b'"'),
                b'`' => open.push(b'`'),
                b'(' if inside == b')' => open.push(b')'),
                b'\'' if inside != b'"' => {
                    at = self.bytes[at + 1..end].iter().position(|byte| *byte == b'\'').map_or(end, |length| at + 1 + length);
                }
                b'#' if inside == b')' && matches!(self.at(at.wrapping_sub(1), end), b' ' | b'\t' | b'\n' | b';') => {
                    while at + 1 < end && self.bytes[at + 1] != b'\n' {
                        at += 1;
                    }
                }
                b'<' if inside == b')' && self.at(at + 1, end) == b'<' && self.at(at + 2, end) != b'<' => {
                    let tabs = self.at(at + 2, end) == b'-';
                    let from = at + if tabs { 3 } else { 2 };
                    let line = self.bytes[from..end].iter().position(|byte| *byte == b'\n').map_or(end, |length| from + length);
                    let word = self.text.get(from..line).unwrap_or("").trim_start();
                    let word: String = word.chars().take_while(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | ')')).collect();
                    pending.push((word.replace(['\'', '"', '\\'], ""), tabs));
                    at = from;
                    continue;
                }
                b'<' if inside == b')' && self.bytes[at..end].starts_with(b"<<<") => at += 2,
                b'\n' if inside == b')' => {
                    for (delimiter, tabs) in std::mem::take(&mut pending) {
                        while at < end {
                            let from = at + 1;
                            let stop =
                                self.bytes[from.min(end)..end].iter().position(|byte| *byte == b'\n').map_or(end, |length| from + length);
                            let line = self.text.get(from..stop).unwrap_or("");
                            at = stop;
                            if (if tabs { line.trim_start_matches('\t') } else { line }) == delimiter {
                                break;
                            }
                        }
                    }
                }
                _ => {}
            }
            at += 1;
        }
        end
    }
}

/// What has been read of a command.
#[derive(Default)]
struct Line {
    words: Vec<Word>,
    assignments: Vec<Assignment>,
}

impl Line {
    fn declares(&self) -> bool {
        self.words.first().and_then(Word::literal).is_some_and(|word| DECLARE.contains(&word))
    }
}

#[cfg(test)]
mod tests;
