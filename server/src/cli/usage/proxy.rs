//! Accounts of an LLM proxy, by tenant and model.

use serde_json::Value;
use toolgate_gateway_llm::Usd;

use crate::cli::failure::{Exit, Failure};
use crate::cli::gateway::{Place, page};
use crate::cli::output;
use crate::cli::table::{Column, render};
use crate::cli::text::{grouped, grouped_signed};

/// Shows the accounts of the proxy at a place.
pub(super) async fn show(at: Place<'_>, is_json: bool) -> Result<Exit, Failure> {
    let body = page(at, "toolgate/usage").await?;
    let usage: Value = serde_json::from_str(&body)
        .map_err(|error| Failure::new(format!("{} is no LLM proxy: {error}", at.url)))?;
    if is_json {
        output::print_json(&usage)?;
    } else {
        output::print(&report(&usage))?;
    }
    Ok(Exit::Done)
}

/// Formats the accounts. Saved tokens are computed, net of requests that hosts did not see; those of the provider are measured. A model
/// whose price is not known has no sums in money.
fn report(usage: &Value) -> String {
    let columns = [
        Column::Left("TENANT"),
        Column::Left("MODEL"),
        Column::Right("REWRITTEN"),
        Column::Right("AS THEY CAME"),
        Column::Right("SAVED (COMPUTED)"),
        Column::Right("SEARCHES"),
        Column::Right("CALLS REFUSED"),
        Column::Right("INPUT"),
        Column::Right("CACHED"),
        Column::Right("OUTPUT"),
        Column::Right("COST"),
        Column::Right("SAVED, NET (COMPUTED)"),
    ];
    let accounts = usage["accounts"].as_array().map(Vec::as_slice).unwrap_or_default();
    render(&columns, accounts.iter().map(cells))
}

fn cells(account: &Value) -> Vec<String> {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let text = |name: &str| account[name].as_str().unwrap_or_default().to_owned();
    let counts = |name: &str| account[name].as_object().into_iter().flatten();
    let passed: u64 = counts("passed").map(|(_, count)| number(count)).sum();
    let is_refused = |outcome: &str| !["allowed", "not_shown", "unchecked"].contains(&outcome);
    let refused = counts("calls").filter(|(outcome, _)| is_refused(outcome));
    let refused: u64 = refused.map(|(_, count)| number(count)).sum();
    let signed = |name: &str| i64::try_from(number(&account[name])).unwrap_or(i64::MAX);
    let sent = signed("instead_tokens").saturating_add(signed("hop_tokens"));
    let saved = signed("deferred_tokens").saturating_sub(sent);
    let dollars = |name: &str| {
        let amount = account["cost_usd"][name].as_f64();
        amount.map_or_else(|| "-".to_owned(), |amount| Usd::of(amount).to_string())
    };
    let tokens = |name: &str| grouped(number(&account["usage"][name]));
    vec![
        text("tenant"),
        text("model"),
        grouped(number(&account["rewritten"])),
        grouped(passed),
        grouped_signed(saved),
        grouped(number(&account["searches"])),
        grouped(refused),
        tokens("input_tokens"),
        tokens("cached_tokens"),
        tokens("output_tokens"),
        dollars("spent"),
        dollars("saved_computed"),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_account_has_a_row() {
        let account = json!({
            "tenant": "acme", "model": "m", "rewritten": 2, "passed": { "late": 1, "cheaper": 2 },
            "deferred_tokens": 1000, "instead_tokens": 1500, "hop_tokens": 1000, "searches": 1,
            "calls": { "allowed": 7, "arguments_invalid": 1, "unknown_tool": 1 },
            "usage": { "input_tokens": 12345, "cached_tokens": 2, "output_tokens": 3 },
            "cost_usd": { "requests": 2, "spent": 1.5, "saved_computed": -0.0125 } });
        let unpriced = json!({ "tenant": "acme", "model": "n" });
        let text = report(&json!({ "accounts": [account, unpriced] }));
        let row = text.lines().nth(1).expect("a row");
        let cells: Vec<&str> = row.split_whitespace().collect();
        let tokens = ["acme", "m", "2", "3", "-1,500", "1", "2", "12,345", "2", "3"];
        assert_eq!(cells[..10], tokens);
        assert_eq!(cells[10..], ["$1.50", "-$0.0125"]);
        assert!(text.lines().nth(2).is_some_and(|row| row.trim_end().ends_with('-')), "{text}");
        assert_eq!(report(&json!({})).lines().count(), 1);
    }
}
