//! Complete runs of the linter with a bag-of-words encoder, and text checks of the shipped catalogs.

use std::path::Path;

use super::*;
use crate::eval::catalog_file;
use toolgate_routing::encoder::words::WordEncoder;

fn server(name: &str, tools: &[(String, String)]) -> CatalogServer {
    let schema = || serde_json::json!({"type": "object"});
    let tools: Vec<_> =
        tools.iter().map(|(name, text)| (name.as_str(), text.as_str(), schema())).collect();
    tool::samples::server(name, &tools)
}

async fn lint(servers: Vec<CatalogServer>) -> Linted {
    let lint = Lint { servers, limits: LimitsConfig::default(), suggest: true };
    let sides = Sides { passages: &WordEncoder, queries: &WordEncoder };
    lint.run(sides, &|_, _| {}).await.expect("looked at")
}

/// Returns tools whose names and descriptions have the same words.
fn alike() -> Vec<(String, String)> {
    let names = [
        "run", "Run", "RUN", "run_", "_run", "run-", "-run", "run.", "run__", "RUN_", "Run-",
        "-run-",
    ];
    names.map(|name| (name.to_owned(), "Runs a report on the sales of a month.".to_owned())).into()
}

#[tokio::test]
async fn tools_that_say_the_same_are_not_found() {
    let mut tools = alike();
    tools.push(("read_sheet".into(), "Reads the cells of a spreadsheet by their range.".into()));
    let linted = lint(vec![server("crm", &tools)]).await;
    let unfindable = linted.findings.iter().filter(|f| f.code == Code::Unfindable);
    let severities: Vec<_> = unfindable.map(|finding| finding.severity).collect();
    let count = |severity| severities.iter().filter(|one| **one == severity).count();
    // Of the twelve tools, two rank behind ten others, and five more rank behind five.
    assert_eq!((count(Severity::Error), count(Severity::Warning)), (2, 5), "{severities:?}");
    let last = linted.findings.iter().find(|f| f.severity == Severity::Error).expect("an error");
    assert!(last.problem.contains("behind crm/"), "{}", last.problem);
    let sheet = linted.tools.iter().find(|tool| tool.tool == "read_sheet").expect("ranked");
    assert_eq!((sheet.summary_rank, sheet.intent_rank), (Some(1), Some(1)));
}

#[tokio::test]
async fn suggestions_say_first_what_a_tool_does() {
    let warning = "Data modification warning: this tool changes records that other people in the company \
                   depend on, so make sure that the user has asked for the change in so many words, and show \
                   what will be changed before calling, in a table with one row for each field.";
    let things = ["invoice", "parcel", "voucher", "booking", "ticket"];
    let mut tools: Vec<_> = things
        .map(|thing| {
            (format!("op_{thing}"), format!("{warning} Cancels one {thing} of a customer."))
        })
        .into();
    tools[0].0 = "op".into();
    tools.push(("note".into(), "Notes when to cancel one invoice of a customer.".into()));
    let linted = lint(vec![server("crm", &tools)]).await;
    let suggested = linted.suggestions.iter().find(|one| one.tool == "op").expect("a suggestion");
    assert_eq!(suggested.summary, "op: Cancel one invoice of a customer.");
    assert_eq!((suggested.before, suggested.after), (Some(2), Some(1)));
    // Tools without a finding get no suggestion, and neither do tools that a suggestion would not help.
    assert!(linted.suggestions.iter().all(|one| one.tool != "note"));
    assert!(linted.suggestions.iter().all(|one| one.after < one.before.or(Some(usize::MAX))));
}

#[tokio::test]
async fn twins_are_told_once_across_servers() {
    let mail =
        |_: ()| ("send_mail".to_owned(), "Sends a letter to many people at once.".to_owned());
    let other = ("read_sheet".to_owned(), "Reads the cells of a spreadsheet.".to_owned());
    let linted = lint(vec![server("a", &[mail(()), other]), server("b", &[mail(())])]).await;
    let twins: Vec<_> = linted.findings.iter().filter(|f| f.code == Code::NearTwin).collect();
    let [twin] = twins.as_slice() else { panic!("{twins:?}") };
    assert_eq!((twin.server.as_str(), &twin.evidence["twin"]), ("a", &"b/send_mail".into()));
    assert_eq!(twin.evidence["same_description"], true);
}

#[tokio::test]
async fn a_catalog_of_nothing_but_refused_tools_is_looked_at_too() {
    let server =
        CatalogServer { name: "s".into(), description: String::new(), tools: vec!["3".into()] };
    let linted = lint(vec![server]).await;
    let codes: Vec<_> = linted.findings.iter().map(|finding| finding.code).collect();
    assert_eq!((codes, linted.tools.len()), (vec![Code::Rejected], 0));
}

#[test]
fn the_shipped_catalogs_have_the_findings_that_a_reader_has() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/servers");
    let servers = catalog_file::read(&folder).expect("the shipped catalogs");
    let findings = texts(&Stock::check(&servers, &LimitsConfig::default()));
    let tools = |code: Code, server: &str| {
        findings.iter().filter(|f| f.code == code && f.server == server).count()
    };
    let all = |code: Code| findings.iter().filter(|finding| finding.code == code).count();
    assert_eq!(all(Code::Rejected) + all(Code::DuplicateName) + all(Code::EmptyDescription), 0);
    // These come from an API's documentation, with its lists of errors.
    assert_eq!(tools(Code::MachineMadeDescription, "notion"), 24);
    assert_eq!(tools(Code::MissingParameterDescription, "firecrawl"), 26);
    assert_eq!(tools(Code::MissingParameterDescription, "azure"), 0);
    // Seven of its tools begin with the same warning.
    assert_eq!(tools(Code::Boilerplate, "hubspot"), 7);
    let has = |code: Code, tool: &str| findings.iter().any(|f| f.code == code && f.tool == tool);
    assert!(has(Code::MachineMadeDescription, "jira_update_sprint"));
    assert!(has(Code::TooShort, "browser_close"));
    for tool in ["git_branch", "slack_list_channels", "create_entities", "get_current_time"] {
        assert!(!has(Code::MachineMadeDescription, tool) && !has(Code::TooShort, tool), "{tool}");
    }
}
