//! Catalog in which requests are tested, with all texts embedded or with none.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::known::StoredEmbeddings;
use super::requests::Requests;
use crate::eval::embeddings::Embeddings;
use crate::eval::stock::Stock;
use crate::eval::{self, Progress, Sides};
use toolgate_core::error::Error;
use toolgate_core::identity::ToolId;
use toolgate_routing::packs::Packs;
use toolgate_routing::router::intent::{self, Intent};
use toolgate_routing::router::ranking::blend::Blend;
use toolgate_routing::router::ranking::rank::{Candidate, Embedded};
use toolgate_routing::shard::snapshot::{Known, Snapshot};

/// Number of candidates in a ranking; the same as in Route.
const CANDIDATES: usize = 100;

/// Timeout for embedding. It is never reached, because all texts are embedded in advance.
const WITHIN: Duration = Duration::from_mins(1);

/// Position of the right tool in the ranking for one text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placed {
    /// Rank of the first right tool, from 1; `None` if it is not among the tools that Route ranks.
    pub rank: Option<usize>,
    /// Score difference between the first tool and the right tool, at most 1; 0 if the scores are equal.
    pub lead: f32,
    /// Tool at rank 1.
    pub first: Option<ToolId>,
}

/// Text, and the tools that are right for it.
pub(super) type Ask<'a> = (&'a str, &'a [ToolId]);

/// Catalog, and the embeddings of its texts.
#[derive(Debug)]
pub struct Bed<'a> {
    stock: &'a Stock,
    known: StoredEmbeddings,
    clauses: bool,
}

impl<'a> Bed<'a> {
    /// Embeds summaries, requests and queries, each once. `clauses` says whether the clauses of a request are ranked
    /// too.
    ///
    /// # Errors
    /// Returns [`Error::EncoderUnavailable`], or an internal error.
    pub async fn embed(
        stock: &'a Stock,
        clauses: bool,
        requests: &Requests,
        queries: &[&str],
        sides: Sides<'_>,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let summaries = stock.catalog.tools.iter().map(|tool| tool.record.summary.as_str());
        let summaries: Vec<&str> = summaries.collect();
        let asked = requests.all.iter().map(|request| request.text.as_str());
        let texts = eval::texts(asked.chain(queries.iter().copied()));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(sides, &summaries, &texts, progress).await?;
        let known = StoredEmbeddings {
            embeddings: Arc::new(embeddings),
            fingerprint: sides.queries.fingerprint().to_owned(),
            dimensions: sides.queries.dimensions(),
        };
        Ok(Self { stock, known, clauses })
    }

    /// Creates a bed without embeddings, in which only words decide the ranking.
    #[must_use]
    pub fn of_words(stock: &'a Stock) -> Self {
        let known = StoredEmbeddings {
            embeddings: Arc::default(),
            fingerprint: String::new(),
            dimensions: 1,
        };
        Self { stock, known, clauses: false }
    }

    /// Returns the catalog.
    #[must_use]
    pub fn stock(&self) -> &'a Stock {
        self.stock
    }

    /// Builds the catalog's index with these packs.
    pub(super) async fn snapshot(&self, packs: &Packs) -> Result<Snapshot, Error> {
        let catalog = &self.stock.catalog;
        let attached = packs.attach(catalog, &self.known, WITHIN).await;
        let embeddings = self.known.embeddings.vectors();
        let known = Known { embeddings, packs: &attached };
        let snapshot = Snapshot::build_with(catalog.clone(), known, self.known.dimensions)?;
        snapshot.build_graph();
        Ok(snapshot)
    }

    /// Ranks all texts, in parallel on all cores.
    pub(super) fn places(
        &self,
        snapshot: &Snapshot,
        asked: &[Ask<'_>],
    ) -> Result<Vec<Placed>, Error> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let share = asked.len().div_ceil(cores).max(1);
        let one = |ask: &Ask<'_>| self.place(snapshot, *ask);
        thread::scope(|scope| {
            let shares = asked.chunks(share);
            let work = |share| scope.spawn(move || share_of(share, one));
            let working: Vec<_> = shares.map(work).collect();
            let mut placed = Vec::with_capacity(asked.len());
            for worker in working {
                let done = worker.join().map_err(|_| Error::internal("a ranking broke off"))?;
                placed.extend(done?);
            }
            Ok(placed)
        })
    }

    fn place(&self, snapshot: &Snapshot, (text, own): Ask<'_>) -> Result<Placed, Error> {
        let whole = match self.clauses {
            true => Intent::new(text.to_owned(), 1.0),
            false => Intent::undivided(text.to_owned(), 1.0),
        };
        let intents = [whole];
        let texts = intent::texts(&intents);
        let vectors = texts.iter().map(|text| self.known.embeddings.vector(text));
        let vectors: Option<Vec<Vec<f32>>> = vectors.map(|one| Some(one?.to_vec())).collect();
        let vectors = vectors.unwrap_or_default();
        let blend = Blend { clauses: self.clauses, ..Blend::default() };
        let embedded = Embedded { blend, ..Embedded::new(&intents, &vectors) };
        Ok(placed(snapshot, &embedded.rank(snapshot, CANDIDATES, None)?, own))
    }
}

fn share_of<'a>(
    share: &[Ask<'a>],
    one: impl Fn(&Ask<'a>) -> Result<Placed, Error>,
) -> Result<Vec<Placed>, Error> {
    share.iter().map(one).collect()
}

fn placed(snapshot: &Snapshot, candidates: &[Candidate], own: &[ToolId]) -> Placed {
    let own: BTreeSet<&ToolId> = own.iter().collect();
    let is_own = |found: &Candidate| own.contains(&snapshot.tool(found.slot).id);
    let place = candidates.iter().position(is_own);
    let best = candidates.first().map_or(0.0, |first| first.score);
    Placed {
        rank: place.map(|place| place + 1),
        // A tool that is named in the text ranks above all scores.
        lead: (best - place.map_or(0.0, |place| candidates[place].score)).min(1.0),
        first: candidates.first().map(|first| snapshot.tool(first.slot).id.clone()),
    }
}
