//! What Triton's GPU dialect says about a kernel's dot products.
//!
//! In: the text of a `.ttgir` file. Out: tile shapes, operand widths and layouts of every `tt.dot`. Refused: nothing; what cannot be understood is
//! counted as such. kpack leaves no trace in mnemonics: `kWidth` in this text is the only place where it shows.

use std::collections::{BTreeMap, BTreeSet};

/// Facts about all dot products of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dots {
    /// How many `tt.dot` there are.
    pub count: u64,
    /// How many of them could not be understood.
    pub unclear: u64,
    /// Tiles as (M, N, K).
    pub tiles: BTreeSet<(u64, u64, u64)>,
    /// Element types of the operands.
    pub elements: BTreeSet<String>,
    /// Values of `kWidth`; a dot product without one adds none.
    pub k_widths: BTreeSet<u64>,
    /// Shapes of the matrix instruction.
    pub instructions: BTreeSet<Vec<u64>>,
    /// Dot products whose operands do not lie as a matrix instruction wants them.
    pub without_matrix: u64,
}

impl Dots {
    /// Reads them.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut layouts = BTreeMap::new();
        let mut dots = Self::default();
        for line in text.lines() {
            if let Some((name, body)) = line.split_once(" = ").filter(|(name, _)| name.starts_with('#')) {
                layouts.insert(name, body);
            } else if line.contains("tt.dot ") || line.contains("amdg.dot ") {
                dots.count += 1;
                if dots.add(line, &layouts).is_none() {
                    dots.unclear += 1;
                }
            }
        }
        dots
    }

    fn add(&mut self, line: &str, layouts: &BTreeMap<&str, &str>) -> Option<()> {
        let types = &line[line.rfind(" : tensor<")?..];
        let (operands, _) = types.split_once(" -> ")?;
        let (left, right) = operands.trim_start_matches(" : ").split_once(" * ")?;
        let ((m, k), element, left) = tensor(left)?;
        let ((depth, n), other, right) = tensor(right)?;
        if k != depth {
            return None;
        }
        self.tiles.insert((m, n, k));
        self.elements.extend([element.to_owned(), other.to_owned()]);
        let mut matrix = true;
        for layout in [left, right] {
            let layout = layouts.get(layout).copied().unwrap_or(layout);
            let parent = value(layout, "parent = ").map_or("", |parent| layouts.get(parent).copied().unwrap_or(parent));
            self.k_widths.extend(value(layout, "kWidth = ").and_then(|width| width.parse::<u64>().ok()));
            match parent.starts_with("#ttg.amd_mfma<").then(|| numbers(parent, "instrShape = [")).flatten() {
                Some(shape) => {
                    self.instructions.insert(shape);
                }
                None => matrix = false,
            }
        }
        self.without_matrix += u64::from(!matrix);
        Some(())
    }
}

/// Shape, element type and layout of `tensor<16x64xbf16, LAYOUT>`.
fn tensor(text: &str) -> Option<((u64, u64), &str, &str)> {
    let inside = text.trim().strip_prefix("tensor<")?;
    let (shape, layout) = inside.split_once(", ")?;
    let layout = &layout[..layout.rfind('>')?];
    let mut parts = shape.splitn(3, 'x');
    let (rows, columns) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(((rows, columns), parts.next()?, layout))
}

/// What follows `key` in a layout, up to the next comma or bracket.
fn value<'t>(layout: &'t str, key: &str) -> Option<&'t str> {
    let rest = &layout[layout.find(key)? + key.len()..];
    rest.split([',', '}', '>']).next().map(str::trim)
}

fn numbers(layout: &str, key: &str) -> Option<Vec<u64>> {
    let rest = &layout[layout.find(key)? + key.len()..];
    rest.split(']').next()?.split(',').map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_dot_and_a_scalar_one_are_told_apart() {
        let text = "\
#blocked = #ttg.blocked<{sizePerThread = [1, 8], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>
  %0 = tt.dot %a, %b, %c : tensor<16x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>> * tensor<64x32xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<16x32xf32, #mma> loc(#loc1)
  %1 = tt.dot %a, %b, %c : tensor<16x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<64x32xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x32xf32, #blocked>
  %2 = tt.dot %a, %b : nonsense
  %3 = tt.dot %a, %b, %c : tensor<16x64xbf16, #mma> * tensor<32x32xbf16, #mma> -> tensor<16x32xf32, #mma>
";
        let dots = Dots::read(text);
        assert_eq!((dots.count, dots.unclear, dots.without_matrix), (4, 2, 1));
        assert_eq!(dots.tiles, BTreeSet::from([(16, 32, 64)]));
        assert_eq!(dots.k_widths, BTreeSet::from([4, 8]));
        assert_eq!(dots.instructions, BTreeSet::from([vec![16, 16, 16]]));
        assert_eq!(dots.elements, BTreeSet::from(["bf16".to_owned()]));
        assert_eq!(Dots::read("module {}"), Dots::default());
    }
}
