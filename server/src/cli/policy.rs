//! `toolgate policy`: sets, reads and tries a tenant's policy, or prints the schema of policies.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolgate_client::v1;

use super::arguments::ClientArguments;
use super::documents::read_text;
use super::failure::{Exit, Failure};
use super::json::refusal_code;
use super::output;
use super::route::read_state;
use super::table::{Column, render};
use super::text::{counted, grouped, one_line};
use toolgate_core::policy;

const EXAMPLES: &str = "\
Examples:
  toolgate policy check examples/policy.yaml --state examples/state.json     try it before it is set
  toolgate policy set policy.yaml
  toolgate policy get > policy.yaml
  toolgate policy check --state state.json --json
  toolgate policy schema > policy.schema.json              for editors";

const DEADLINE: Duration = Duration::from_secs(10);
const UNLOCK_WIDTH: usize = 100;

/// Set, read or try the tenant's policy: which tools may be seen and called when, and how they are chosen.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Policy {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Replace the policy.
    Set {
        /// The document, YAML or JSON; `{}` takes all rules away.
        file: PathBuf,
        /// Only when the stored policy still has this etag, from `policy get --json`.
        #[arg(long, default_value = "", hide_default_value = true, value_name = "ETAG")]
        etag: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        client: ClientArguments,
    },
    /// Print the stored policy as it was set.
    Get {
        /// Print JSON, with etag and revision.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        client: ClientArguments,
    },
    /// Show which tools a policy refuses in a state, which rule decides, and what would unlock each. --json has all.
    Check {
        /// The document, YAML or JSON. Without it, the stored policy.
        file: Option<PathBuf>,
        /// What the agent has done and may do (JSON, TOML or YAML).
        #[arg(long, value_name = "FILE")]
        state: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        client: ClientArguments,
    },
    /// Print the JSON schema of policies.
    Schema,
}

pub(super) async fn run(arguments: Policy) -> Result<Exit, Failure> {
    match arguments.action {
        Action::Set { file, etag, json, client } => {
            let document = read_text(&file)?;
            let request = v1::SetPolicyRequest { document, etag, ..Default::default() };
            let answer = client.connect_to_change(DEADLINE).await?.set_policy(request).await?;
            print_set(&answer, json)?;
        }
        Action::Get { json, client } => {
            let request = v1::GetPolicyRequest::default();
            let answer = client.connect(DEADLINE).await?.get_policy(request).await?;
            print_stored(&answer.policy.unwrap_or_default(), json)?;
        }
        Action::Check { file, state, json, client } => {
            let document = file.map(|file| read_text(&file)).transpose()?.unwrap_or_default();
            let state = read_state(state)?;
            let request = v1::CheckPolicyRequest { document, state, ..Default::default() };
            let check = client.connect(DEADLINE).await?.check_policy_whole(request).await?;
            print_check(&check, json)?;
        }
        Action::Schema => output::print(policy::SCHEMA)?,
    }
    Ok(Exit::Done)
}

fn print_set(answer: &v1::SetPolicyResponse, json: bool) -> io::Result<()> {
    let stored = answer.policy.clone().unwrap_or_default();
    if json {
        let mut whole = as_json(&stored);
        whole["rules"] = answer.rules.iter().map(rule_as_json).collect();
        return output::print_json(&whole);
    }
    let rules = coverage(&answer.rules);
    let etag = &stored.etag;
    let revision = stored.revision;
    output::print(&format!("{rules}The policy is set: etag {etag}, revision {revision}.\n"))
}

fn print_stored(stored: &v1::Policy, json: bool) -> io::Result<()> {
    if json {
        return output::print_json(&as_json(stored));
    }
    if stored.document.is_empty() {
        output::note("No policy was set. `toolgate policy set FILE` sets one.");
    }
    output::print(&stored.document)
}

fn print_check(check: &v1::CheckPolicyResponse, json: bool) -> io::Result<()> {
    if json {
        let verdicts: Vec<_> = check.verdicts.iter().map(verdict_as_json).collect();
        let rules: Vec<_> = check.rules.iter().map(rule_as_json).collect();
        return output::print_json(&json!({ "verdicts": verdicts, "rules": rules }));
    }
    let rules = coverage(&check.rules);
    let between = if rules.is_empty() { "" } else { "\n" };
    output::print(&format!("{rules}{between}{}", report(&check.verdicts)))
}

