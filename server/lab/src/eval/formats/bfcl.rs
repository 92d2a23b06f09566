//! Berkeley Function-Calling Leaderboard, versions 3 and 4, single-turn categories. Questions are lines with `id`,
//! `question` and `function`. Answers are in a file of their own, as lines with `id` and `ground_truth`. In the
//! published set each question comes with its own functions; here all questions choose from all functions.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::gathered::{Gathered, label};
use super::{Files, LabelledSet, elements, query, schema};
use crate::eval::catalog_file;
use crate::eval::input_error::{InputError, read_text};
use crate::eval::query_file::LabelledQuery;

/// MCP server that holds all functions.
const SERVER: &str = "bfcl";

/// Folder of the answers, beside the questions.
const ANSWERS: &str = "possible_answer";

const NO_FUNCTIONS: &str = "no \"function\": multi-turn categories keep their functions elsewhere and can't \
                            be read; take a single-turn file, such as BFCL_v3_multiple.json";

#[derive(Deserialize)]
struct Question {
    id: String,
    question: Value,
    function: Option<Vec<Function>>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

#[derive(Deserialize)]
struct Answer {
    id: String,
    ground_truth: Vec<Map<String, Value>>,
}

/// Names of the functions to call, by the question's id; `None` without an answer file.
struct Answers {
    path: PathBuf,
    calls: Option<HashMap<String, BTreeSet<String>>>,
}

/// Reads questions and functions. A catalog, if given, is a file or directory of more questions. Only the functions of
/// the catalog are used then.
pub(super) fn read(files: Files<'_>, text: &str) -> Result<LabelledSet, InputError> {
    let answers = Answers::of(files)?;
    let mut gathered = Gathered::default();
    let mut queries = Vec::new();
    for element in elements::read(files.queries, text)? {
        let asked = question(files.queries, element)?;
        if files.catalog.is_none() {
            gather(&asked, files.queries, element.0, &mut gathered)?;
        }
        queries.push(labelled(files.queries, element.0, &asked, &answers)?);
    }
    for path in files.catalog.map_or_else(|| Ok(Vec::new()), catalog_file::files)? {
        let text = read_text(&path)?;
        for element in elements::read(&path, &text)? {
            gather(&question(&path, element)?, &path, element.0, &mut gathered)?;
        }
    }
    let servers = gathered.unless_empty(files.catalog.unwrap_or(files.queries))?;
    Ok(LabelledSet { servers, queries })
}

fn question(path: &Path, element: (usize, &str)) -> Result<Question, InputError> {
    elements::parse(path, element.0, element.1)
}

fn gather(
    asked: &Question,
    path: &Path,
    line: usize,
    gathered: &mut Gathered,
) -> Result<(), InputError> {
    let functions = asked.function.as_ref();
    let functions = functions.ok_or_else(|| InputError::of_line(path, line, NO_FUNCTIONS))?;
    for function in functions {
        gathered.add(SERVER, &function.name, || tool(function));
    }
    Ok(())
}

fn tool(function: &Function) -> Value {
    let parameters = schema::normal(function.parameters.clone());
    let parameters = if parameters.is_object() { parameters } else { json!({"type": "object"}) };
    json!({
        "name": function.name,
        "description": function.description,
        "inputSchema": parameters,
    })
}

fn labelled(
    path: &Path,
    line: usize,
    asked: &Question,
    answers: &Answers,
) -> Result<LabelledQuery, InputError> {
    // The kind is the id without its last part: `live_multiple` for `live_multiple_0-0-0`.
    let kind = asked.id.rsplit_once('_').map_or(asked.id.as_str(), |(kind, _)| kind);
    let needs_no_tool = kind.ends_with("irrelevance");
    let calls = if needs_no_tool || kind.ends_with("relevance") {
        BTreeSet::new()
    } else {
        answers.to(&asked.id).map_err(|problem| InputError::of_line(path, line, problem))?
    };
    let labels = calls.iter().map(|name| label(SERVER, name)).collect();
    let query = query(path, line, said(&asked.question), labels)?;
    Ok(LabelledQuery { needs_no_tool, kind: Some(kind.to_owned()), ..query })
}

/// Returns the user's text in the first turn.
fn said(question: &Value) -> String {
    let Some(items) = question.as_array() else {
        return question.as_str().unwrap_or_default().to_owned();
    };
    // The question is a list of turns, each a list of messages.
    let messages = items.first().and_then(Value::as_array).unwrap_or(items);
    let of_user = messages.iter().filter(|message| message["role"] == "user");
    let texts = of_user.filter_map(|message| message["content"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

impl Answers {
    /// Reads the named answer file, or the one beside the questions with the same name.
    fn of(files: Files<'_>) -> Result<Self, InputError> {
        let beside = || {
            let name = files.queries.file_name().unwrap_or_default();
            files.queries.with_file_name(ANSWERS).join(name)
        };
        let path = files.answers.map_or_else(beside, Path::to_owned);
        if files.answers.is_none() && !path.exists() {
            return Ok(Self { path, calls: None });
        }
        let text = read_text(&path)?;
        let mut calls = HashMap::new();
        for element in elements::read(&path, &text)? {
            let answer: Answer = elements::parse(&path, element.0, element.1)?;
            let names = answer.ground_truth.into_iter().flat_map(|call| call.into_iter());
            calls.insert(answer.id, names.map(|(name, _)| name).collect());
        }
        Ok(Self { path, calls: Some(calls) })
    }

    fn to(&self, id: &str) -> Result<BTreeSet<String>, String> {
        let path = self.path.display();
        match &self.calls {
            None => {
                Err(format!("no answers: there is no {path}; name another file with --answers"))
            }
            Some(calls) => {
                let found = calls.get(id).filter(|names| !names.is_empty());
                found.cloned().ok_or_else(|| format!("no answer to {id:?} in {path}"))
            }
        }
    }
}
