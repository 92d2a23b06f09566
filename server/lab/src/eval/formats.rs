//! Labelled sets in their published formats. The format of a file is detected from its content. Each set becomes MCP
//! servers with tools, and queries with labels.

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

/// Format of a labelled set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Toolgate's own format: a catalog, and one query per line.
    Toolgate,
    /// Berkeley Function-Calling Leaderboard, single-turn categories.
    Bfcl,
    /// MetaTool (ToolE).
    MetaTool,
    /// ToolBench and StableToolBench.
    ToolBench,
    /// ToolRet.
    ToolRet,
}

impl Format {
    /// All formats with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("toolgate", Self::Toolgate),
        ("bfcl", Self::Bfcl),
        ("metatool", Self::MetaTool),
        ("toolbench", Self::ToolBench),
        ("toolret", Self::ToolRet),
    ];

    /// Returns the format's name, as `--format` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }
}

/// Files of a labelled set.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// Catalog of the tools. Some sets have the tools in each query instead.
    pub catalog: Option<&'a Path>,
    /// Queries.
    pub queries: &'a Path,
    /// Answers, if a set keeps them in a file of their own.
    pub answers: Option<&'a Path>,
}

/// Tools, and queries with the tools that serve them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelledSet {
    /// MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// Queries with their labels.
    pub queries: Vec<LabelledQuery>,
}

/// Reads a labelled set. Without a format, it is detected from the queries.
///
/// # Errors
/// The file and line at fault, or a file of unknown format.
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

/// Returns the catalog for a format whose queries come without tools.
fn needed(files: Files<'_>, format: Format) -> Result<&Path, InputError> {
    let problem =
        || format!("{} queries come without tools: name them with --catalog", format.name());
    files.catalog.ok_or_else(|| InputError::of_file(files.queries, problem()))
}

/// Detects the format of queries from their content.
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
    // Text that is not JSON goes to the parser of our own format, which explains the problem.
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

/// Cuts a text to the 40 characters that an error may quote.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Makes a query with its labels. A blank text is an error.
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
