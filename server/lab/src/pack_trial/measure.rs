//! Everything that is measured of packs.

use std::collections::BTreeMap;

use super::bed::{Ask, Bed, Placed};
use super::by_server::{ByServer, Query, by_server};
use super::hits::{Group, Pair, hits};
use super::left_out::left_one_out;
use super::requests::{Request, Requests};
use crate::eval::bootstrap::Bootstrap;
use toolgate_core::error::Error;
use toolgate_routing::packs::Packs;
use toolgate_routing::packs::document::is_language;

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// MCP servers, tools, and packs of the catalog.
    pub counts: (usize, usize, usize),
    /// All requests, each left out.
    pub all: Group,
    /// The same by voice, languages together.
    pub voices: Vec<Group>,
    /// The same by pack.
    pub servers: Vec<Group>,
    /// Packs left out in turn; `None` when that was not asked for.
    pub folds: Option<Folds>,
}

/// What was asked while packs were left out in turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Folds {
    /// In how many parts.
    pub folds: usize,
    /// Whether labelled queries were asked, rather than requests.
    pub by_queries: bool,
    /// Texts for servers whose packs were left out.
    pub left_out: Group,
    /// Texts for the others.
    pub others: Group,
    /// Queries that could not be told apart.
    pub passed_over: usize,
}

/// Measures by request, and with `folds` above 0 by server too.
///
/// # Errors
/// A defect of the index.
pub async fn measure(
    bed: &Bed<'_>,
    requests: &Requests,
    (queries, (folds, seed)): (&[Query], (usize, u64)),
    bootstrap: &Bootstrap,
) -> Result<Measured, Error> {
    let bare = bed.snapshot(&Packs::default()).await?;
    let asked = requests.all.iter().map(|request| (request.text.as_str(), &*request.own));
    let without = bed.places(&bare, &asked.collect::<Vec<Ask<'_>>>())?;
    let with = left_one_out(bed, requests, |_| true).await?;
    let pairs: Vec<Pair> = without
        .iter()
        .zip(&with)
        .map(|(before, now)| Pair {
            without: hits(before),
            with: now.as_ref().map(hits).unwrap_or_default(),
        })
        .collect();
    let by = |name: &dyn Fn(&Request) -> (usize, String)| groups(requests, &pairs, name, bootstrap);
    let catalog = &bed.stock().catalog;
    let folds = match folds {
        0 => None,
        folds if queries.is_empty() => {
            let found = by_server(bed, requests, (&[], &without), (folds, seed)).await?;
            Some(Folds::new((folds, false), &found, bootstrap))
        }
        folds => {
            let asked = queries.iter().map(|query| (query.text.as_str(), &*query.relevant));
            let without: Vec<Placed> = bed.places(&bare, &asked.collect::<Vec<Ask<'_>>>())?;
            let found = by_server(bed, requests, (queries, &without), (folds, seed)).await?;
            Some(Folds::new((folds, true), &found, bootstrap))
        }
    };
    Ok(Measured {
        counts: (catalog.servers.len(), catalog.tools.len(), requests.packs()),
        all: Group::of("all", &pairs, bootstrap),
        voices: by(&|request| voice(&request.voice)),
        servers: by(&|request| (request.pack, requests.name(request.pack).to_owned())),
        folds,
    })
}

impl Folds {
    fn new((folds, by_queries): (usize, bool), found: &ByServer, bootstrap: &Bootstrap) -> Self {
        Self {
            folds,
            by_queries,
            left_out: Group::of("pack left out", &found.left_out, bootstrap),
            others: Group::of("other servers", &found.others, bootstrap),
            passed_over: found.passed_over,
        }
    }
}

/// A voice's name, and its place among others; languages have one together.
fn voice(voice: &str) -> (usize, String) {
    if is_language(voice) { (1, "other languages".to_owned()) } else { (0, voice.to_owned()) }
}

/// The requests that have a name in common, in the order of the names.
fn groups(
    requests: &Requests,
    pairs: &[Pair],
    name: &dyn Fn(&Request) -> (usize, String),
    bootstrap: &Bootstrap,
) -> Vec<Group> {
    let mut by_name: BTreeMap<(usize, String), Vec<Pair>> = BTreeMap::new();
    for (request, pair) in requests.all.iter().zip(pairs) {
        by_name.entry(name(request)).or_default().push(*pair);
    }
    by_name.iter().map(|((_, name), pairs)| Group::of(name, pairs, bootstrap)).collect()
}
