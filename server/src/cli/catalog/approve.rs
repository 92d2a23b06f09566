//! `toolgate catalog approve`: approves tools that wait for it, in the version that was reviewed.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use toolgate_client::v1;

use crate::cli::arguments::ClientArguments;
use crate::cli::failure::{Exit, Failure};
use crate::cli::json::refusal_code;
use crate::cli::names::{failure_of, unknown};
use crate::cli::output::{self, BAD, GOOD};
use crate::cli::text::{counted, one_line};

const EXAMPLES: &str = "\
Examples:
  toolgate catalog quarantine list --server github
  toolgate catalog approve github create_issue@9f2c41d0a7be
  toolgate catalog approve github --all

A tool is approved with the hash of the definition that was reviewed, or its first 12 digits at least: one that has
another definition by now is not approved. --all takes every tool of the MCP server as it is at this moment.

Exit code 3 when a tool was not approved.";

const DEADLINE: Duration = Duration::from_secs(30);

/// Minimum number of digits that identify a hash.
const DIGITS_MIN: usize = 12;
/// Number of digits of a whole hash.
const DIGITS: usize = 64;

/// Accept tools that wait for approval, each with the hash that was reviewed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Approve {
    /// The MCP server's name.
    server: String,
    /// The tools, each with the hash that was reviewed.
    #[arg(value_name = "TOOL@HASH", value_parser = parse, required_unless_present = "all")]
    tools: Vec<(String, String)>,
    /// All of the MCP server's tools that wait, as they are now.
    #[arg(long, conflicts_with = "tools")]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

fn parse(text: &str) -> Result<(String, String), String> {
    let expected = || {
        format!(
            "write TOOL@HASH, with {DIGITS_MIN} digits of the hash at least, as `toolgate catalog quarantine \
             list` shows them"
        )
    };
    let (tool, hash) = text.rsplit_once('@').ok_or_else(expected)?;
    let is_hash = (DIGITS_MIN..=DIGITS).contains(&hash.len())
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if tool.is_empty() || !is_hash {
        return Err(expected());
    }
    Ok((tool.to_owned(), hash.to_lowercase()))
}

pub(super) async fn run(arguments: Approve) -> Result<Exit, Failure> {
    let Approve { server, tools, all, json, client } = arguments;
    let client = client.connect_to_change(DEADLINE).await?;
    let stored = match client.all_tools(Some(&server), None).await {
        Ok(stored) => stored,
        Err(error) => return Err(failure_of(&client, &[&server], error).await),
    };
    let waiting: Vec<&v1::Tool> = stored.iter().filter(|tool| tool.quarantined).collect();
    let approvals: Vec<v1::ToolApproval> = if all {
        waiting.iter().map(|tool| approval(&tool.name, &tool.hash)).collect()
    } else {
        tools.iter().map(|(name, hash)| approval(name, &whole(&stored, name, hash))).collect()
    };
    if approvals.is_empty() {
        output::note(format_args!("{server}: no tool waits for approval"));
        return Ok(Exit::Done);
    }
    let names: Vec<String> = approvals.iter().map(|one| one.name.clone()).collect();
    let request =
        v1::ApproveToolsRequest { server: server.clone(), approvals, ..Default::default() };
    let answer = client.approve_tools(request).await?;
    if json {
        output::print_json(&as_json(&names, &answer))?;
    } else {
        output::print(&report(&server, &names, &stored, &answer))?;
    }
    Ok(if answer.refusals.is_empty() { Exit::Done } else { Exit::Refused })
}

fn approval(name: &str, hash: &str) -> v1::ToolApproval {
    v1::ToolApproval { name: name.to_owned(), hash: hash.to_owned() }
}

/// Returns the tool's hash if it begins with these digits. Otherwise it returns a hash that no tool has, so that the
/// server refuses.
fn whole(stored: &[v1::Tool], name: &str, digits: &str) -> String {
    let tool = stored.iter().find(|tool| tool.name == name && tool.hash.starts_with(digits));
    tool.map_or_else(|| format!("{digits:0<DIGITS$}"), |tool| tool.hash.clone())
}

