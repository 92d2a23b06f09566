//! `toolgate gate`: decides which calls of a model may run.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use toolgate_client::v1;

use super::arguments::ClientArguments;
use super::failure::{Exit, Failure};
use super::json::{refusal_code, verdict};
use super::output::{self, BAD, GOOD};
use super::route::read_state;
use super::text::one_line;

const EXAMPLES: &str = "\
Examples:
  toolgate gate --handle \"$HANDLE\" --call mcp__git__git_log --arguments '{\"repo_path\": \".\"}'
  toolgate gate --handle \"$HANDLE\" --call a --arguments '{}' --call b --arguments @b.json
  toolgate gate --handle \"$HANDLE\" --call mcp__git__git_push --state state.json --json

The handle is what `toolgate route --handle-only` prints for this turn, and `toolgate search` beside what it found.
Exit code 3 when a call is refused.";

const DEADLINE: Duration = Duration::from_secs(5);

/// Ask whether calls that a model wants to make may run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Gate {
    /// The active set's handle, from `toolgate route --handle-only`.
    #[arg(long, required = true, value_name = "HANDLE")]
    handle: String,
    /// A tool's name as the model wrote it. May be given more than once.
    #[arg(long = "call", required = true, value_name = "NAME")]
    calls: Vec<String>,
    /// A call's arguments as JSON, or @FILE. Given for no call, or for each in the same order.
    #[arg(long = "arguments", value_name = "JSON")]
    arguments: Vec<String>,
    /// What the agent has done and may do (JSON, TOML or YAML).
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

pub(super) async fn run(gate: Gate) -> Result<Exit, Failure> {
    let calls = pair(&gate.calls, &gate.arguments)?;
    let request = v1::GateRequest {
        active_set_handle: gate.handle,
        calls,
        state: read_state(gate.state)?,
        ..Default::default()
    };
    let answer = gate.client.connect(DEADLINE).await?.gate(request).await?;
    if answer.verdicts.len() != gate.calls.len() {
        // An incomplete answer must not count as permission to run the calls.
        return Err(Failure::new("the server did not answer for every call: none may run"));
    }
    if gate.json {
        let verdicts: Vec<Value> = answer.verdicts.iter().map(verdict).collect();
        output::print_json(&json!({
            "verdicts": verdicts,
            "catalog_revision": answer.catalog_revision,
        }))?;
    } else {
        output::print(&report(&gate.calls, &answer.verdicts))?;
    }
    let all_allowed = answer.verdicts.iter().all(|verdict| verdict.allowed);
    Ok(if all_allowed { Exit::Done } else { Exit::Refused })
}

/// Pairs each call with its arguments.
fn pair(calls: &[String], arguments: &[String]) -> Result<Vec<v1::RequestedCall>, Failure> {
    if !arguments.is_empty() && arguments.len() != calls.len() {
        return Err(Failure::usage(format!(
            "{} --call but {} --arguments: give --arguments for no call, or for each in the same order",
            calls.len(),
            arguments.len()
        )));
    }
    let texts = arguments.iter().map(Some).chain(std::iter::repeat(None));
    let call = |((index, tool), text): ((usize, &String), Option<&String>)| {
        Ok(v1::RequestedCall {
            call_id: (index + 1).to_string(),
            tool: tool.clone(),
            arguments_json: text.map(|text| read_arguments(text)).transpose()?.unwrap_or_default(),
            ..Default::default()
        })
    };
    calls.iter().enumerate().zip(texts).map(call).collect()
}

fn read_arguments(text: &str) -> Result<String, Failure> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some(path) => fs::read_to_string(path)
            .map_err(|error| Failure::new(format!("--arguments @{path}: cannot be read: {error}"))),
    }
}

fn report(calls: &[String], verdicts: &[v1::GateVerdict]) -> String {
    let mut text = String::new();
    for (call, verdict) in calls.iter().zip(verdicts) {
        let call = one_line(call, 64);
        if verdict.allowed {
            push(
                &mut text,
                format_args!(
                    "{GOOD}allowed{GOOD:#}  {call}: call {} of MCP server {}\n",
                    verdict.name, verdict.server
                ),
            );
        } else {
            let code = refusal_code(verdict.code());
            push(
                &mut text,
                format_args!("{BAD}refused{BAD:#}  {call}: {code}: {}\n", verdict.message),
            );
            push_details(&mut text, verdict);
        }
    }
    text
}

fn push_details(text: &mut String, verdict: &v1::GateVerdict) {
    for violation in &verdict.violations {
        let place = if violation.pointer.is_empty() { "the arguments" } else { &violation.pointer };
        push(text, format_args!("         {place}: {}\n", violation.message));
    }
    if !verdict.unlock.is_empty() {
        push(text, format_args!("         needs {}\n", verdict.unlock.join(" and ")));
    }
    if !verdict.available_tools.is_empty() {
        push(text, format_args!("         available: {}\n", verdict.available_tools.join(", ")));
    }
    if !verdict.search_query.is_empty() {
        push(text, format_args!("         search for: {}\n", verdict.search_query));
    }
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn arguments_go_with_their_calls() {
        let calls = pair(&strings(&["a", "b"]), &strings(&["{}", "{\"x\":1}"])).expect("paired");
        let want = [("1", "a", "{}"), ("2", "b", "{\"x\":1}")];
        for (call, (id, tool, arguments)) in calls.iter().zip(want) {
            let found = (call.call_id.as_str(), call.tool.as_str(), call.arguments_json.as_str());
            assert_eq!(found, (id, tool, arguments));
        }
        let bare = pair(&strings(&["a", "b"]), &[]).expect("without arguments");
        assert!(bare.iter().all(|call| call.arguments_json.is_empty()));
        let failure = pair(&strings(&["a", "b"]), &strings(&["{}"])).expect_err("one is missing");
        assert_eq!(failure.exit(), Exit::Usage);
    }

    #[test]
    fn arguments_may_be_in_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.json");
        fs::write(&path, "{\"k\": 1}").expect("written");
        let text = read_arguments(&format!("@{}", path.display())).expect("read");
        assert_eq!(text, "{\"k\": 1}");
        let failure = read_arguments("@absent.json").expect_err("no file");
        assert!(failure.message().contains("@absent.json"), "{}", failure.message());
    }

    #[test]
    fn verdicts_read_well() {
        let verdicts = [
            v1::GateVerdict {
                allowed: true,
                server: "git".into(),
                name: "git_log".into(),
                ..Default::default()
            },
            v1::GateVerdict {
                code: v1::RefusalCode::ArgumentsInvalid.into(),
                message: "Mend the arguments.".into(),
                violations: vec![v1::ArgumentViolation {
                    pointer: "/n".into(),
                    message: "not a number".into(),
                }],
                unlock: strings(&["is_authenticated(\"s\")"]),
                available_tools: strings(&["x", "y"]),
                search_query: "select:x".into(),
                ..Default::default()
            },
        ];
        let text = report(&strings(&["a", "b"]), &verdicts);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(
            text,
            "allowed  a: call git_log of MCP server git\n\
             refused  b: ARGUMENTS_INVALID: Mend the arguments.\n\
             \x20        /n: not a number\n\
             \x20        needs is_authenticated(\"s\")\n\
             \x20        available: x, y\n\
             \x20        search for: select:x\n"
        );
    }
}
