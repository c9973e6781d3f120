//! Mistakes in a profile, each with the place and with what would be valid.
//!
//! In: what the passes of `profile` report. Out: miette diagnostics in order of place. Refused: a mistake without a place in some text,
//! except for one that lies on the command line.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::text::{TextFile, sanitize};

/// A text that mistakes point into: the profile, or a `sources.json` that it names.
#[derive(Clone, Debug)]
pub struct Document {
    name: Arc<str>,
    code: Arc<NamedSource<String>>,
    file: Arc<TextFile>,
}

impl Document {
    /// A document named `name` in messages. What could steer a terminal is shown as `?` or the replacement character; byte offsets stay.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let name: Arc<str> = sanitize(name).into();
        let shown = same_length(text);
        Self { code: Arc::new(NamedSource::new(&name, shown.clone())), file: Arc::new(TextFile::new("", name.clone(), shown)), name }
    }

    /// Name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A place in this document; bytes beyond its end are clamped to it.
    #[must_use]
    pub fn place(&self, span: Range<usize>) -> Place {
        let length = self.file.text.len();
        let start = span.start.min(length);
        Place { document: self.clone(), span: start..span.end.clamp(start, length) }
    }
}

/// Replaces control and bidirectional characters, except for tab and line ends, by visible text of the same number of bytes.
fn same_length(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\n' | '\r' | '\t') || matches!(sanitize(c.encode_utf8(&mut [0; 4])), std::borrow::Cow::Borrowed(_)) {
            out.push(c);
        } else if c.len_utf8() == 3 {
            out.push(char::REPLACEMENT_CHARACTER);
        } else {
            out.extend(std::iter::repeat_n('?', c.len_utf8()));
        }
    }
    out
}

/// A range of bytes in a document.
#[derive(Clone, Debug)]
pub struct Place {
    document: Document,
    /// Bytes of the document's text.
    pub span: Range<usize>,
}

impl Place {
    /// Line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.document.file.line_of(u32::try_from(self.span.start).unwrap_or(u32::MAX))
    }

    /// Name of the document.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.document.name
    }
}

/// A place with a clause that says what is there.
#[derive(Clone, Debug)]
pub struct Label {
    /// The place.
    pub place: Place,
    /// What is there, without a final period.
    pub text: String,
}

/// One mistake.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// What is wrong, as one clause without a final period.
    pub message: String,
    /// Where: first the primary place, then others that it contradicts. Empty only for a mistake on the command line.
    pub labels: Vec<Label>,
    /// What would be valid.
    pub help: Option<String>,
    elsewhere: Vec<Elsewhere>,
}

impl Mistake {
    /// A mistake at `place`.
    #[must_use]
    pub fn new(message: impl Into<String>, place: Place, label: impl Into<String>) -> Self {
        Self { message: shown(message), labels: vec![Label { place, text: shown(label) }], help: None, elsewhere: Vec::new() }
    }

    /// A mistake that has no place in a text.
    #[must_use]
    pub fn unplaced(message: impl Into<String>) -> Self {
        Self { message: shown(message), labels: Vec::new(), help: None, elsewhere: Vec::new() }
    }

    /// The same with what would be valid.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shown(help));
        self
    }

    /// The same with a second place. It is shown in its own excerpt if it lies in another document.
    #[must_use]
    pub fn and(mut self, place: Place, label: impl Into<String>) -> Self {
        let label = Label { place, text: shown(label) };
        if self.labels.first().is_some_and(|first| !Arc::ptr_eq(&first.place.document.code, &label.place.document.code)) {
            self.elsewhere.push(Elsewhere(label.clone()));
        }
        self.labels.push(label);
        self
    }

    /// Line of the primary place, from 1; 0 for a mistake on the command line.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.labels.first().map_or(0, |label| label.place.line())
    }
}

fn shown(text: impl Into<String>) -> String {
    sanitize(&text.into()).into_owned()
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mistake {}

impl Diagnostic for Mistake {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.labels.first().map(|label| &*label.place.document.code as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let first = self.labels.first()?;
        Some(Box::new(self.labels.iter().filter(|label| Arc::ptr_eq(&label.place.document.code, &first.place.document.code)).map(labelled)))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.elsewhere.is_empty() {
            return None;
        }
        Some(Box::new(self.elsewhere.iter().map(|place| place as &dyn Diagnostic)))
    }
}

fn labelled(label: &Label) -> LabeledSpan {
    LabeledSpan::new(Some(label.text.clone()), label.place.span.start, label.place.span.len())
}

/// The excerpt of a second document.
#[derive(Clone, Debug)]
struct Elsewhere(Label);

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the other place is in {}", self.0.place.name())
    }
}

impl std::error::Error for Elsewhere {}

impl Diagnostic for Elsewhere {
    fn severity(&self) -> Option<miette::Severity> {
        Some(miette::Severity::Advice)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.0.place.document.code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(labelled(&self.0))))
    }
}

/// All mistakes of one profile, never none.
#[derive(Clone, Debug)]
pub struct ProfileErrors {
    /// Name of the profile.
    pub name: String,
    /// The mistakes: those in the profile by place, then those in other documents.
    pub mistakes: Vec<Mistake>,
}

impl ProfileErrors {
    /// The mistakes of the profile called `name`, put into order.
    #[must_use]
    pub fn new(name: &str, mut mistakes: Vec<Mistake>) -> Self {
        let name = sanitize(name).into_owned();
        mistakes.sort_by_key(|mistake| {
            let first = mistake.labels.first().map(|label| &label.place);
            (first.is_none(), first.is_some_and(|place| place.name() != name), first.map_or(0, |place| place.span.start))
        });
        Self { name, mistakes }
    }
}

impl fmt::Display for ProfileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistakes.len() {
            1 => write!(f, "{} has a mistake", self.name),
            count => write!(f, "{} has {count} mistakes", self.name),
        }
    }
}

impl std::error::Error for ProfileErrors {}

impl Diagnostic for ProfileErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.mistakes.iter().map(|mistake| mistake as &dyn Diagnostic)))
    }
}
