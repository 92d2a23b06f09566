//! Price of whole conversations, by the way tools are put into requests. Labelled queries are the turns of one
//! conversation, each with its calls and its answer. Route chooses each turn's tools, [`toolgate_llm::strategy`] makes
//! the requests, and [`toolgate_llm::price`] says what they cost. Nothing is sent anywhere.
//!
//! A cache is assumed to serve what a request has in common with the one before it: whole definitions and whole
//! messages. Their JSON is counted with the product's tokenizer; texts in it are counted without escapes, as a model reads
//! them.

mod agent;
mod assumed;
mod bill;
mod defaults;
mod grid;
mod pieces;
mod play;
mod report;
mod requests;
mod scene;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;

use toolgate_config::{LimitsConfig, RouterConfig};
use toolgate_core::error::Error;
use toolgate_llm::price::Rates;
use toolgate_llm::strategy::{Api, Endpoint, Strategy};
use toolgate_routing::packs::{Attached, Packs};

use crate::eval::embeddings::Embeddings;
use crate::eval::stock::Stock;
use crate::eval::{self, CatalogServer, LabelledQuery, Progress, Sides};

pub use bill::Totals;
pub use grid::{Cell, Dearer, Grid};

pub(crate) use assumed::{Places, Priced, Said, said};
pub(crate) use defaults::Defaults;
pub(crate) use pieces::{Counter, Piece};
pub(crate) use turns::{Turn, assumed_call, turns};

use scene::{Scenes, Stage};
use turns::Turns;

/// Tokens of messages that a conversation begins with, such as a document.
pub const HISTORIES: [u32; 5] = [0, 5_000, 20_000, 50_000, 100_000];

/// Numbers of turns after which a conversation's price is taken.
pub const TURNS: [usize; 5] = [1, 5, 20, 40, 60];

/// Largest factor by which `auto` may be dearer than another method.
pub const TOLERANCE: f64 = 1.02;

/// Way to put tools into requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// All definitions, before all messages.
    Naive,
    /// Tool Attention's layout: all summaries first, and this turn's definitions directly before its message.
    Paper,
    /// This turn's definitions before all messages, chosen anew, without regard to the turn before.
    Anew,
    /// A strategy of [`toolgate_llm::strategy`]; `None` for the one that it chooses.
    Strategy(Option<Strategy>),
}

impl Method {
    /// All methods, `auto` last.
    pub const ALL: [Self; 8] = [
        Self::Naive,
        Self::Paper,
        Self::Anew,
        Self::Strategy(Some(Strategy::Pass)),
        Self::Strategy(Some(Strategy::Native)),
        Self::Strategy(Some(Strategy::Envelope)),
        Self::CUT,
        Self::AUTO,
    ];

    /// The set in `tools`, as Route keeps it.
    pub const CUT: Self = Self::Strategy(Some(Strategy::Cut));

    /// The strategy that is chosen by itself.
    pub const AUTO: Self = Self::Strategy(None);

    /// Returns the name, such as `envelope`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Paper => "paper",
            Self::Anew => "anew",
            Self::Strategy(Some(strategy)) => strategy.name(),
            Self::Strategy(None) => "auto",
        }
    }
}

/// API and model that requests are made for.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    /// API.
    pub api: Api,
    /// Model, which decides about rates and strategies.
    pub model: &'static str,
}

impl Provider {
    /// One of each API, with rates that differ.
    pub const ALL: [Self; 4] = [
        Self { api: Api::Anthropic, model: "claude-opus-4-8" },
        Self { api: Api::OpenAiResponses, model: "gpt-6.1" },
        Self { api: Api::OpenAiChat, model: "gpt-5.5" },
        Self { api: Api::Gemini, model: "gemini-3.5-flash" },
    ];

    /// The one that other benchmarks price prompts for.
    pub(crate) const PRICED: Self = Self::ALL[0];

    /// Returns the rates of its prompts.
    #[must_use]
    pub fn rates(&self) -> Rates {
        Rates::of(self.api, &self.endpoint())
    }

    fn endpoint(&self) -> Endpoint<'static> {
        Endpoint { model: self.model, ..Endpoint::default() }
    }
}

/// Labelled queries that are played as conversations.
#[derive(Debug, Clone)]
pub struct QuerySet {
    /// Name in reports.
    pub name: String,
    /// Queries in their order. Those of one conversation stand together.
    pub queries: Vec<LabelledQuery>,
}

/// Configuration of the benchmark.
#[derive(Debug, Clone)]
pub struct Bench {
    /// MCP servers of the catalog.
    pub servers: Vec<CatalogServer>,
    /// Sets of queries.
    pub sets: Vec<QuerySet>,
    /// Limits that tools must meet to be registered.
    pub limits: LimitsConfig,
    /// Router settings, such as `top_k`.
    pub router: RouterConfig,
    /// Intent packs; `None` routes without packs.
    pub packs: Option<Arc<Packs>>,
    /// Lengths of the initial history in tokens.
    pub histories: Vec<u32>,
    /// Numbers of turns, ascending.
    pub turns: Vec<usize>,
    /// Largest number of conversations to make of each set.
    pub conversations: usize,
    /// True if a conversation is played over the MCP servers of its own tools alone.
    pub own_servers: bool,
}

/// Result of the benchmark.
#[derive(Debug, Clone)]
pub struct Report {
    /// Fingerprint of the encoder.
    pub encoder: String,
    /// Number of tools in the catalog.
    pub tools: usize,
    /// Number of MCP servers in the catalog.
    pub servers: usize,
    /// Results by set.
    pub grids: Vec<Grid>,
    /// Warnings: labels that name no tool.
    pub warnings: Vec<String>,
}

impl Bench {
    /// Embeds the catalog and the turns, and plays every conversation by every method. `progress` is called for each
    /// embedded batch.
    ///
    /// # Errors
    /// [`Error::EncoderUnavailable`], or an internal error.
    pub async fn run(&self, encoders: Sides<'_>, progress: &Progress) -> Result<Report, Error> {
        let stock = Stock::check(&self.servers, &self.limits);
        let longest = self.turns.last().copied().unwrap_or(1);
        let most = self.conversations;
        let sets: Vec<Turns<'_>> =
            self.sets.iter().map(|set| Turns::of(set, longest, most, &self.router)).collect();
        let texts: Vec<String> = sets.iter().flat_map(Turns::texts).collect();
        let texts = eval::texts(texts.iter().map(String::as_str));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let summaries = eval::summaries(&stock.catalog, None);
        let embeddings = Embeddings::of(encoders, &summaries, &texts, progress).await?;
        let packs: Attached = eval::attached(self.packs.as_deref(), &stock.catalog, encoders).await;
        let stage = Stage {
            embeddings: &embeddings,
            packs: &packs,
            names: &stock.names,
            dimensions: encoders.passages.dimensions(),
            router: &self.router,
        };
        let scenes = Scenes {
            whole: stage.scene(stock.catalog.clone())?,
            own: self.own_servers.then_some((&stage, &stock.catalog)),
        };
        let counter = Counter::default();
        let grid = |turns: &Turns<'_>| Grid::play(self, &scenes, turns, &counter);
        Ok(Report {
            encoder: encoders.passages.fingerprint().to_owned(),
            tools: stock.catalog.tools.len(),
            servers: stock.catalog.servers.len(),
            grids: sets.iter().map(grid).collect::<Result<_, _>>()?,
            warnings: scenes.whole.unknown(self.sets.iter().flat_map(|set| &set.queries)),
        })
    }
}
