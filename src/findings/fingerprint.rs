//! Fingerprints of lines and of findings, computed as GitHub's upload action computes `primaryLocationLineHash`.
//!
//! In: the decoded text of one file. Out: for each line, `hash:n`, where the hash looks at the next 100 units that are neither space nor
//! tab, and n counts how often that hash was seen so far in the file. Refused: nothing. Moving or re-indenting a line keeps its hash;
//! editing it, or a line closely below it, changes it. [`Prints`] makes fingerprints of findings from that.
//!
//! The action decodes every file as UTF-8. For a file in another declared encoding the values differ from its own, which it tolerates.

use std::collections::BTreeMap;

use super::Finding;
use crate::text::{FileId, Files};

/// Units that one hash looks at.
const WINDOW: usize = 100;
/// Base of the polynomial.
const BASE: u64 = 37;
/// Inverse of [`BASE`] modulo 2^64.
const BASE_INVERSE: u64 = inverse(BASE);
/// [`BASE`] to the power `WINDOW - 1`: weight of the first unit.
const FIRST_WEIGHT: u64 = power(BASE, WINDOW - 1);
/// Unit that stands for the end of the file.
const END: u16 = 0xFFFF;

const fn power(base: u64, exponent: usize) -> u64 {
    let mut result = 1u64;
    let mut step = 0;
    while step < exponent {
        result = result.wrapping_mul(base);
        step += 1;
    }
    result
}

/// Inverse of an odd number modulo 2^64, by Newton's iteration: each step doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut guess = odd;
    let mut step = 0;
    while step < 6 {
        guess = guess.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(guess)));
        step += 1;
    }
    guess
}

/// Fingerprints of all lines of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHashes {
    lines: Vec<(u64, u32)>,
}

impl LineHashes {
    /// Computes the fingerprints of every line of `text`, in time linear in its length.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let (units, starts) = kept_units(text);
        let hashes = hashes_backward(&units, &starts);
        let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
        let lines = hashes
            .into_iter()
            .map(|hash| {
                let count = seen.entry(hash).or_insert(0);
                *count += 1;
                (hash, *count)
            })
            .collect();
        Self { lines }
    }

    /// Fingerprint of one-based `line`: lower-case hex without padding, a colon, and the count. `None` beyond the last line.
    #[must_use]
    pub fn line(&self, line: u32) -> Option<String> {
        let (hash, count) = self.lines.get((line as usize).checked_sub(1)?)?;
        Some(format!("{hash:x}:{count}"))
    }

    /// Number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is no line; never the case, since an empty file has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Fingerprints of the findings of one run; line hashes are kept per file.
pub struct Prints<'a> {
    files: &'a Files,
    main: Option<&'a str>,
    hashes: BTreeMap<FileId, LineHashes>,
}

impl<'a> Prints<'a> {
    /// For findings in `files`; `main` is the source that is checked out.
    #[must_use]
    pub const fn new(files: &'a Files, main: Option<&'a str>) -> Self {
        Self { files, main, hashes: BTreeMap::new() }
    }

    /// Fingerprint of a finding.
    ///
    /// In the checked-out source it is that of the line, as GitHub computes it. In a companion the source and path are mixed in: results of several
    /// companion files may be shown on one line of the checked-out source, and equal files must stay apart. In the profile it is made from the
    /// symbol alone, since the lines there hold commits, which move.
    pub fn of(&mut self, finding: &Finding) -> String {
        let file = self.files.get(finding.primary.file);
        if file.source.is_empty() {
            return format!("{:x}:1", mixed(0, &finding.symbol));
        }
        let hashes = self.hashes.entry(finding.primary.file).or_insert_with(|| LineHashes::of(&file.text));
        let line = file.line_of(finding.primary.start) as usize;
        let (hash, count) = line.checked_sub(1).and_then(|line| hashes.lines.get(line)).copied().unwrap_or((0, 1));
        let own = self.main == Some(&*file.source);
        let hash = if own { hash } else { mixed(mixed(hash, &file.source), &file.path) };
        format!("{hash:x}:{count}")
    }
}

/// Goes on with a hash over a text and an end marker.
fn mixed(hash: u64, text: &str) -> u64 {
    let units = text.encode_utf16().chain(std::iter::once(END));
    units.fold(hash, |hash, unit| hash.wrapping_mul(BASE).wrapping_add(u64::from(unit)))
}

