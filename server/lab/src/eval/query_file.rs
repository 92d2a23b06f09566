//! Labelled queries, one JSON object per line: `{"query": "...", "relevant": ["server/tool", ...]}`. A query with an
//! empty `relevant` needs no tool, and measures abstention. A query without `relevant` is ranked but not measured.
//!
//! Lines with the same `conversation` are the turns of one conversation, in their order and together. Such a line may
//! also hold `calls` (`[{"tool": "server/tool", "arguments": {...}, "result": "..."}]`), what the agent called in the
//! turn, and `answer`, what it said then.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::input_error::{InputError, read_text};

/// Query with the tools that serve it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelledQuery {
    /// Text of the query.
    pub text: String,
    /// Tools that serve the query, as `server/tool`; empty if there are none or they are not known.
    pub relevant: BTreeSet<String>,
    /// True if the query is known to need no tool.
    pub needs_no_tool: bool,
    /// Tools that were called before the query, as `server/tool`, oldest first.
    pub called: Vec<String>,
    /// Kind of query, for reports by kind.
    pub kind: Option<String>,
    /// Language of the query, for reports by language.
    pub language: Option<String>,
    /// Name of the conversation that the query is a turn of.
    pub conversation: Option<String>,
    /// Calls that the agent made in this turn, in their order.
    pub calls: Vec<TurnCall>,
    /// Agent's words at the end of this turn; empty if they are not known.
    pub answer: String,
}

/// Call that an agent made in a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct TurnCall {
    /// Called tool, as `server/tool`.
    pub tool: String,
    /// Arguments of the call, a JSON object.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Result of the tool: a text, or JSON text.
    #[serde(default)]
    pub result: String,
}

impl LabelledQuery {
    /// Returns true if the query has labels, so that it takes part in the measures of retrieval.
    #[must_use]
    pub fn is_labelled(&self) -> bool {
        !self.relevant.is_empty()
    }
}

/// One line of the file. Further fields are ignored, and so is a kind or a language that is not text.
#[derive(Deserialize)]
struct Line {
    query: String,
    #[serde(default)]
    relevant: Option<BTreeSet<String>>,
    #[serde(default)]
    called: Vec<String>,
    #[serde(default)]
    kind: Value,
    #[serde(default)]
    language: Value,
    #[serde(default)]
    conversation: Option<String>,
    #[serde(default)]
    calls: Vec<TurnCall>,
    #[serde(default)]
    answer: String,
}

/// Reads a file of queries. Blank lines are skipped.
///
/// # Errors
/// The first line at fault, or a file without queries.
pub fn read(path: &Path) -> Result<Vec<LabelledQuery>, InputError> {
    parse(path, &read_text(path)?)
}

/// Reads a file of queries that need no tool. Their `relevant` is absent or empty.
///
/// # Errors
/// Same as [`read`], or a query that names tools.
pub fn read_no_tool(path: &Path) -> Result<Vec<LabelledQuery>, InputError> {
    let text = read_text(path)?;
    let mut queries = Vec::new();
    for (number, line) in lines(&text) {
        let query = parse_line(path, number, line)?;
        if let Some(id) = query.relevant.first() {
            let problem = format!(
                "\"relevant\" names {id:?}: this file is for queries that need no tool; leave it out"
            );
            return Err(InputError::of_line(path, number, problem));
        }
        queries.push(LabelledQuery { needs_no_tool: true, ..query });
    }
    unless_empty(path, queries)
}

/// Parses the queries of a file's text.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<LabelledQuery>, InputError> {
    let queries = lines(text).map(|(number, line)| parse_line(path, number, line));
    unless_empty(path, queries.collect::<Result<_, _>>()?)
}

/// Returns the lines that are not blank, numbered from 1.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
}

/// Returns the queries, or an error if there are none.
pub(super) fn unless_empty(
    path: &Path,
    queries: Vec<LabelledQuery>,
) -> Result<Vec<LabelledQuery>, InputError> {
    if queries.is_empty() {
        return Err(InputError::of_file(path, "no queries in it"));
    }
    Ok(queries)
}

