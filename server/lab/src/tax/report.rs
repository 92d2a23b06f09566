//! Tables of figures, for the terminal, as Markdown and as JSON. A table says whether its figures are measured or
//! projected, and why they differ from the paper's.

mod cell;
mod markdown;

use serde::Serialize;
use serde_json::{Value, json};

pub(super) use cell::grouped;
pub use cell::{Cell, Figure, Origin};

/// Kind of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Measured by this benchmark.
    Measured,
    /// Derived by the paper from assumptions, and never measured.
    Projection,
}

/// Table of figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Identifier for programs.
    pub id: &'static str,
    /// Origin of the figures.
    pub kind: Kind,
    /// Heading of the table.
    pub title: String,
    /// Paragraph that explains the measurement.
    pub says: String,
    /// Column headings. The first column holds words, and the others hold figures.
    pub columns: Vec<&'static str>,
    /// Rows of the table.
    pub rows: Vec<Vec<Cell>>,
    /// Differences from the paper: the row's name, and the reason.
    pub why: Vec<(String, String)>,
}

/// Complete results of the benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Seed of the testbed and its tasks.
    pub seed: u64,
    /// Number of tasks played on the testbed.
    pub tasks: usize,
    /// Fingerprint of the encoder.
    pub encoder: String,
    /// Tables in their order.
    pub tables: Vec<Table>,
    /// Warnings: tools that a registration would reject, and labels that name no tool.
    pub warnings: Vec<String>,
}

impl Table {
    /// Creates a table without rows.
    pub(crate) fn new(
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

    /// Returns the table with a paragraph before it.
    pub(crate) fn saying(self, says: impl Into<String>) -> Self {
        Self { says: says.into(), ..self }
    }

    pub(crate) fn push(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(std::iter::once(Cell::name(name)).chain(cells).collect());
    }

    /// Adds the reason why a row differs from the paper.
    pub(super) fn because(&mut self, row: &str, reason: impl Into<String>) {
        self.why.push((row.to_owned(), reason.into()));
    }

    fn origins(&self) -> Vec<Vec<Origin>> {
        self.rows.iter().map(|row| row.iter().map(Cell::origin).collect()).collect()
    }

    /// Returns the table as Markdown, with its heading and its paragraph.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::of_table(self)
    }

    /// Returns the heading. It labels a projection as such.
    #[must_use]
    pub fn heading(&self) -> String {
        match self.kind {
            Kind::Measured => self.title.clone(),
            Kind::Projection => format!("Projection: {}", self.title),
        }
    }
}

impl Report {
    /// Returns the report as a Markdown document. The same figures always give the same bytes.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }

    /// Returns the report as JSON.
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
                "origins": table.origins(),
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
