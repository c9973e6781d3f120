//! Integers that may depend on one unknown size, and how far from a given size on they compare alike.
//!
//! In: sums, products and floor divisions over the unknown. Out: the value at a size, and for two numbers the largest size up to which their order
//! is the one at the current size: exact, found by solving and never by sampling. Refused: values beyond 128 bits.

use std::cmp::Ordering;
use std::rc::Rc;

/// Numbers of more parts than this are not built; the evaluator fixes the size instead.
const MAX_PARTS: u32 = 48;

/// An integer over the unknown size `rows`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// `slope * rows + offset`
    Line {
        /// Factor of the size.
        slope: i128,
        /// What is added.
        offset: i128,
    },
    /// `number // divisor`, with a positive divisor.
    Quotient(Rc<Self>, i128),
    /// `factor * number`
    Scaled(i128, Rc<Self>),
    /// A sum.
    Sum(Rc<Self>, Rc<Self>),
    /// A product of two numbers that depend on the size.
    Product(Rc<Self>, Rc<Self>),
}

/// How a number moves as the size grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Constant,
    Rising,
    Falling,
    Unknown,
}

impl Number {
    /// A number that does not depend on the size.
    #[must_use]
    pub const fn constant(value: i128) -> Self {
        Self::Line { slope: 0, offset: value }
    }

    /// The value, if it does not depend on the size.
    #[must_use]
    pub const fn as_constant(&self) -> Option<i128> {
        match self {
            Self::Line { slope: 0, offset } => Some(*offset),
            _ => None,
        }
    }

    fn parts(&self) -> u32 {
        match self {
            Self::Line { .. } => 1,
            Self::Quotient(inner, _) | Self::Scaled(_, inner) => 1 + inner.parts(),
            Self::Sum(a, b) | Self::Product(a, b) => 1 + a.parts() + b.parts(),
        }
    }

    /// The value at a size; `None` beyond 128 bits.
    #[must_use]
    pub fn at(&self, size: i128) -> Option<i128> {
        match self {
            Self::Line { slope, offset } => slope.checked_mul(size)?.checked_add(*offset),
            Self::Quotient(inner, divisor) => inner.at(size)?.checked_div_euclid(*divisor),
            Self::Scaled(factor, inner) => inner.at(size)?.checked_mul(*factor),
            Self::Sum(a, b) => a.at(size)?.checked_add(b.at(size)?),
            Self::Product(a, b) => a.at(size)?.checked_mul(b.at(size)?),
        }
    }

    /// The sum; `None` if it has too many parts.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Line { slope: a, offset: b }, Self::Line { slope: c, offset: d }) => {
                Some(Self::Line { slope: a.checked_add(*c)?, offset: b.checked_add(*d)? })
            }
            (Self::Line { slope: 0, offset: 0 }, other) | (other, Self::Line { slope: 0, offset: 0 }) => Some(other.clone()),
            _ => bounded(Self::Sum(Rc::new(self.clone()), Rc::new(other.clone()))),
        }
    }

    /// The number times a constant; `None` if it has too many parts.
    #[must_use]
    pub fn scaled(&self, factor: i128) -> Option<Self> {
        match self {
            Self::Line { slope, offset } => Some(Self::Line { slope: slope.checked_mul(factor)?, offset: offset.checked_mul(factor)? }),
            _ if factor == 1 => Some(self.clone()),
            _ if factor == 0 => Some(Self::constant(0)),
            Self::Scaled(before, inner) => Some(Self::Scaled(before.checked_mul(factor)?, inner.clone())),
            _ => bounded(Self::Scaled(factor, Rc::new(self.clone()))),
        }
    }

    /// The product; `None` if it has too many parts.
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        match (self.as_constant(), other.as_constant()) {
            (Some(factor), _) => other.scaled(factor),
            (_, Some(factor)) => self.scaled(factor),
            _ => bounded(Self::Product(Rc::new(self.clone()), Rc::new(other.clone()))),
        }
    }

    /// The difference; `None` if it has too many parts.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Option<Self> {
        if self == other { Some(Self::constant(0)) } else { self.plus(&other.scaled(-1)?) }
    }

    /// `self // divisor`; `None` if it has too many parts, or the divisor is not positive.
    #[must_use]
    pub fn over(&self, divisor: i128) -> Option<Self> {
        match self {
            _ if divisor <= 0 => None,
            _ if divisor == 1 => Some(self.clone()),
            Self::Line { slope, offset } if slope % divisor == 0 => {
                Some(Self::Line { slope: slope / divisor, offset: offset.div_euclid(divisor) })
            }
            _ => bounded(Self::Quotient(Rc::new(self.clone()), divisor)),
        }
    }

    fn trend(&self, from: i128) -> Trend {
        let turned = |trend: Trend| match trend {
            Trend::Rising => Trend::Falling,
            Trend::Falling => Trend::Rising,
            same => same,
        };
        match self {
            Self::Line { slope, .. } => match slope.cmp(&0) {
                Ordering::Equal => Trend::Constant,
                Ordering::Greater => Trend::Rising,
                Ordering::Less => Trend::Falling,
            },
            Self::Quotient(inner, _) => inner.trend(from),
            Self::Scaled(factor, inner) => {
                if *factor < 0 {
                    turned(inner.trend(from))
                } else {
                    inner.trend(from)
                }
            }
            Self::Sum(a, b) => match (a.trend(from), b.trend(from)) {
                (Trend::Constant, other) | (other, Trend::Constant) => other,
                (a, b) if a == b => a,
                _ => Trend::Unknown,
            },
            // Both grow from something that is not negative, so their product grows.
            Self::Product(a, b) => {
                let grows = |part: &Self| {
                    matches!(part.trend(from), Trend::Rising | Trend::Constant) && part.at(from).is_some_and(|value| value >= 0)
                };
                if grows(a) && grows(b) { Trend::Rising } else { Trend::Unknown }
            }
        }
    }

    /// Sign of the number at `from`, and the largest size up to `to` until which it keeps that sign without a break. `None` beyond 128 bits.
    #[must_use]
    pub fn sign(&self, from: i128, to: i128) -> Option<(Ordering, i128)> {
        let sign = self.at(from)?.cmp(&0);
        match self.trend(from) {
            Trend::Constant => Some((sign, to)),
            // Nothing is known of how it moves: the answer holds for this size.
            Trend::Unknown => Some((sign, from)),
            Trend::Rising | Trend::Falling => {
                if self.at(to)?.cmp(&0) == sign {
                    return Some((sign, to));
                }
                // A number that only grows, or only falls, leaves its sign once: that size is found by halving.
                let (mut same, mut other) = (from, to);
                while other - same > 1 {
                    let middle = same + (other - same) / 2;
                    if self.at(middle)?.cmp(&0) == sign {
                        same = middle;
                    } else {
                        other = middle;
                    }
                }
                Some((sign, same))
            }
        }
    }

    /// As a formula over `rows`.
    #[must_use]
    pub fn formula(&self) -> String {
        self.written(false)
    }

    fn written(&self, within: bool) -> String {
        let (text, plain) = match self {
            Self::Line { slope: 0, offset } => (offset.to_string(), *offset >= 0),
            Self::Line { slope, offset } => {
                let rows = match slope {
                    1 => "rows".to_owned(),
                    other => format!("{other} * rows"),
                };
                match offset.cmp(&0) {
                    Ordering::Equal => (rows, *slope == 1),
                    Ordering::Greater => (format!("{rows} + {offset}"), false),
                    Ordering::Less => (format!("{rows} - {}", offset.unsigned_abs()), false),
                }
            }
            Self::Quotient(inner, divisor) => {
                // `(x + c - 1) // c` is the ceiling of `x / c`.
                if let Self::Line { slope, offset } = &**inner
                    && *offset == divisor - 1
                    && *slope > 0
                {
                    let rows = Self::Line { slope: *slope, offset: 0 };
                    (format!("ceil({} / {divisor})", rows.written(false)), true)
                } else {
                    (format!("floor({} / {divisor})", inner.written(true)), true)
                }
            }
            Self::Scaled(factor, inner) => (format!("{factor} * {}", inner.written(true)), false),
            Self::Sum(a, b) => (format!("{} + {}", a.written(false), b.written(false)), false),
            Self::Product(a, b) => (format!("{} * {}", a.written(true), b.written(true)), false),
        };
        if within && !plain { format!("({text})") } else { text }
    }
}

