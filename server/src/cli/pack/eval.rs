//! `toolgate pack eval`: measures the benefit of packs, with their own requests and with labelled intents.

mod report;

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;

use crate::cli::arguments::ConfigArguments;
use crate::cli::embedding::with_encoders;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{documents, output};
use toolgate_config::Config;
use toolgate_core::identity::ToolId;
use toolgate_lab::eval::bootstrap::Bootstrap;
use toolgate_lab::eval::stock::Stock;
use toolgate_lab::eval::{LabelledQuery, Progress, Sides, query_file};
use toolgate_lab::pack_trial::{Bed, Measured, Query, Requests, measure};
use toolgate_routing::packs::Packs;

const EXAMPLES: &str = "\
Examples:
  toolgate pack eval --catalog servers/
  toolgate pack eval --catalog servers/ --packs mine/ --folds 0
  toolgate pack eval --catalog servers/ --queries queries.jsonl --folds 5 --seed 2 --json

No server is needed, and packs.enabled does not matter: every text is ranked by the router's own ranking without any
pack and with packs. A hit is a tool that is right among the first 1, 5 or 10.

By request: each request of a pack as an intent, while one request of every tool is left out of its row and words, this
one of its own tool. By server: packs of a part of the servers are left out in turn, as many parts as --folds; texts for
servers that are left out show what packs of others cost them, texts for the others what is left of the gain. Texts are
the requests, each left out as before, or those of --queries, lines of
  {\"query\": \"what changed since friday?\", \"relevant\": [\"git/git_log\"]}
of which any relevant tool is a hit; those without one, and those whose tools are not all of servers of one part that
have a pack, are passed over.

Intervals are of 95%: where a figure would lie with other texts of the same sort.";

/// Measure what packs bring, by leaving requests and whole packs out.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Eval {
    /// Catalog files, or directories of them.
    #[arg(long, required = true, value_name = "PATH")]
    catalog: Vec<PathBuf>,
    /// Packs of your own (packs.directory), which come before the shipped ones.
    #[arg(long, value_name = "DIR")]
    packs: Option<PathBuf>,
    /// Labelled intents, to be asked instead of the requests while packs of servers are left out.
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// In how many parts servers are left out; 0 for not at all.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_folds)]
    folds: usize,
    /// What decides the parts, what is left out together, and the resamples.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How often texts are resampled for the intervals; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(..=100_000))]
    resamples: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(eval: Eval) -> Result<Exit, Failure> {
    let config = eval.config.load_for_model(eval.model_dir.as_deref())?;
    let servers = documents::read_catalogs(&eval.catalog)?;
    let stock = Stock::check(&servers, &config.limits);
    let packs = match &eval.packs {
        Some(directory) => Packs::shipped().with_directory(directory).map_err(Failure::new)?,
        None => Packs::shipped(),
    };
    let requests = Requests::of(&stock, &packs, eval.seed);
    if requests.all.is_empty() {
        return Err(Failure::new(
            "no MCP server of the catalog has a pack (toolgate pack list --catalog)",
        ));
    }
    if eval.folds > requests.packs() {
        let problem =
            format!("--folds {}: there are {} packs to leave out", eval.folds, requests.packs());
        return Err(Failure::usage(problem));
    }
    let labelled = eval.queries.as_deref().map(query_file::read).transpose()?;
    let queries = queries(&stock, &labelled.unwrap_or_default())?;
    let measured = eval.measure(&config, stock, requests, queries).await?;
    if eval.json {
        output::print_json(&report::as_json(&measured))?;
    } else {
        output::print(&report::text(&measured))?;
    }
    Ok(Exit::Done)
}

impl Eval {
    async fn measure(
        &self,
        config: &Config,
        stock: Stock,
        requests: Requests,
        queries: Vec<Query>,
    ) -> Result<Measured, Failure> {
        let bootstrap = Bootstrap { resamples: self.resamples as usize, seed: self.seed };
        let clauses = config.router.clauses;
        let folds = self.folds;
        let seed = self.seed;
        let work = async move |sides: Sides<'_>, progress: &Progress| {
            let texts: Vec<&str> = queries.iter().map(|query| query.text.as_str()).collect();
            let bed = Bed::embed(&stock, clauses, &requests, &texts, sides, progress).await?;
            measure(&bed, &requests, &queries, folds, seed, &bootstrap).await
        };
        with_encoders(config, "the evaluation", work).await
    }
}

/// Returns the queries that have tools of this catalog. Tools that the catalog lacks are skipped.
fn queries(stock: &Stock, labelled: &[LabelledQuery]) -> Result<Vec<Query>, Failure> {
    let named = |record: &toolgate_store::ToolRecord| {
        let named = format!("{}/{}", stock.names.in_file(&record.server), record.name.as_str());
        (named, ToolId { server: record.server.clone(), name: record.name.clone() })
    };
    let ids: HashMap<String, ToolId> =
        stock.catalog.tools.iter().map(|tool| named(&tool.record)).collect();
    let query = |query: &LabelledQuery| {
        let relevant = query.relevant.iter().filter_map(|id| ids.get(id)).cloned().collect();
        Query { text: query.text.clone(), relevant }
    };
    let known: Vec<Query> =
        labelled.iter().map(query).filter(|query| !query.relevant.is_empty()).collect();
    if known.is_empty() && !labelled.is_empty() {
        return Err(Failure::new("no query names a tool of the catalog under \"relevant\""));
    }
    Ok(known)
}

fn parse_folds(text: &str) -> Result<usize, String> {
    let folds = text.parse().ok().filter(|folds| *folds != 1 && *folds <= 100);
    folds.ok_or_else(|| "write 0, or a number from 2 to 100".into())
}
