//! Figures of tables, their origins and their format.

use std::fmt;

use serde::{Serialize, Serializer};

/// Figure without its origin.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// Figure in words, such as a bound.
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
}

/// Origin of one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Measured by this benchmark.
    Measured,
    /// Measured tokens at the provider's published rates.
    Priced,
    /// Measured tokens beside a task and a system prompt whose sizes were fitted to the paper's figures.
    Fitted,
    /// Copied from another row, whose prompts are the same.
    Copied,
    /// Published by the paper as measured.
    Published,
    /// Published by the paper as a projection.
    Projected,
    /// Condition of the measurement, such as a number of turns.
    Given,
    /// No figure.
    None,
}

/// Cell of a table: a name, or a figure with its origin, or nothing. A figure becomes a cell only by one of the methods that
/// name its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    content: Content,
    origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Name(String),
    Figure(Figure),
    None,
}

impl Figure {
    /// Creates a count.
    pub(crate) fn count(number: u64) -> Self {
        Self::Count(number as f64)
    }

    /// Returns the cell of a figure that was measured.
    #[must_use]
    pub fn measured(self) -> Cell {
        self.of(Origin::Measured)
    }

    /// Returns the cell of measured tokens at the provider's rates.
    #[must_use]
    pub fn priced(self) -> Cell {
        self.of(Origin::Priced)
    }

    /// Returns the cell of a figure that was computed with fitted tokens.
    #[must_use]
    pub fn fitted(self) -> Cell {
        self.of(Origin::Fitted)
    }

    /// Returns the cell of another row's figure.
    #[must_use]
    pub fn copied(self) -> Cell {
        self.of(Origin::Copied)
    }

    /// Returns the cell of a figure that the paper publishes as measured.
    #[must_use]
    pub fn published(self) -> Cell {
        self.of(Origin::Published)
    }

    /// Returns the cell of a figure that the paper publishes as a projection.
    #[must_use]
    pub fn projected(self) -> Cell {
        self.of(Origin::Projected)
    }

    /// Returns the cell of a condition of the measurement.
    #[must_use]
    pub fn given(self) -> Cell {
        self.of(Origin::Given)
    }

    fn of(self, origin: Origin) -> Cell {
        Cell { content: Content::Figure(self), origin }
    }
}

impl Cell {
    /// Cell without a figure.
    pub const NONE: Self = Self { content: Content::None, origin: Origin::None };

    /// Creates the name of a row.
    #[must_use]
    pub fn name(text: impl Into<String>) -> Self {
        Self { content: Content::Name(text.into()), origin: Origin::None }
    }

    /// Returns the figure; `None` for a name or nothing.
    #[must_use]
    pub fn figure(&self) -> Option<&Figure> {
        match &self.content {
            Content::Figure(figure) => Some(figure),
            Content::Name(_) | Content::None => None,
        }
    }

    /// Returns the origin of the figure.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Name(name) => f.write_str(name),
            Content::Figure(figure) if self.origin == Origin::Copied => {
                write!(f, "{figure} (copied)")
            }
            Content::Figure(figure) => figure.fmt(f),
            Content::None => f.write_str("-"),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            Content::Name(name) => serializer.serialize_str(name),
            Content::Figure(figure) => figure.serialize(serializer),
            Content::None => serializer.serialize_none(),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(number) => f.write_str(&grouped(*number)),
            Self::Mean(number) => write!(f, "{number:.1}"),
            Self::Share(share) => write!(f, "{share:.2}"),
            Self::Percent(share) => write!(f, "{:.1}%", share * 100.0),
            Self::Of(some, all) => write!(f, "{some}/{all}"),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(x) | Self::Mean(x) | Self::Share(x) | Self::Percent(x) => {
                serializer.serialize_f64(*x)
            }
            Self::Of(some, all) => [some, all].serialize(serializer),
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
            (Figure::Count(1_234_567.4).measured(), "1,234,567"),
            (Figure::count(999).published(), "999"),
            (Figure::Count(-1_000.0).priced(), "-1,000"),
            (Figure::Mean(5.25).projected(), "5.2"),
            (Figure::Share(0.9).fitted(), "0.90"),
            (Figure::Percent(0.9504).measured(), "95.0%"),
            (Figure::Of(46, 50).published(), "46/50"),
            (Figure::Text("at least 1".to_owned()).published(), "at least 1"),
            (Figure::count(1_000).copied(), "1,000 (copied)"),
            (Cell::name("a row"), "a row"),
            (Cell::NONE, "-"),
        ];
        for (cell, wanted) in cells {
            assert_eq!(cell.to_string(), wanted);
        }
        let cells = [Figure::Of(1, 2).measured(), Cell::NONE, Figure::Mean(0.5).measured()];
        let json = serde_json::to_string(&cells);
        assert_eq!(json.expect("JSON"), "[[1,2],null,0.5]");
    }
}