fn is_refused(answer: &v1::ApproveToolsResponse, name: &str) -> bool {
    answer.refusals.iter().any(|refusal| refusal.name == name)
}

fn as_json(names: &[String], answer: &v1::ApproveToolsResponse) -> Value {
    let approved: Vec<&String> = names.iter().filter(|name| !is_refused(answer, name)).collect();
    let refusals: Vec<Value> = answer
        .refusals
        .iter()
        .map(|refusal| json!({"name": refusal.name, "code": refusal_code(refusal.code())}))
        .collect();
    json!({
        "approved": approved,
        "refusals": refusals,
        "catalog_revision": answer.catalog_revision,
    })
}

fn report(
    server: &str,
    names: &[String],
    stored: &[v1::Tool],
    answer: &v1::ApproveToolsResponse,
) -> String {
    let mut text = String::new();
    for name in names.iter().filter(|name| !is_refused(answer, name)) {
        text.push_str(&format!("{GOOD}approved{GOOD:#} {server}/{}\n", one_line(name, 128)));
    }
    for refusal in &answer.refusals {
        let why = match refusal.code() {
            v1::RefusalCode::UnknownTool => {
                let known = stored.iter().map(|tool| tool.name.as_str());
                let list = format!("toolgate tools --server {server}");
                unknown("there is no such tool", &refusal.name, known, &list)
            }
            v1::RefusalCode::SchemaChanged => {
                "its definition is another one: review it again (toolgate catalog quarantine list)"
                    .to_owned()
            }
            _ => "it was refused".to_owned(),
        };
        let name = one_line(&refusal.name, 128);
        text.push_str(&format!("{BAD}not approved{BAD:#} {server}/{name}: {why}\n"));
    }
    let approved = names.len() - answer.refusals.len().min(names.len());
    text + &format!("{}, catalog revision {}\n", counted(approved, "tool"), answer.catalog_revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_named_with_their_hash() {
        let hash = "0123456789AB";
        let taken = parse(&format!("a@b@{hash}"));
        assert_eq!(taken, Ok(("a@b".to_owned(), hash.to_lowercase())));
        for wrong in
            ["a", "@0123456789ab", "a@0123", "a@0123456789ag", &format!("a@{}", "0".repeat(65))]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn digits_name_the_hash_that_they_begin() {
        let tool = v1::Tool { name: "t".into(), hash: "ab".repeat(32), ..Default::default() };
        let stored = [tool];
        assert_eq!(whole(&stored, "t", "ababababab"), "ab".repeat(32));
        assert_eq!(whole(&stored, "t", "ababababac").len(), DIGITS);
        assert_ne!(whole(&stored, "u", "ababababab"), "ab".repeat(32));
    }

    #[test]
    fn answers_read_well() {
        let refusal = |name: &str, code: v1::RefusalCode| v1::ApprovalRefusal {
            name: name.into(),
            code: code.into(),
        };
        let refusals = vec![
            refusal("b", v1::RefusalCode::SchemaChanged),
            refusal("raed", v1::RefusalCode::UnknownTool),
        ];
        let answer = v1::ApproveToolsResponse { catalog_revision: 7, refusals };
        let names = ["a", "b", "raed"].map(str::to_owned);
        let stored = [v1::Tool { name: "read".into(), ..Default::default() }];
        let text = report("s", &names, &stored, &answer);
        let text = anstream::adapter::strip_str(&text).to_string();
        for part in [
            "approved s/a\n",
            "not approved s/b: its definition",
            "not approved s/raed: there is no such tool: did you mean `read`? `toolgate tools --server s` lists them\n",
            "1 tool, catalog revision 7",
        ] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
        assert_eq!(as_json(&names, &answer)["approved"], json!(["a"]));
    }
}
