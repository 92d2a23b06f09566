//! `toolgate catalog diff`: compares two listings of MCP servers, and shows the consequences for users who trusted the
//! first.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::difference::{Change, Difference, differences};
use super::read;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{self, BAD, GOOD, ODD, STRONG};
use crate::cli::text::{counted, one_line};
use toolgate_core::safety::Severity;
use toolgate_core::safety::survey::survey;

const EXAMPLES: &str = "\
Examples:
  toolgate catalog diff approved/git.json now/git.json
  toolgate catalog diff before/ after/ --json | jq '.tools[] | select(.change == \"changed\")'

Either side is a file or a directory, as for `toolgate catalog scan`. Tools are compared by the hash of their definition
(RFC 8785), which is the one that `toolgate catalog approve` takes, so that another spelling of the same is no change. A tool
that is gone and one that came and says nearly the same are a rename.

Exit code 3 when a tool came or changed: what an untrusted MCP server would have to wait with.";

/// Maximum length of a line, in characters.
const WIDTH: usize = 240;

/// Compare two listings of MCP servers' tools: what came, changed, went or was renamed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Diff {
    /// The tools as they were.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The tools as they are.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// A file of rules (safety.rules_file) over the shipped ones.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Diff) -> Result<Exit, Failure> {
    let scanner = read::scanner(arguments.rules.as_deref())?;
    let sides = [&arguments.old, &arguments.new];
    let [old, new] = sides.map(|path| read::servers(std::slice::from_ref(path)));
    let old = old?;
    let new = new?;
    let found_old = survey(&scanner, &old);
    let found_new = survey(&scanner, &new);
    let (differences, unchanged) = differences(&old, &found_old, &new, &found_new);
    if arguments.json {
        let tools: Vec<Value> = differences.iter().map(Difference::as_json).collect();
        output::print_json(&json!({"unchanged": unchanged, "tools": tools}))?;
    } else {
        output::print(&report(&differences, unchanged))?;
    }
    let waits = |difference: &Difference| difference.change != Change::Removed;
    Ok(if differences.iter().any(waits) { Exit::Refused } else { Exit::Done })
}

fn report(differences: &[Difference], unchanged: usize) -> String {
    let mut text: String = differences.iter().map(lines).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    let count = |is: fn(&Change) -> bool| {
        differences.iter().filter(|difference| is(&difference.change)).count()
    };
    text + &format!(
        "{}: {} changed, {} renamed, {} added, {} removed\n",
        counted(unchanged, "unchanged tool"),
        count(|change| matches!(change, Change::Changed(_))),
        count(|change| matches!(change, Change::Renamed(_))),
        count(|change| matches!(change, Change::Added)),
        count(|change| matches!(change, Change::Removed)),
    )
}

fn lines(difference: &Difference) -> String {
    let name = one_line(&format!("{}/{}", difference.server, difference.tool), WIDTH);
    let name = format!("{STRONG}{name}{STRONG:#}");
    let [old, new] = &difference.hashes;
    let mut text = match &difference.change {
        Change::Added => format!("{ODD}added{ODD:#} {name}\n"),
        Change::Removed => format!("removed {name}\n"),
        Change::Renamed(was) => {
            format!("{ODD}renamed{ODD:#} {name}, which was {}\n", one_line(was, WIDTH))
        }
        Change::Changed(places) => {
            let places = one_line(&places.join(", "), WIDTH);
            format!("{ODD}changed{ODD:#} {name}: {places}\n")
        }
    };
    if difference.change != Change::Removed {
        let before = if old.is_empty() { String::new() } else { format!("{old} -> ") };
        text.push_str(&format!("  hash {before}{new}\n"));
    }
    for finding in &difference.found {
        let style = if finding.severity == Severity::High { BAD } else { ODD };
        text.push_str(&format!(
            "  {style}found{style:#} {}\n",
            one_line(&finding.to_string(), WIDTH * 2)
        ));
    }
    for rule in &difference.gone {
        text.push_str(&format!("  {GOOD}no longer{GOOD:#} {rule}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_read_well() {
        let one = |tool: &str, change| Difference {
            server: "s".into(),
            tool: tool.into(),
            change,
            hashes: ["aa".into(), "bb".into()],
            found: Vec::new(),
            gone: vec!["urgency".into()],
        };
        let all = [
            one("a", Change::Changed(vec!["description".into()])),
            one("b", Change::Renamed("c".into())),
            one("d", Change::Removed),
        ];
        let text = anstream::adapter::strip_str(&report(&all, 1)).to_string();
        for part in [
            "changed s/a: description\n  hash aa -> bb\n  no longer urgency\n",
            "renamed s/b, which was c",
            "removed s/d\n",
            "1 unchanged tool: 1 changed, 1 renamed, 0 added, 1 removed",
        ] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
    }
}