fn parse_line(path: &Path, number: usize, line: &str) -> Result<LabelledQuery, InputError> {
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
    let needs_no_tool = parsed.relevant.as_ref().is_some_and(BTreeSet::is_empty);
    let relevant = parsed.relevant.unwrap_or_default();
    let relevant_ids = relevant.iter().map(|id| ("relevant", id));
    let called_ids = parsed.called.iter().map(|id| ("called", id));
    let calls_ids = parsed.calls.iter().map(|call| ("calls", &call.tool));
    let mut ids = relevant_ids.chain(called_ids).chain(calls_ids);
    if let Some((field, id)) = ids.find(|(_, id)| !id.contains('/')) {
        return Err(wrong(format!("\"{field}\" names {id:?}: write server/tool")));
    }
    let text_of = |value: Value| value.as_str().map(str::to_owned);
    Ok(LabelledQuery {
        text: parsed.query,
        relevant,
        needs_no_tool,
        called: parsed.called,
        kind: text_of(parsed.kind),
        language: text_of(parsed.language),
        conversation: parsed.conversation,
        calls: parsed.calls,
        answer: parsed.answer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reader = fn(&Path) -> Result<Vec<LabelledQuery>, InputError>;

    fn read_of(text: &str, reader: Reader) -> Result<Vec<LabelledQuery>, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("q.jsonl");
        std::fs::write(&path, text).expect("written");
        reader(&path).map_err(|error| {
            let text = error.to_string();
            text.split_once("q.jsonl").map_or(text.clone(), |(_, rest)| rest.to_owned())
        })
    }

    #[test]
    fn lines_become_queries() {
        let text = "{\"query\": \"a\", \"relevant\": [\"s/t\", \"s/t\", \"s/u/v\"], \"kind\": 1}\r\n\n\
                    {\"query\": \"b\"}\n{\"query\": \"c\", \"relevant\": null}\n\
                    {\"query\": \"d\", \"relevant\": [], \"kind\": \"chat\", \"language\": \"de\"}";
        let queries = read_of(text, read).expect("queries");
        let shape: Vec<_> = queries
            .iter()
            .map(|q| (q.text.as_str(), q.relevant.len(), q.needs_no_tool, q.kind.as_deref()))
            .collect();
        let wanted = [
            ("a", 2, false, None),
            ("b", 0, false, None),
            ("c", 0, false, None),
            ("d", 0, true, Some("chat")),
        ];
        assert_eq!(shape, wanted);
        assert_eq!(queries[3].language.as_deref(), Some("de"));
    }

    #[test]
    fn turns_hold_what_the_agent_did() {
        let text = r#"{"query": "a", "relevant": ["s/t"], "conversation": "c", "answer": "Done.",
            "calls": [{"tool": "s/t", "arguments": {"n": 1}, "result": "one"}, {"tool": "s/u"}]}"#;
        let turn = &read_of(&text.replace('\n', " "), read).expect("a turn")[0];
        assert_eq!(turn.conversation.as_deref(), Some("c"));
        assert_eq!((turn.answer.as_str(), turn.calls.len()), ("Done.", 2));
        assert_eq!((turn.calls[0].result.as_str(), turn.calls[1].result.as_str()), ("one", ""));
        assert_eq!(turn.calls[0].arguments["n"], 1);
    }

    #[test]
    fn a_file_of_queries_that_need_no_tool_names_none() {
        let queries =
            read_of("{\"query\": \"a\"}\n{\"query\": \"b\", \"relevant\": []}", read_no_tool);
        assert!(queries.expect("queries").iter().all(|query| query.needs_no_tool));
        let wrong = read_of("\n{\"query\": \"a\", \"relevant\": [\"s/t\"]}", read_no_tool);
        let wrong = wrong.expect_err("a tool");
        assert!(wrong.starts_with(":2: \"relevant\" names \"s/t\": this file is for"), "{wrong}");
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
            (
                "{\"query\": \"a\", \"called\": [\"s/t\", \"u\"]}",
                ":3: \"called\" names \"u\": write server/tool",
            ),
            (
                "{\"query\": \"a\", \"calls\": [{\"tool\": \"t\"}]}",
                ":3: \"calls\" names \"t\": write server/tool",
            ),
            ("[\"a\"]", ":3: expected {\"query\": \"...\", \"relevant\": [\"server/tool\", ...]}"),
        ] {
            assert_eq!(read_of(&format!("{good}{line}"), read).expect_err(line), wanted);
        }
        assert_eq!(read_of("\n \n", read).expect_err("empty"), ": no queries in it");
    }
}
