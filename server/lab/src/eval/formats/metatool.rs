//! MetaTool. Queries for one tool are a CSV with `Query,Tool`; queries for several tools are
//! `[{"query", "tool": [...]}]`. The tools are one object that maps names to descriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::gathered::{Gathered, label};
use super::{LabelledSet, csv, elements, query};
use crate::eval::input_error::{InputError, read_text};
use crate::eval::query_file::LabelledQuery;

/// Columns of the CSV.
pub(super) const HEADER: [&str; 2] = ["Query", "Tool"];

/// MCP server that holds all tools.
const SERVER: &str = "plugins";

const EXPECTED: &str =
    "expected the tools as {\"name\": \"description\", ...}, such as plugin_des.json";

#[derive(Deserialize)]
struct Multiple {
    query: String,
    tool: Vec<String>,
}

pub(super) fn read(catalog: &Path, path: &Path, text: &str) -> Result<LabelledSet, InputError> {
    let mut gathered = Gathered::default();
    let descriptions = read_text(catalog)?;
    if !descriptions.trim_start().starts_with('{') {
        return Err(InputError::of_file(catalog, EXPECTED));
    }
    let descriptions: BTreeMap<String, Value> = serde_json::from_str(&descriptions)
        .map_err(|error| InputError::of_json(catalog, 1, &error))?;
    for (name, description) in &descriptions {
        let Some(description) = description.as_str() else {
            let problem = format!("{name:?} has no text for a description; {EXPECTED}");
            return Err(InputError::of_file(catalog, problem));
        };
        gathered.add(
            SERVER,
            name,
            || json!({"name": name, "description": description, "inputSchema": {"type": "object"}}),
        );
    }
    let is_json = text.trim_start().starts_with(['[', '{']);
    let queries = if is_json { of_several(path, text) } else { of_one(path, text) };
    Ok(LabelledSet { servers: gathered.unless_empty(catalog)?, queries: queries? })
}

fn of_several(path: &Path, text: &str) -> Result<Vec<LabelledQuery>, InputError> {
    let one = |element: (usize, &str)| {
        let found: Multiple = elements::parse(path, element.0, element.1)?;
        query(path, element.0, found.query, labels(found.tool.iter().map(String::as_str)))
    };
    elements::read(path, text)?.into_iter().map(one).collect()
}

fn of_one(path: &Path, text: &str) -> Result<Vec<LabelledQuery>, InputError> {
    let records = csv::records(text).map_err(|line| {
        InputError::of_line(path, line, "quotes begin in this record and never end")
    })?;
    let wrong = |line, problem: String| InputError::of_line(path, line, problem);
    // The header is the first record.
    let rows = records.into_iter().skip(1);
    let one = |record: csv::Record| match &record.fields[..] {
        [text, tool] => query(path, record.line, text.clone(), labels([tool.as_str()].into_iter())),
        fields => Err(wrong(record.line, format!("{} fields; expected Query,Tool", fields.len()))),
    };
    rows.map(one).collect()
}

fn labels<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    names.map(|name| label(SERVER, name.trim())).collect()
}