/// The units that count (end marker included), and for each line the index of its first one.
fn kept_units(text: &str) -> (Vec<u16>, Vec<usize>) {
    let mut units = Vec::with_capacity(text.len() + 1);
    let mut starts = Vec::new();
    let mut at_line_start = true;
    let mut after_carriage_return = false;
    for unit in text.encode_utf16().chain(std::iter::once(END)) {
        let space = unit == u16::from(b' ') || unit == u16::from(b'\t');
        let paired = unit == u16::from(b'\n') && after_carriage_return;
        after_carriage_return = unit == u16::from(b'\r');
        if space || paired {
            continue;
        }
        if at_line_start {
            starts.push(units.len());
        }
        let unit = if after_carriage_return { u16::from(b'\n') } else { unit };
        at_line_start = unit == u16::from(b'\n');
        units.push(unit);
    }
    (units, starts)
}

/// Hash at each of `starts`, by one pass from the end: every position's hash follows from the one behind it.
fn hashes_backward(units: &[u16], starts: &[usize]) -> Vec<u64> {
    let unit = |index: usize| units.get(index).copied().map_or(0, u64::from);
    let mut hashes = vec![0; starts.len()];
    let mut wanted = starts.iter().enumerate().rev().peekable();
    let mut hash = 0u64;
    for position in (0..units.len()).rev() {
        let behind = hash.wrapping_sub(unit(position + WINDOW)).wrapping_mul(BASE_INVERSE);
        hash = unit(position).wrapping_mul(FIRST_WEIGHT).wrapping_add(behind);
        if let Some((line, _)) = wanted.next_if(|(_, start)| **start == position) {
            hashes[line] = hash;
        }
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let hashes = LineHashes::of(text);
        (1..=u32::try_from(hashes.len()).unwrap()).map(|line| hashes.line(line).unwrap()).collect()
    }

    /// The definition, word for word and slow: the other witness.
    fn by_definition(text: &str) -> Vec<String> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut kept = Vec::new();
        for (at, unit) in units.iter().enumerate() {
            match *unit {
                0x20 | 0x09 => {}
                0x0A if at > 0 && units[at - 1] == 0x0D => {}
                0x0D => kept.push(0x0A),
                other => kept.push(u64::from(other)),
            }
        }
        kept.push(0xFFFF);
        let end = kept.len();
        kept.extend([0; 100]);
        let mut seen: Vec<u64> = Vec::new();
        let mut lines = Vec::new();
        for p in 0..end {
            if p > 0 && kept[p - 1] != 0x0A {
                continue;
            }
            let mut hash = 0u64;
            for i in 0..100 {
                hash = hash.wrapping_mul(37).wrapping_add(kept[p + i]);
            }
            seen.push(hash);
            lines.push(format!("{hash:x}:{}", seen.iter().filter(|other| **other == hash).count()));
        }
        lines
    }

    #[test]
    fn the_known_vectors_are_met() {
        assert_eq!(all(""), ["c129715d7a2bc9a3:1"]);
        assert_eq!(all(" a\nb\n  \t\tc\n d"), ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"]);
        assert_eq!(
            all(" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n"),
            [
                "e9496ae3ebfced30:1",
                "fb7c023a8b9ccb3f:1",
                "ce8ba1a563dcdaca:1",
                "e20e36e16fcb0cc8:1",
                "b3edc88f2938467e:1",
                "c8e28b0b4002a3a0:1",
                "c129715d7a2bc9a3:1",
            ]
        );
        assert_eq!(
            all(&"Lorem ipsum dolor sit amet.\n".repeat(10)),
            [
                "a7f2ff13bc495cf2:1",
                "a7f2ff13bc495cf2:2",
                "a7f2ff13bc495cf2:3",
                "a7f2ff13bc495cf2:4",
                "a7f2ff13bc495cf2:5",
                "a7f2ff13bc495cf2:6",
                "a7f2ff1481e87703:1",
                "a9cf91f7bbf1862b:1",
                "55ec222b86bcae53:1",
                "cc97dc7b1d7d8f7b:1",
                "c129715d7a2bc9a3:1",
            ]
        );
        assert_eq!(
            all("x = 2\nx = 1\nprint(x)\nx = 3\nprint(x)\nx = 4\nprint(x)\n"),
            [
                "e54938cc54b302f1:1",
                "bb609acbe9138d60:1",
                "1131fd5871777f34:1",
                "5c482a0f8b35ea28:1",
                "54517377da7028d2:1",
                "2c644846cb18d53e:1",
                "f1b89f20de0d133:1",
                "c129715d7a2bc9a3:1",
            ]
        );
    }

    #[test]
    fn the_fast_pass_agrees_with_the_definition() {
        let long = "y = 😀é * 37  # long enough to fill the window on its own, and then some more of it, up to here and beyond\r\n";
        for text in [
            "\u{FEFF}a = 1\n",
            "\u{FEFF}",
            "\r",
            "\n",
            "\r\n",
            "\r \n",
            "a\r\t\nb\r\n\rc",
            "\u{FFFD}\n\u{FFFF}\n",
            " ",
            "\t\n \n",
            "😀",
            &long.repeat(7),
            &"\n".repeat(250),
            &"\r\n\r".repeat(120),
        ] {
            assert_eq!(all(text), by_definition(text), "{text:?}");
        }
    }

    #[test]
    fn lines_are_those_of_the_line_table() {
        for text in ["", "a\r \nb", "a\r\nb\rc\n", "\u{FEFF}x\n\n"] {
            let file = crate::text::TextFile::new("s", "a.py", text);
            assert_eq!(LineHashes::of(text).len(), file.line_count() as usize, "{text:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_changes_the_first_line_only() {
        let (plain, marked) = (all("a\nb\n"), all("\u{FEFF}a\nb\n"));
        assert_ne!(plain[0], marked[0]);
        assert_eq!(plain[1..], marked[1..]);
    }

    #[test]
    fn indentation_and_position_do_not_count() {
        let tail = "z".repeat(120);
        assert_eq!(all(&format!("a = b\n{tail}"))[0], all(&format!("\n\n\t a=b\n{tail}"))[2]);
    }

    fn print(source: &str, path: &str, text: &str, line: u32, symbol: &str) -> String {
        let mut files = Files::default();
        let file = files.add(crate::text::TextFile::new(source, path, text));
        let (start, end) = files.get(file).line_range(line).unwrap();
        let span = crate::text::Span::new(file, start, end);
        let finding = Finding::new(crate::catalog::rule("RLK101").unwrap(), "default", vec![], span, symbol);
        Prints::new(&files, Some("main")).of(&finding)
    }

    #[test]
    fn a_finding_in_the_checkout_has_the_fingerprint_of_its_line() {
        assert_eq!(print("main", "a.py", "x = 2\nx = 1\nprint(x)\nx = 3\nprint(x)\nx = 4\nprint(x)\n", 2, "s"), "bb609acbe9138d60:1");
    }

    #[test]
    fn equal_companion_files_stay_apart() {
        let text = "import gemm\ngemm.run()\n";
        let prints = [print("vllm", "a.py", text, 2, "s"), print("vllm", "b.py", text, 2, "s"), print("vime", "a.py", text, 2, "s")];
        assert_eq!(prints.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        // Source and path are told apart from each other.
        assert_ne!(print("a", "bc", text, 1, "s"), print("ab", "c", text, 1, "s"));
        let moved = format!("{}\n  {text}", "\n".repeat(50));
        assert_eq!(print("vllm", "a.py", &moved, 53, "other"), prints[0]);
    }

    #[test]
    fn a_finding_on_a_pin_keeps_its_fingerprint_when_the_pin_moves() {
        let profile = |commit: &str| format!("[[source]]\nid = \"vllm\"\ncommit = \"{commit}\"\n");
        let (before, after) = (profile(&"1".repeat(40)), profile(&"2".repeat(40)));
        assert_ne!(all(&before)[0], all(&after)[0]);
        assert_eq!(print("", "rlk-lint.toml", &before, 1, "vllm"), print("", "rlk-lint.toml", &after, 1, "vllm"));
        assert_ne!(print("", "rlk-lint.toml", &before, 1, "vllm"), print("", "rlk-lint.toml", &before, 1, "vime"));
    }

    #[test]
    fn a_line_beyond_the_file_has_no_fingerprint() {
        assert_eq!(LineHashes::of("a").line(0), None);
        assert_eq!(LineHashes::of("a").line(2), None);
    }
}
