//! Tables of figures, as they are printed, written as Markdown and written as JSON. A table says whether its
//! figures are measured or projected, and why they differ from the paper's.

mod cell;
mod markdown;

use serde::Serialize;
use serde_json::{Value, json};

pub use cell::Cell;
pub(super) use cell::grouped;

/// Where a table's figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Counted here.
    Measured,
    /// Derived by the paper from assumptions; measured by nobody.
    Projection,
}

/// One table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name for machines.
    pub id: &'static str,
    /// Where its figures come from.
    pub kind: Kind,
    /// Its heading.
    pub title: String,
    /// What is measured, in a paragraph.
    pub says: String,
    /// The headings of its columns; the first column is of words, the others of figures.
    pub columns: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// Why rows differ from the paper's: the row's name, and the reason.
    pub why: Vec<(String, String)>,
}

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Tasks played on the testbed.
    pub tasks: usize,
    /// The encoder's fingerprint.
    pub encoder: String,
    /// The tables, in their order.
    pub tables: Vec<Table>,
    /// Warnings: tools that a registration would refuse, labels that name nothing.
    pub warnings: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(
        id: &'static str,
        title: impl Into<String>,
        columns: &[&'static str],
    ) -> Self {
        Self {
            id,
            kind: Kind::Measured,
            title: title.into(),
            says: String::new(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            why: Vec::new(),
        }
    }

    /// The same with a paragraph before it.
    pub(super) fn saying(self, says: impl Into<String>) -> Self {
        Self { says: says.into(), ..self }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(std::iter::once(Cell::Text(name.into())).chain(cells).collect());
    }

    /// Adds a reason.
    pub(super) fn because(&mut self, row: &str, reason: impl Into<String>) {
        self.why.push((row.to_owned(), reason.into()));
    }

    /// Its heading, which names a projection as one.
    #[must_use]
    pub fn heading(&self) -> String {
        match self.kind {
            Kind::Measured => self.title.clone(),
            Kind::Projection => format!("Projection: {}", self.title),
        }
    }
}

impl Report {
    /// The report as a document; the same for the same figures, to the byte.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }

    /// The report for machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let table = |table: &Table| {
            let reason = |(row, reason): &(String, String)| json!({"row": row, "reason": reason});
            json!({
                "id": table.id,
                "kind": table.kind,
                "title": table.title,
                "columns": table.columns,
                "rows": table.rows,
                "why_it_differs": table.why.iter().map(reason).collect::<Vec<_>>(),
            })
        };
        json!({
            "seed": self.seed,
            "tasks": self.tasks,
            "encoder_fingerprint": self.encoder,
            "tables": self.tables.iter().map(table).collect::<Vec<_>>(),
            "warnings": self.warnings,
        })
    }
}
