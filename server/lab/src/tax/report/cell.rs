//! Figure in a table, and its format.

use std::fmt;

use serde::{Serialize, Serializer};

/// Figure or text in a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// Count, or mean of counts, shown as a whole number.
    Count(f64),
    /// Small mean, shown with one decimal.
    Mean(f64),
    /// Share from 0 to 1, or an overlap, shown with two decimals.
    Share(f64),
    /// Share from 0 to 1, shown in per cent with one decimal.
    Percent(f64),
    /// Number of hits, and the number that they are out of.
    Of(u64, u64),
    /// Figure of another row, whose prompts are the same.
    Copied(Box<Cell>),
    /// No figure.
    None,
}

impl Cell {
    /// Creates a count.
    pub(in crate::tax) fn count(number: u64) -> Self {
        Self::Count(number as f64)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(number) => f.write_str(&grouped(*number)),
            Self::Mean(number) => write!(f, "{number:.1}"),
            Self::Share(share) => write!(f, "{share:.2}"),
            Self::Percent(share) => write!(f, "{:.1}%", share * 100.0),
            Self::Of(some, all) => write!(f, "{some}/{all}"),
            Self::Copied(cell) => write!(f, "{cell} (copied)"),
            Self::None => f.write_str("-"),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(x) | Self::Mean(x) | Self::Share(x) | Self::Percent(x) => {
                serializer.serialize_f64(*x)
            }
            Self::Of(some, all) => [some, all].serialize(serializer),
            Self::Copied(cell) => cell.serialize(serializer),
            Self::None => serializer.serialize_none(),
        }
    }
}

/// Formats 1234567.4 as "1,234,567".
pub(in crate::tax) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let sign = if number <= -0.5 { "-" } else { "" };
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_read_them() {
        let cells = [
            (Cell::Count(1_234_567.4), "1,234,567"),
            (Cell::count(999), "999"),
            (Cell::Count(-1_000.0), "-1,000"),
            (Cell::Mean(5.25), "5.2"),
            (Cell::Share(0.9), "0.90"),
            (Cell::Percent(0.9504), "95.0%"),
            (Cell::Of(46, 50), "46/50"),
            (Cell::Copied(Box::new(Cell::count(1_000))), "1,000 (copied)"),
            (Cell::None, "-"),
        ];
        for (cell, wanted) in cells {
            assert_eq!(cell.to_string(), wanted);
        }
        let json = serde_json::to_string(&[Cell::Of(1, 2), Cell::None, Cell::Mean(0.5)]);
        assert_eq!(json.expect("JSON"), "[[1,2],null,0.5]");
    }
}
