//! Tables of the grid, as Markdown and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Cell, Dearer, Grid, Method, Provider, Report};
use crate::tax::report::{Figure, Table};

/// History and number of turns of the table with all measures, where the grid has them.
const SHOWN: (u32, usize) = (20_000, 40);

impl Report {
    /// Returns two tables for each set and API: prices, and all measures of one history and number of turns.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let of_api =
            |grid: &Grid, provider: &Provider| [prices(grid, provider), measures(grid, provider)];
        let of_grid = |grid: &Grid| {
            Provider::ALL.iter().flat_map(|one| of_api(grid, one)).collect::<Vec<_>>()
        };
        self.grids.iter().flat_map(of_grid).collect()
    }

    /// Returns the cells in which `auto` is too dear, each with the name of its set.
    #[must_use]
    pub fn dearer(&self) -> Vec<(&str, Dearer)> {
        let mut dearer = Vec::new();
        for grid in &self.grids {
            dearer.extend(grid.dearer().into_iter().map(|one| (&*grid.name, one)));
        }
        dearer
    }

    /// Returns the tables as a Markdown document. The same figures always give the same bytes.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# What conversations cost, measured\n\nBy `toolgate bench conversation`, over {} tools of {} MCP \
             servers. Prices are in tokens of uncached input.\n",
            self.tools, self.servers
        );
        for table in self.tables() {
            let _ = write!(text, "\n{}", table.to_markdown());
        }
        text
    }

    /// Returns the report as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let grid = |grid: &Grid| {
            json!({
                "set": grid.name,
                "conversations": grid.conversations,
                "cells": grid.cells.iter().map(cell).collect::<Vec<_>>(),
            })
        };
        let dearer = |(set, one): (&str, Dearer)| json!({ "set": set, "auto": cell(&one.auto), "cheaper": cell(&one.other) });
        json!({
            "encoder_fingerprint": self.encoder,
            "tools": self.tools,
            "servers": self.servers,
            "grids": self.grids.iter().map(grid).collect::<Vec<_>>(),
            "auto_dearer": self.dearer().into_iter().map(dearer).collect::<Vec<_>>(),
            "warnings": self.warnings,
        })
    }
}

fn cell(cell: &Cell) -> Value {
    let totals = &cell.totals;
    json!({
        "api": cell.api.name(),
        "history": cell.history,
        "turns": cell.turns,
        "method": cell.method.name(),
        "price_a_turn": totals.price_a_turn(),
        "tokens_a_turn": totals.tokens_a_turn(),
        "rho": totals.rho(),
        "cached_share": totals.cached_share(),
        "tools_a_turn": totals.a_turn(totals.shown as f64),
        "definition_tokens_a_turn": totals.a_turn(totals.definitions as f64),
        "requests": totals.requests,
        "searches": totals.searches,
        "calls_left_out": totals.left_out,
        "turns_that_need_a_tool": totals.needing,
        "turns_with_a_right_tool": totals.right,
    })
}

fn prices(grid: &Grid, provider: &Provider) -> Table {
    let api = provider.api.name();
    let title = format!("{}, {api} ({}): price of a turn", grid.name, provider.model);
    let mut columns = vec!["history", "turns"];
    columns.extend(Method::ALL.map(Method::name));
    let rates = provider.rates();
    let mut table = Table::new("prices", title, &columns).saying(format!(
        "A token that is written to the cache costs {}, one that is read {}, of prompts from {} tokens on. \
         Conversations: {}.",
        rates.write, rates.read, rates.least, grid.conversations
    ));
    let mut last = None;
    for one in grid.cells.iter().filter(|one| one.api == provider.api) {
        let place = (one.history, one.turns);
        if last.replace(place) == Some(place) {
            continue;
        }
        let row = grid.row(one.api, one.history, one.turns);
        let prices = row.map(|one| Figure::Count(one.totals.price_a_turn()).priced());
        let history = Figure::Count(f64::from(one.history)).to_string();
        let turns = Figure::Count(one.turns as f64).given();
        table.push(history, [turns].into_iter().chain(prices));
    }
    table
}

fn measures(grid: &Grid, provider: &Provider) -> Table {
    let (history, turns) = shown(grid);
    let api = provider.api.name();
    let of_history = Figure::Count(f64::from(history));
    let title = format!("{}, {api}: {turns} turns behind {of_history} tokens", grid.name);
    let columns = [
        "method",
        "price",
        "tokens",
        "rho",
        "cached",
        "tools",
        "of tokens",
        "requests",
        "right tool shown",
        "searches",
    ];
    let mut table = Table::new("measures", title, &columns);
    for one in grid.row(provider.api, history, turns) {
        let totals = &one.totals;
        let mean = |sum: f64| Figure::Count(totals.a_turn(sum));
        let figures = [
            mean(totals.price).priced(),
            mean(totals.tokens as f64).measured(),
            Figure::Share(totals.rho()).measured(),
            Figure::Percent(totals.cached_share()).priced(),
            mean(totals.shown as f64).measured(),
            mean(totals.definitions as f64).measured(),
            Figure::Mean(totals.a_turn(totals.requests as f64)).measured(),
            Figure::Of(totals.right as u64, totals.needing as u64).measured(),
            Figure::Count(totals.searches as f64).measured(),
        ];
        table.push(one.method.name(), figures);
    }
    table
}

/// Returns the history and the number of turns of [`SHOWN`], or the largest of the grid where it lacks them.
fn shown(grid: &Grid) -> (u32, usize) {
    let histories = grid.cells.iter().map(|cell| cell.history);
    let turns = grid.cells.iter().map(|cell| cell.turns);
    let nearest_history = histories.clone().find(|one| *one == SHOWN.0).or(histories.max());
    let nearest_turns = turns.clone().find(|one| *one == SHOWN.1).or(turns.max());
    (nearest_history.unwrap_or(0), nearest_turns.unwrap_or(0))
}
