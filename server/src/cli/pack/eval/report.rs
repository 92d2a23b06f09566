//! Benefit of packs, as text and as JSON.

use serde_json::{Map, Value, json};

use crate::cli::table::{Column, render};
use crate::cli::text::{counted, grouped};
use toolgate_lab::eval::bootstrap::Estimate;
use toolgate_lab::pack_trial::{CUTS, Folds, Group, Measured};

pub(super) fn text(measured: &Measured) -> String {
    let (servers, tools, packs) = measured.counts;
    let all = std::slice::from_ref(&measured.all);
    let mut text = format!(
        "{}, {}, {} with {}\n\nEach request while one of every tool is left out, this one of its own:\n\n{}\n{}",
        counted(servers, "MCP server"),
        counted(tools, "tool"),
        counted(packs, "pack"),
        counted(measured.all.count, "request"),
        table("VOICE", measured.voices.iter().chain(all)),
        table("PACK", &measured.servers),
    );
    if let Some(folds) = &measured.folds {
        text.push_str(&of_folds(folds));
    }
    text
}

fn of_folds(folds: &Folds) -> String {
    let passed_over = match folds.passed_over {
        0 => String::new(),
        count => format!("; {} passed over", grouped(count as u64)),
    };
    let what = if folds.by_queries { "Labelled queries" } else { "Requests" };
    format!(
        "\n{what} while packs of a part of the servers are left out, {} parts in turn{passed_over}:\n\n{}",
        folds.folds,
        table("FOR", [&folds.left_out, &folds.others]),
    )
}

fn table<'a>(name: &'static str, groups: impl IntoIterator<Item = &'a Group>) -> String {
    let columns = [
        Column::Left(name),
        Column::Right("TEXTS"),
        Column::Right("WITHOUT @1"),
        Column::Right("@5"),
        Column::Right("@10"),
        Column::Right("WITH @1"),
        Column::Right("@5"),
        Column::Right("@10"),
    ];
    let row = |group: &Group| {
        let shares = group.without.iter().chain(&group.with).map(share);
        [group.name.clone(), grouped(group.count as u64)].into_iter().chain(shares).collect()
    };
    render(&columns, groups.into_iter().map(row))
}

fn share(estimate: &Estimate) -> String {
    match estimate.interval {
        Some(interval) => {
            format!("{:.3} [{:.3}, {:.3}]", estimate.value, interval.low, interval.high)
        }
        None => format!("{:.3}", estimate.value),
    }
}

pub(super) fn as_json(measured: &Measured) -> Value {
    let (servers, tools, packs) = measured.counts;
    let folds = measured.folds.as_ref().map(|folds| {
        json!({
            "folds": folds.folds,
            "texts": if folds.by_queries { "queries" } else { "requests" },
            "left_out": group(&folds.left_out),
            "others": group(&folds.others),
            "passed_over": folds.passed_over,
        })
    });
    json!({
        "servers": servers,
        "tools": tools,
        "packs": packs,
        "all": group(&measured.all),
        "by_voice": measured.voices.iter().map(group).collect::<Vec<_>>(),
        "by_pack": measured.servers.iter().map(group).collect::<Vec<_>>(),
        "by_server": folds,
    })
}

fn group(group: &Group) -> Value {
    let shares = |shares: &[Estimate]| -> Value {
        let share = |(cut, estimate): (&usize, &Estimate)| {
            let interval = estimate.interval.map(|interval| [interval.low, interval.high]);
            (format!("hit@{cut}"), json!({ "value": estimate.value, "interval": interval }))
        };
        CUTS.iter().zip(shares).map(share).collect::<Map<_, _>>().into()
    };
    json!({
        "name": group.name,
        "texts": group.count,
        "without": shares(&group.without),
        "with": shares(&group.with),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(name: &str) -> Group {
        let estimate = |value| Estimate { value, interval: None };
        Group {
            name: name.into(),
            count: 2,
            without: [0.0, 0.5, 0.5].map(estimate),
            with: [0.5, 1.0, 1.0].map(estimate),
        }
    }

    #[test]
    fn shares_stand_without_packs_and_with_them() {
        let measured = Measured {
            counts: (1, 3, 1),
            all: example("all"),
            voices: vec![example("terse")],
            servers: vec![example("git")],
            folds: Some(Folds {
                folds: 2,
                by_queries: true,
                left_out: example("pack left out"),
                others: example("other servers"),
                passed_over: 1,
            }),
        };
        let wanted = "\
1 MCP server, 3 tools, 1 pack with 2 requests

Each request while one of every tool is left out, this one of its own:

VOICE  TEXTS  WITHOUT @1     @5    @10  WITH @1     @5    @10
terse      2       0.000  0.500  0.500    0.500  1.000  1.000
all        2       0.000  0.500  0.500    0.500  1.000  1.000

PACK  TEXTS  WITHOUT @1     @5    @10  WITH @1     @5    @10
git       2       0.000  0.500  0.500    0.500  1.000  1.000

Labelled queries while packs of a part of the servers are left out, 2 parts in turn; 1 passed over:

FOR            TEXTS  WITHOUT @1     @5    @10  WITH @1     @5    @10
pack left out      2       0.000  0.500  0.500    0.500  1.000  1.000
other servers      2       0.000  0.500  0.500    0.500  1.000  1.000
";
        assert_eq!(text(&measured), wanted);
        let json = as_json(&measured);
        assert_eq!(json["by_voice"][0]["with"]["hit@5"]["value"], 1.0);
        assert_eq!(json["by_server"]["texts"], "queries");
    }
}
