//! Results of a search, as text.

use toolgate_client::v1;

use crate::cli::output::ODD;
use crate::cli::route::report::degraded;
use crate::cli::table::{Column, render};
use crate::cli::text::{counted, grouped, one_line};

const SIGNATURE_WIDTH: usize = 100;

/// Formats the whole answer, coloured.
pub(super) fn report(answer: &v1::SearchToolsResponse) -> String {
    let mut text = String::new();
    if !answer.tools.is_empty() {
        text.push_str(&tools(answer));
    }
    if !answer.message.is_empty() {
        text.push_str(&format!("{}\n", answer.message));
    }
    if !answer.pending_servers.is_empty() {
        let pending = answer.pending_servers.join(", ");
        text.push_str(&format!("Still connecting: {pending}\n"));
    }
    for reason in answer.degraded() {
        text.push_str(&format!("{ODD}note:{ODD:#} {}\n", degraded(reason)));
    }
    let searched = counted(answer.searched_tools as usize, "tool");
    let deferred = grouped(answer.deferred_tools.into());
    text.push_str(&format!(
        "Searched {searched} by {}; {deferred} deferred\n",
        form(answer.form())
    ));
    if !answer.active_set_handle.is_empty() && !answer.tools.is_empty() {
        text.push_str(&format!("Handle: {}\n", answer.active_set_handle));
    }
    text
}

fn tools(answer: &v1::SearchToolsResponse) -> String {
    let columns = [
        Column::Left("TOOL"),
        Column::Right("SCORE"),
        Column::Right("TOKENS"),
        Column::Left(""),
        Column::Left("SIGNATURE"),
    ];
    let rows = answer.tools.iter().map(|tool| {
        vec![
            tool.model_name.clone(),
            format!("{:.2}", tool.score),
            grouped(tool.schema_tokens.into()),
            (if tool.newly_promoted { "new" } else { "" }).to_owned(),
            one_line(&tool.signature, SIGNATURE_WIDTH),
        ]
    });
    render(&columns, rows)
}

fn form(form: v1::SearchForm) -> &'static str {
    match form {
        v1::SearchForm::Select => "name",
        v1::SearchForm::Prefix => "the beginning of names",
        v1::SearchForm::Keywords => "keywords",
        v1::SearchForm::Natural | v1::SearchForm::Unspecified => "meaning",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_well() {
        let answer = v1::SearchToolsResponse {
            tools: vec![v1::ActiveTool {
                model_name: "mcp__slack__send".into(),
                score: 24.0,
                schema_tokens: 1_200,
                newly_promoted: true,
                ..Default::default()
            }],
            active_set_handle: "abc".into(),
            form: v1::SearchForm::Keywords.into(),
            searched_tools: 3,
            deferred_tools: 2,
            ..Default::default()
        };
        let text = report(&answer);
        for part in [
            "mcp__slack__send  24.00   1,200  new",
            "Searched 3 tools by keywords; 2 deferred\n",
            "Handle: abc",
        ] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
    }

    #[test]
    fn nothing_found_says_why() {
        let answer = v1::SearchToolsResponse {
            message: "No tool fits.".into(),
            pending_servers: vec!["jira".into()],
            active_set_handle: "abc".into(),
            ..Default::default()
        };
        let text = report(&answer);
        assert!(text.contains("No tool fits.\nStill connecting: jira\n"), "{text}");
        assert!(!text.contains("Handle"), "{text}");
    }
}
