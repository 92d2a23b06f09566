//! Labelled queries, one JSON object a line: `{"query": "...", "relevant": ["server/tool", ...]}`. A query
//! without `relevant` needs no tool; it is ranked, and takes no part in the measures.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::input_error::{InputError, read_text};

/// One query and the tools that serve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledQuery {
    /// The text.
    pub text: String,
    /// The tools that serve it, as `server/tool`; empty when none does.
    pub relevant: BTreeSet<String>,
}

/// Sets carry further fields, such as the kind of query; they are passed over.
#[derive(Deserialize)]
struct Line {
    query: String,
    #[serde(default)]
    relevant: Option<BTreeSet<String>>,
}

/// Reads a file of queries; blank lines are passed over.
///
/// # Errors
/// The first line at fault, or a file without queries.
pub fn read(path: &Path) -> Result<Vec<LabelledQuery>, InputError> {
    let text = read_text(path)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let queries: Vec<_> =
        lines.map(|(number, line)| parse(path, number, line)).collect::<Result<_, _>>()?;
    if queries.is_empty() {
        return Err(InputError::of_file(path, "no queries in it"));
    }
    Ok(queries)
}

fn parse(path: &Path, number: usize, line: &str) -> Result<LabelledQuery, InputError> {
    let wrong = |problem: String| InputError::of_line(path, number, problem);
    if !line.trim_start().starts_with('{') {
        let problem = "expected {\"query\": \"...\", \"relevant\": [\"server/tool\", ...]}";
        return Err(wrong(problem.to_owned()));
    }
    let parsed: Line =
        serde_json::from_str(line).map_err(|error| InputError::of_json(path, number, &error))?;
    if parsed.query.trim().is_empty() {
        return Err(wrong("\"query\" is empty".to_owned()));
    }
    let relevant = parsed.relevant.unwrap_or_default();
    match relevant.iter().find(|id| !id.contains('/')) {
        Some(id) => Err(wrong(format!("\"relevant\" names {id:?}: write server/tool"))),
        None => Ok(LabelledQuery { text: parsed.query, relevant }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(text: &str) -> Result<Vec<LabelledQuery>, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("q.jsonl");
        std::fs::write(&path, text).expect("written");
        read(&path).map_err(|error| {
            let text = error.to_string();
            text.split_once("q.jsonl").map_or(text.clone(), |(_, rest)| rest.to_owned())
        })
    }

    #[test]
    fn lines_become_queries() {
        let text = "{\"query\": \"a\", \"relevant\": [\"s/t\", \"s/t\", \"s/u/v\"], \"kind\": 1}\r\n\n\
                    {\"query\": \"b\"}\n{\"query\": \"c\", \"relevant\": null}";
        let queries = read_of(text).expect("queries");
        let shape: Vec<_> = queries.iter().map(|q| (q.text.as_str(), q.relevant.len())).collect();
        assert_eq!(shape, [("a", 2), ("b", 0), ("c", 0)]);
    }

    #[test]
    fn mistakes_name_the_line() {
        let good = "{\"query\": \"a\"}\n\n";
        for (line, wanted) in [
            ("{\"query\": \"a\"", ":3: column 13: EOF while parsing an object"),
            ("{\"relevant\": []}", ":3: column 16: missing field `query`"),
            ("{\"query\": 3}", ":3: column 11: invalid type: integer `3`, expected a string"),
            ("{\"query\": \" \"}", ":3: \"query\" is empty"),
            (
                "{\"query\": \"a\", \"relevant\": [\"t\"]}",
                ":3: \"relevant\" names \"t\": write server/tool",
            ),
            ("[\"a\"]", ":3: expected {\"query\": \"...\", \"relevant\": [\"server/tool\", ...]}"),
        ] {
            assert_eq!(read_of(&format!("{good}{line}")).expect_err(line), wanted);
        }
        assert_eq!(read_of("\n \n").expect_err("empty"), ": no queries in it");
    }
}
