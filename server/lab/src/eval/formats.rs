//! Labelled sets in the shapes that they are published in: which shape a file has is seen from its content. All
//! become MCP servers with tools, and queries with labels.

mod bfcl;
mod csv;
mod elements;
mod gathered;
mod metatool;
mod schema;
#[cfg(test)]
mod tests;
mod toolbench;
mod toolret;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use super::catalog_file::{self, CatalogServer};
use super::input_error::{InputError, read_text};
use super::query_file::{self, LabelledQuery};

/// The shape of a labelled set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Our own: a catalog, and queries line by line.
    Toolgate,
    /// The Berkeley Function-Calling Leaderboard, single-turn categories.
    Bfcl,
    /// MetaTool (ToolE).
    MetaTool,
    /// ToolBench and StableToolBench.
    ToolBench,
    /// ToolRet.
    ToolRet,
}

impl Format {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("toolgate", Self::Toolgate),
        ("bfcl", Self::Bfcl),
        ("metatool", Self::MetaTool),
        ("toolbench", Self::ToolBench),
        ("toolret", Self::ToolRet),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }
}

/// Where a labelled set lies.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The tools; some sets have them beside each query.
    pub catalog: Option<&'a Path>,
    /// The queries.
    pub queries: &'a Path,
    /// The answers, where a set keeps them apart.
    pub answers: Option<&'a Path>,
}

/// Tools, and queries that say which of them serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelledSet {
    /// The MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// The queries.
    pub queries: Vec<LabelledQuery>,
}

/// Reads a labelled set; without a format, of the one that its queries look like.
///
/// # Errors
/// The file and line at fault; a file of no known shape.
pub fn read(files: Files<'_>, format: Option<Format>) -> Result<LabelledSet, InputError> {
    let text = read_text(files.queries)?;
    let format = format.map_or_else(|| detect(files.queries, &text), Ok)?;
    if files.answers.is_some() && format != Format::Bfcl {
        let problem = format!("{} keeps no answers apart: leave out --answers", format.name());
        return Err(InputError::of_file(files.queries, problem));
    }
    let set = match format {
        Format::Toolgate => LabelledSet {
            servers: catalog_file::read(needed(files, format)?)?,
            queries: query_file::parse(files.queries, &text)?,
        },
        Format::Bfcl => bfcl::read(files, &text)?,
        Format::MetaTool => metatool::read(needed(files, format)?, files.queries, &text)?,
        Format::ToolBench => toolbench::read(files, &text)?,
        Format::ToolRet => toolret::read(needed(files, format)?, files.queries, &text)?,
    };
    let queries = query_file::unless_empty(files.queries, set.queries)?;
    Ok(LabelledSet { queries, ..set })
}

/// The catalog of a format whose queries come without tools.
fn needed(files: Files<'_>, format: Format) -> Result<&Path, InputError> {
    let problem =
        || format!("{} queries come without tools: name them with --catalog", format.name());
    files.catalog.ok_or_else(|| InputError::of_file(files.queries, problem()))
}

/// The format that queries look like.
fn detect(path: &Path, text: &str) -> Result<Format, InputError> {
    let start = text.trim_start();
    if !start.starts_with(['{', '[']) {
        let header = start.lines().next().unwrap_or("");
        return match csv::is_header(header, &metatool::HEADER) {
            true => Ok(Format::MetaTool),
            false if header.is_empty() => Err(InputError::of_file(path, "no queries in it")),
            false => Err(unknown(path, &format!("a first line that reads {:?}", cut(header)))),
        };
    }
    // What is no JSON is for the parser of our own lines to explain.
    let first = elements::read(path, text).ok().and_then(|found| found.first().copied());
    let object =
        first.and_then(|(_, first)| serde_json::from_str::<Map<String, Value>>(first).ok());
    let Some(object) = object else { return Ok(Format::Toolgate) };
    let has = |key: &str| object.contains_key(key);
    match () {
        () if has("api_list") => Ok(Format::ToolBench),
        () if has("question") => Ok(Format::Bfcl),
        () if has("query") && has("labels") => Ok(Format::ToolRet),
        () if has("query") && has("tool") => Ok(Format::MetaTool),
        () if has("query") => Ok(Format::Toolgate),
        () => {
            let keys: Vec<_> = object.keys().take(6).map(|key| format!("{:?}", cut(key))).collect();
            Err(unknown(path, &format!("objects with {}", keys.join(", "))))
        }
    }
}

fn unknown(path: &Path, seen: &str) -> InputError {
    let problem = format!(
        "these are no queries that can be read: {seen}. Known are toolgate (lines with \"query\" and \
         \"relevant\"), bfcl (\"question\", \"function\"), metatool (\"query\", \"tool\", or a CSV with \
         Query,Tool), toolbench (\"query\", \"api_list\") and toolret (\"query\", \"labels\")"
    );
    InputError::of_file(path, problem)
}

/// As much as an error may repeat of a file.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A query with its labels; one whose text is blank is at fault.
fn query(
    path: &Path,
    line: usize,
    text: String,
    relevant: BTreeSet<String>,
) -> Result<LabelledQuery, InputError> {
    if text.trim().is_empty() {
        return Err(InputError::of_line(path, line, "the query is empty"));
    }
    Ok(LabelledQuery { text, relevant, ..LabelledQuery::default() })
}
