//! Registrations as text. One file is shown tool by tool, several files in a line each. Problems name the tool in both
//! cases.

use toolgate_client::v1;

use super::Registered;
use crate::cli::json::short;
use crate::cli::output::BAD;
use crate::cli::table::{Column, render};
use crate::cli::text::{counted, grouped, one_line};

/// Kinds of outcomes, in the order of the columns.
const KINDS: [v1::OutcomeKind; 6] = [
    v1::OutcomeKind::Accepted,
    v1::OutcomeKind::Unchanged,
    v1::OutcomeKind::Changed,
    v1::OutcomeKind::Removed,
    v1::OutcomeKind::Quarantined,
    v1::OutcomeKind::Rejected,
];

pub(super) fn report(done: &[Registered]) -> String {
    let mut text = String::new();
    let answered: Vec<(&Registered, &v1::RegisterServerResponse)> = done
        .iter()
        .filter_map(|file| file.outcome.as_ref().ok().map(|answer| (file, answer)))
        .collect();
    match answered.as_slice() {
        [] => {}
        [(_, answer)] if done.len() == 1 => text.push_str(&tool_by_tool(answer)),
        several => text.push_str(&file_by_file(several)),
    }
    text.push_str(&problems(&answered));
    text
}

/// Returns a line for each file that could not be registered, with the reason.
pub(super) fn failures(done: &[Registered]) -> impl Iterator<Item = String> {
    done.iter().filter_map(|file| {
        let message = file.outcome.as_ref().err()?.message();
        let path = file.path.display().to_string();
        let place = if message.contains(&path) { String::new() } else { format!("{path}: ") };
        Some(format!("{place}{message}"))
    })
}

/// Returns a note on the trust tier that the server chose because none was given. Returns `None` if nothing was
/// registered.
pub(super) fn taken(done: &[Registered]) -> Option<String> {
    let answers = done.iter().filter_map(|file| file.outcome.as_ref().ok());
    let server = answers.filter_map(|answer| answer.server.as_ref()).next()?;
    let tier = short(server.trust_tier().as_str_name(), "TRUST_TIER_");
    Some(format!("trust tier: {tier}, since no --trust was given"))
}

/// Returns a line on what a registration changed; `None` if nothing.
pub(super) fn change(answer: &v1::RegisterServerResponse) -> Option<String> {
    let changed = KINDS.iter().filter(|kind| **kind != v1::OutcomeKind::Unchanged);
    let counts: Vec<String> = changed
        .map(|of| (count(answer, *of), kind(*of)))
        .filter(|(number, _)| *number > 0)
        .map(|(number, kind)| format!("{} {kind}", grouped(number as u64)))
        .collect();
    let server = answer.server.as_ref().map_or("", |server| server.name.as_str());
    let revision = answer.catalog_revision;
    (!counts.is_empty())
        .then(|| format!("{server}: {}, catalog revision {revision}\n", counts.join(", ")))
}

fn tool_by_tool(answer: &v1::RegisterServerResponse) -> String {
    let columns = [Column::Left("TOOL"), Column::Left("OUTCOME"), Column::Left("MODEL SEES")];
    let rows = answer.outcomes.iter().map(|outcome| {
        let name = one_line(&outcome.name, 64);
        vec![name, kind(outcome.kind()), outcome.model_name.clone()]
    });
    let server = answer.server.as_ref();
    let counts = KINDS.iter().map(|kind_| (count(answer, *kind_), kind(*kind_)));
    let counts: Vec<_> = counts
        .filter(|(number, _)| *number > 0)
        .map(|(number, kind)| format!("{} {kind}", grouped(number as u64)))
        .collect();
    format!(
        "{}\n{}: {} ({}), catalog revision {}\n",
        render(&columns, rows),
        server.map_or("", |server| server.name.as_str()),
        counted(server.map_or(0, |server| server.tool_count as usize), "tool"),
        counts.join(", "),
        answer.catalog_revision,
    )
}

