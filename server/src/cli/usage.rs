//! `toolgate usage`: shows the tokens that turns cost, the tokens that deferral saved, and whether it paid.

mod moment;
mod proxy;
mod report;

use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::{Value, json};
use toolgate_client::well_known::Timestamp;
use toolgate_client::{Client, v1};

use self::moment::{SECONDS_OF_A_DAY, midnight, parse};
use self::report::Row;
use super::arguments::ClientArguments;
use super::failure::{Exit, Failure};
use super::gateway::Place;
use super::json::usage;
use super::output;
use toolgate_core::deferral::CatalogSize;

const EXAMPLES: &str = "\
Examples:
  toolgate usage                                today, 7 days, 30 days and all
  toolgate usage --since 2026-11-01 --until 2026-11-15
  toolgate usage --since 12h
  toolgate usage --llm http://127.0.0.1:7090    what an LLM proxy saved, by tenant and model
  toolgate usage --json | jq '.spans[] | {span, saved_net_tokens}'

Days are UTC. The ledger is kept by the hour: --since and --until are widened to full hours.";

const DEADLINE: Duration = Duration::from_secs(10);

/// Show the tenant's token ledger: calls, tokens, and what deferral saved.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Usage {
    /// The first moment to count: a date, a time (RFC 3339), or how long ago, such as 12h or 7d. Without
    /// it, the beginning.
    #[arg(long, value_parser = parse, value_name = "WHEN")]
    since: Option<Timestamp>,
    /// The first moment not to count, written the same way. Without it, now.
    #[arg(long, value_parser = parse, value_name = "WHEN")]
    until: Option<Timestamp>,
    /// Show the accounts of the LLM proxy at this address instead, since its start.
    #[arg(long, value_name = "URL", conflicts_with_all = ["since", "until"])]
    llm: Option<String>,
    /// Print JSON, with days.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

/// A span of time to ask for.
struct Span {
    name: String,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    /// True if its days are drawn, which asks for each day.
    is_drawn: bool,
}

pub(super) async fn run(arguments: Usage) -> Result<Exit, Failure> {
    if let Some(url) = &arguments.llm {
        let at = Place {
            url,
            credentials: &arguments.client.credentials,
            name: "LLM proxy",
            remedy: "start it with `toolgate llm`, or name the address of one that listens elsewhere (--listen, llm.listen) with --llm",
        };
        return proxy::show(at, arguments.json).await;
    }
    let spans = spans(&arguments)?;
    let client = arguments.client.connect(DEADLINE).await?;
    let mut rows = Vec::new();
    let mut drawn = 0;
    for span in spans {
        let days = v1::UsageGranularity::Day;
        let request = v1::GetUsageRequest {
            start_time: span.start,
            end_time: span.end,
            granularity: if span.is_drawn { days.into() } else { 0 },
            ..Default::default()
        };
        if span.is_drawn {
            drawn = rows.len();
        }
        rows.push(Row { span: span.name, usage: client.get_usage(request).await? });
    }
    if arguments.json {
        let spans: Vec<Value> = rows.iter().map(|row| usage(&row.span, &row.usage)).collect();
        output::print_json(&json!({ "spans": spans }))?;
    } else {
        let size = catalog_size(&client, &rows[drawn].usage).await;
        output::print(&report::report(&rows, drawn, size))?;
    }
    Ok(Exit::Done)
}

/// Returns the size of the catalog if it may be small; else, and if the caller may not list tools, no size.
async fn catalog_size(client: &Client, usage: &v1::GetUsageResponse) -> CatalogSize {
    let a_turn = usage.full_catalog_tokens.checked_div(usage.route_calls).unwrap_or(0);
    if a_turn > CatalogSize::SMALL_MAX {
        return CatalogSize::default();
    }
    let tools = client.all_tools(None, None).await.unwrap_or_default();
    CatalogSize::of(tools.iter().map(|tool| tool.schema_tokens))
}

fn spans(arguments: &Usage) -> Result<Vec<Span>, Failure> {
    let start = arguments.since;
    let end = arguments.until;
    if start.is_none() && end.is_none() {
        return Ok(usual_spans(SystemTime::now().into()));
    }
    let seconds = |moment: Timestamp| (moment.seconds, moment.nanos);
    if let (Some(start), Some(end)) = (start, end)
        && seconds(start) >= seconds(end)
    {
        return Err(Failure::usage(format!("--since {start} must be before --until {end}")));
    }
    Ok(vec![Span { name: "span".into(), start, end, is_drawn: true }])
}

fn usual_spans(now: Timestamp) -> Vec<Span> {
    let last = |name: &str, days: i64| {
        let seconds = midnight(&now) - (days - 1) * SECONDS_OF_A_DAY;
        let start = Some(Timestamp { seconds, nanos: 0 });
        Span { name: name.to_owned(), start, end: None, is_drawn: days == 30 }
    };
    let all = Span { name: "all".into(), start: None, end: None, is_drawn: false };
    vec![last("today", 1), last("7 days", 7), last("30 days", 30), all]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_spans_begin_at_midnight() {
        let now: Timestamp = "2026-11-20T18:55:01Z".parse().expect("a time");
        let starts: Vec<_> = usual_spans(now)
            .iter()
            .map(|span| (span.name.clone(), span.start.map(|start| start.to_string())))
            .collect();
        let want = [
            ("today", Some("2026-11-20T00:00:00Z")),
            ("7 days", Some("2026-11-14T00:00:00Z")),
            ("30 days", Some("2026-10-22T00:00:00Z")),
            ("all", None),
        ];
        let owned = want.map(|(name, start)| (name.to_owned(), start.map(str::to_owned)));
        assert_eq!(starts, owned);
    }
}