fn bounded(number: Number) -> Option<Number> {
    (number.parts() <= MAX_PARTS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Number {
        Number::Line { slope: 1, offset: 0 }
    }

    fn ceil(divisor: i128) -> Number {
        rows().plus(&Number::constant(divisor - 1)).unwrap().over(divisor).unwrap()
    }

    #[test]
    fn a_line_keeps_its_sign_up_to_where_it_crosses() {
        let past = rows().minus(&Number::constant(64)).unwrap();
        // rows - 64 is negative up to 63, zero at 64, positive from 65 on.
        assert_eq!(past.sign(1, 8192), Some((Ordering::Less, 63)));
        assert_eq!(past.sign(64, 8192), Some((Ordering::Equal, 64)));
        assert_eq!(past.sign(65, 8192), Some((Ordering::Greater, 8192)));
    }

    #[test]
    fn a_step_function_keeps_its_value_until_the_next_step() {
        // ceil(rows / 16) is 2 for 17 to 32.
        let two = ceil(16).minus(&Number::constant(2)).unwrap();
        assert_eq!(two.sign(1, 100), Some((Ordering::Less, 16)));
        assert_eq!(two.sign(17, 100), Some((Ordering::Equal, 32)));
        assert_eq!(two.sign(33, 100), Some((Ordering::Greater, 100)));
    }

    #[test]
    fn a_product_that_only_grows_is_solved_and_one_that_does_not_holds_for_one_size() {
        let square = rows().times(&rows()).unwrap();
        // 31 * 31 = 961, 32 * 32 = 1024.
        assert_eq!(square.minus(&Number::constant(1000)).unwrap().sign(1, 1 << 40), Some((Ordering::Less, 31)));
        let bent = rows().times(&rows().minus(&Number::constant(10)).unwrap()).unwrap();
        assert_eq!(bent.sign(3, 100), Some((Ordering::Less, 3)));
    }

    #[test]
    fn what_leaves_128_bits_is_no_value() {
        assert_eq!(Number::constant(i128::MAX).plus(&Number::constant(1)), None);
        assert_eq!(Number::Line { slope: i128::MAX, offset: 0 }.at(2), None);
    }

    #[test]
    fn formulas_are_written_as_people_would() {
        assert_eq!(ceil(16).scaled(1188).unwrap().formula(), "1188 * ceil(rows / 16)");
        assert_eq!(rows().scaled(2).unwrap().plus(&Number::constant(-3)).unwrap().formula(), "2 * rows - 3");
        assert_eq!(rows().over(4).unwrap().formula(), "floor(rows / 4)");
        assert_eq!(Number::constant(-7).formula(), "-7");
    }
}