fn file_by_file(answered: &[(&Registered, &v1::RegisterServerResponse)]) -> String {
    let columns = [
        Column::Left("MCP SERVER"),
        Column::Right("TOOLS"),
        Column::Right("ACCEPTED"),
        Column::Right("UNCHANGED"),
        Column::Right("CHANGED"),
        Column::Right("REMOVED"),
        Column::Right("QUARANTINED"),
        Column::Right("REJECTED"),
        Column::Right("REVISION"),
    ];
    let tools = |answer: &v1::RegisterServerResponse| {
        answer.server.as_ref().map_or(0, |server| u64::from(server.tool_count))
    };
    let rows = answered.iter().map(|(file, answer)| {
        let mut row = vec![file.server.clone(), grouped(tools(answer))];
        row.extend(KINDS.iter().map(|kind| grouped(count(answer, *kind) as u64)));
        row.push(grouped(answer.catalog_revision));
        row
    });
    let total: u64 = answered.iter().map(|(_, answer)| tools(answer)).sum();
    format!(
        "{}\n{} of {}\n",
        render(&columns, rows),
        counted(total as usize, "tool"),
        counted(answered.len(), "MCP server"),
    )
}

fn problems(answered: &[(&Registered, &v1::RegisterServerResponse)]) -> String {
    let mut text = String::new();
    for (file, answer) in answered {
        let is_told = |outcome: &&v1::ToolOutcome| {
            !outcome.message.is_empty() || !outcome.findings.is_empty()
        };
        for outcome in answer.outcomes.iter().filter(is_told) {
            let field = match outcome.field.as_str() {
                "" => String::new(),
                field => format!(" ({field})"),
            };
            text.push_str(&format!(
                "{BAD}{}:{BAD:#} {}/{}{field}: {}\n",
                kind(outcome.kind()),
                file.server,
                one_line(&outcome.name, 64),
                match outcome.message.as_str() {
                    "" => "something was found in its texts".to_owned(),
                    message => one_line(message, 400),
                },
            ));
            for finding in &outcome.findings {
                text.push_str(&format!("  found: {}\n", one_line(finding, 400)));
            }
        }
    }
    text
}

fn count(answer: &v1::RegisterServerResponse, kind: v1::OutcomeKind) -> usize {
    answer.outcomes.iter().filter(|outcome| outcome.kind() == kind).count()
}

fn kind(kind: v1::OutcomeKind) -> String {
    short(kind.as_str_name(), "OUTCOME_KIND_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::failure::Failure;

    fn registered(server: &str) -> Registered {
        let outcome = |name: &str, kind: v1::OutcomeKind, message: &str| v1::ToolOutcome {
            name: name.into(),
            kind: kind.into(),
            model_name: if message.is_empty() {
                format!("mcp__{server}__{name}")
            } else {
                String::new()
            },
            field: if message.is_empty() { String::new() } else { "tools[1].inputSchema".into() },
            message: message.into(),
            ..Default::default()
        };
        Registered {
            path: format!("{server}.json").into(),
            server: server.into(),
            outcome: Ok(v1::RegisterServerResponse {
                server: Some(v1::McpServer {
                    name: server.into(),
                    tool_count: 1,
                    ..Default::default()
                }),
                catalog_revision: 7,
                outcomes: vec![
                    outcome("log", v1::OutcomeKind::Accepted, ""),
                    outcome("push", v1::OutcomeKind::Rejected, "not an object"),
                ],
                replayed: false,
            }),
        }
    }

    fn plain(done: &[Registered]) -> String {
        anstream::adapter::strip_str(&report(done)).to_string()
    }

    #[test]
    fn one_file_is_shown_tool_by_tool() {
        let text = plain(&[registered("git")]);
        for part in [
            "log   accepted  mcp__git__log",
            "push  rejected",
            "git: 1 tool (1 accepted, 1 rejected), catalog revision 7",
            "rejected: git/push (tools[1].inputSchema): not an object",
        ] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
    }

    #[test]
    fn the_tier_that_was_taken_is_the_servers() {
        let mut done = [registered("git")];
        if let Ok(v1::RegisterServerResponse { server: Some(server), .. }) = &mut done[0].outcome {
            server.set_trust_tier(v1::TrustTier::Untrusted);
        }
        let told = taken(&done).expect("a line");
        assert_eq!(told, "trust tier: untrusted, since no --trust was given");
        done[0].outcome = Err(Failure::new("the service says no"));
        assert_eq!(taken(&done), None);
    }

    #[test]
    fn several_files_are_a_line_each_and_failures_are_named() {
        let failed =
            Registered { outcome: Err(Failure::new("the service says no")), ..registered("bad") };
        let done = [registered("git"), registered("time"), failed];
        let text = plain(&done);
        for part in ["MCP SERVER", "2 tools of 2 MCP servers", "rejected: time/push"] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
        assert!(!text.contains("mcp__git__log"), "{text}");
        let named: Vec<String> = failures(&done).collect();
        assert_eq!(named, ["bad.json: the service says no"]);
    }
}
