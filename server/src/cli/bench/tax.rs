//! `toolgate bench tax`: the tools tax, measured with the published benchmark, as tables.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use crate::cli::arguments::ConfigArguments;
use crate::cli::embedding::{packs, with_encoders};
use crate::cli::failure::{Exit, Failure};
use crate::cli::files::{check_writable, write};
use crate::cli::output::{self, STRONG};
use crate::cli::serve::with_causes;
use crate::cli::table::{Column, render};
use toolgate_config::Config;
use toolgate_lab::eval::{Progress, Sides, catalog_file, query_file};
use toolgate_lab::tax::report::Table;
use toolgate_lab::tax::{Bench, Labelled, Report, TASKS_MIN, paper};

const EXAMPLES: &str = "\
Examples:
  toolgate bench tax
  toolgate bench tax --markdown tax.md --json tax.json
  toolgate bench tax --catalog servers/ --queries queries.jsonl
  toolgate bench tax --tasks 20 --seeds 1       a quick look
  toolgate bench tax --export testbed.json      also what agents need to play the tasks live

The testbed, the methods and the ablations are those of \"Tool Attention Is All You Need\", whose figures
stand beside ours, each difference with its reason. Catalogs and queries are files as `toolgate eval`
takes them. No server is needed. Prices are those of conversations whose answers are assumed. The same seed gives the same figures, to the byte, on the same CPU.";

/// Number of seeds, the paper's.
const SEEDS: u64 = 3;

/// Number of warnings that are printed. --json has all.
const WARNED: usize = 5;

/// Reproduce the tools-tax benchmark: tokens a turn, context utilisation, ablations, scaling, poisoned tools.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tax {
    /// Also measure this catalog: a file, or a directory of files.
    #[arg(long, value_name = "FILE|DIR", requires = "queries")]
    catalog: Option<PathBuf>,
    /// What people ask of it, one JSON object a line.
    #[arg(long, value_name = "FILE", requires = "catalog")]
    queries: Option<PathBuf>,
    /// Tasks on the testbed; a tenth of them are long conversations.
    #[arg(long, value_name = "N", default_value_t = paper::TASKS, value_parser = parse_tasks)]
    tasks: usize,
    /// What the testbed and its tasks are drawn by.
    #[arg(long, value_name = "N", default_value_t = paper::SEED)]
    seed: u64,
    /// Measure every method with so many seeds from --seed on, with 95% intervals, and on prompts that need several tools at
    /// once, 1 to 5; 1 leaves both out.
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u64).range(1..=5))]
    seeds: u64,
    /// Write the tables as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the tables as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the testbed and its tasks as JSON, for agents that play them live.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(tax: Tax) -> Result<Exit, Failure> {
    let began = Instant::now();
    let config = tax.config()?;
    let bench = Bench {
        seed: tax.seed,
        tasks: tax.tasks,
        seeds: usize::try_from(tax.seeds).unwrap_or(1),
        catalog: tax.catalog()?,
        packs: packs(&config, &[])?,
    };
    let outputs: Vec<_> = tax.markdown.iter().chain(&tax.json).chain(&tax.export).collect();
    outputs.into_iter().try_for_each(|path| check_writable(path))?;
    if let Some(path) = &tax.export {
        let exported = bench.export().map_err(|error| Failure::new(with_causes(&error)))?;
        write(path, &format!("{exported:#}\n"))?;
    }
    let measure =
        async move |sides: Sides<'_>, progress: &Progress| bench.run(sides, progress).await;
    let report = with_encoders(&config, "the benchmark", measure).await?;
    if let Some(path) = &tax.markdown {
        write(path, &report.to_markdown())?;
    }
    if let Some(path) = &tax.json {
        write(path, &format!("{:#}\n", report.to_json()))?;
    }
    warn(&report);
    output::print(&text(&report))?;
    output::note(format_args!("measured in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(Exit::Done)
}

impl Tax {
    fn config(&self) -> Result<Config, Failure> {
        self.config.load_for_model(self.model_dir.as_deref())
    }

    fn catalog(&self) -> Result<Option<Labelled>, Failure> {
        let (Some(catalog), Some(queries)) = (&self.catalog, &self.queries) else {
            return Ok(None);
        };
        let servers = catalog_file::read(catalog)?;
        let queries = query_file::read(queries)?;
        Ok(Some(Labelled { servers, queries }))
    }
}

fn parse_tasks(text: &str) -> Result<usize, String> {
    let most = 10_000;
    let tasks = text.parse().ok().filter(|tasks| (TASKS_MIN..=most).contains(tasks));
    tasks.ok_or_else(|| format!("write a number from {TASKS_MIN} to {most}"))
}

fn warn(report: &Report) {
    report.warnings.iter().take(WARNED).for_each(output::warn);
    let more = report.warnings.len().saturating_sub(WARNED);
    if more > 0 {
        output::warn(format_args!("{more} more warnings; --json lists all"));
    }
}

/// Formats the tables for a terminal.
fn text(report: &Report) -> String {
    let tables: Vec<String> = report.tables.iter().map(table).collect();
    tables.join("\n")
}

pub(super) fn table(table: &Table) -> String {
    let mut text = format!("{STRONG}{}{STRONG:#}\n\n", table.heading());
    let headings = table.columns.iter().enumerate();
    let columns: Vec<Column> = headings
        .map(|(place, name)| if place == 0 { Column::Left(name) } else { Column::Right(name) })
        .collect();
    let rows = table.rows.iter().map(|row| row.iter().map(ToString::to_string).collect());
    text.push_str(&render(&columns, rows));
    for (row, reason) in &table.why {
        let _ = write!(text, "\nWhy {row} differs: {reason}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_lab::tax::report::{Cell, Figure};

    #[test]
    fn tables_have_headings_rows_and_reasons() {
        let mut table = Table {
            id: "x",
            kind: toolgate_lab::tax::report::Kind::Projection,
            title: "Success".to_owned(),
            says: String::new(),
            columns: vec!["method", "per cent"],
            rows: vec![vec![Cell::name("full"), Figure::Mean(72.0).projected()]],
            why: Vec::new(),
        };
        table.why.push(("full".to_owned(), "nobody ran it.".to_owned()));
        let report = Report {
            seed: 42,
            tasks: 10,
            encoder: "e".into(),
            tables: vec![table],
            warnings: vec![],
        };
        let shown = anstream::adapter::strip_str(&text(&report)).to_string();
        let wanted = "Projection: Success\n\nmethod  per cent\nfull        72.0\n\n\
                      Why full differs: nobody ran it.\n";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn three_seeds_are_measured_unless_another_number_is_asked_for() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            tax: Tax,
        }
        let seeds = |arguments: &[&str]| Line::parse_from(arguments).tax.seeds;
        assert_eq!((seeds(&["tax"]), seeds(&["tax", "--seeds", "1"])), (3, 1));
    }

    #[test]
    fn numbers_of_tasks_are_bounded() {
        assert_eq!(parse_tasks("10"), Ok(10));
        for text in ["9", "10001", "x", ""] {
            assert!(parse_tasks(text).is_err(), "{text}");
        }
    }
}