fn rule_as_json(rule: &v1::RuleCoverage) -> Value {
    json!({ "rule": rule.rule, "tools": rule.tools, "hint": rule.hint })
}

/// Formats the number of tools that each rule covers. Empty for a policy without rules.
fn coverage(rules: &[v1::RuleCoverage]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let columns = [Column::Left("RULE"), Column::Right("TOOLS"), Column::Left("NOTE")];
    let rows = rules.iter().map(|rule| {
        vec![one_line(&rule.rule, 64), grouped(rule.tools.into()), one_line(&rule.hint, 160)]
    });
    render(&columns, rows)
}

fn as_json(stored: &v1::Policy) -> Value {
    json!({
        "document": stored.document,
        "etag": stored.etag,
        "revision": stored.revision,
        "update_time": stored.update_time.as_ref().map(ToString::to_string),
    })
}

fn verdict_as_json(verdict: &v1::PolicyVerdict) -> Value {
    let code = (!verdict.allowed).then(|| refusal_code(verdict.code()));
    json!({
        "server": verdict.server,
        "name": verdict.name,
        "allowed": verdict.allowed,
        "code": code,
        "rule": (!verdict.rule.is_empty()).then_some(&verdict.rule),
        "unlock": verdict.unlock,
    })
}

fn report(verdicts: &[v1::PolicyVerdict]) -> String {
    if verdicts.is_empty() {
        return "No tools. `toolgate register FILE` adds an MCP server's.\n".into();
    }
    let columns = [
        Column::Left("TOOL"),
        Column::Left("VERDICT"),
        Column::Left("RULE"),
        Column::Left("NEEDS"),
    ];
    let refused: Vec<_> = verdicts.iter().filter(|verdict| !verdict.allowed).collect();
    let rows = refused.iter().map(|verdict| {
        let tool = format!("{}/{}", verdict.server, verdict.name);
        let needs = verdict.unlock.join(" and ");
        let rule = one_line(&verdict.rule, 64);
        vec![
            one_line(&tool, 80),
            standing(verdict).to_owned(),
            rule,
            one_line(&needs, UNLOCK_WIDTH),
        ]
    });
    let table = if refused.is_empty() { String::new() } else { render(&columns, rows) + "\n" };
    let allowed = verdicts.len() - refused.len();
    format!("{table}{} of {} allowed\n", allowed, counted(verdicts.len(), "tool"))
}

/// Returns the verdict in a word.
fn standing(verdict: &v1::PolicyVerdict) -> &'static str {
    match verdict.code() {
        v1::RefusalCode::PreconditionUnmet => "locked",
        v1::RefusalCode::ScopeMissing => "hidden",
        _ => "denied",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_read_well() {
        let verdict =
            |name: &str, code: v1::RefusalCode, rule: &str, unlock: &[&str]| v1::PolicyVerdict {
                server: "git".into(),
                name: name.into(),
                allowed: code == v1::RefusalCode::Unspecified,
                code: code.into(),
                rule: rule.into(),
                unlock: unlock.iter().map(|text| (*text).to_owned()).collect(),
            };
        let text = report(&[
            verdict("log", v1::RefusalCode::Unspecified, "", &[]),
            verdict("push", v1::RefusalCode::PreconditionUnmet, "plan-first", &["a", "b\nc"]),
            verdict("tag", v1::RefusalCode::ScopeMissing, "staff", &["scope \"staff\""]),
            verdict("gc", v1::RefusalCode::UnknownTool, "never", &[]),
        ]);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["git/push", "locked", "plan-first", "a", "and", "b", "c"]);
        assert_eq!(lines[2], ["git/tag", "hidden", "staff", "scope", "\"staff\""]);
        assert_eq!(lines[3], ["git/gc", "denied", "never"]);
        let open = verdict("log", v1::RefusalCode::Unspecified, "", &[]);
        assert_eq!(report(&[open]), "1 of 1 tool allowed\n");
        assert!(text.ends_with("1 of 4 tools allowed\n"), "{text}");
        assert!(report(&[]).contains("toolgate register"));
    }
}
