//! Complete measurement of packs.

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

/// Results of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Number of MCP servers, of tools and of packs in the catalog.
    pub counts: (usize, usize, usize),
    /// All requests, each tested while it is left out.
    pub all: Group,
    /// The same by voice, with all languages as one group.
    pub voices: Vec<Group>,
    /// The same by pack.
    pub servers: Vec<Group>,
    /// Results with the packs of one group of servers left out at a time; `None` if not requested.
    pub folds: Option<Folds>,
}

/// Results with the packs of one group of servers left out at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Folds {
    /// Number of groups.
    pub folds: usize,
    /// True if labelled queries were tested instead of requests.
    pub by_queries: bool,
    /// Texts for servers whose packs were left out.
    pub left_out: Group,
    /// Texts for the other servers.
    pub others: Group,
    /// Number of queries that belong to neither group.
    pub passed_over: usize,
}

/// Measures each request, and also by server if `folds` is above 0.
///
/// # Errors
/// Returns an internal error if the index is defective.
pub async fn measure(
    bed: &Bed<'_>,
    requests: &Requests,
    queries: &[Query],
    folds: usize,
    seed: u64,
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
            let found = by_server(bed, requests, &[], &without, folds, seed).await?;
            Some(Folds::new(folds, false, &found, bootstrap))
        }
        folds => {
            let asked = queries.iter().map(|query| (query.text.as_str(), &*query.relevant));
            let without: Vec<Placed> = bed.places(&bare, &asked.collect::<Vec<Ask<'_>>>())?;
            let found = by_server(bed, requests, queries, &without, folds, seed).await?;
            Some(Folds::new(folds, true, &found, bootstrap))
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
    fn new(folds: usize, by_queries: bool, found: &ByServer, bootstrap: &Bootstrap) -> Self {
        Self {
            folds,
            by_queries,
            left_out: Group::of("pack left out", &found.left_out, bootstrap),
            others: Group::of("other servers", &found.others, bootstrap),
            passed_over: found.passed_over,
        }
    }
}

/// Returns the sort position and the name of a voice. All languages share one name.
fn voice(voice: &str) -> (usize, String) {
    if is_language(voice) { (1, "other languages".to_owned()) } else { (0, voice.to_owned()) }
}

/// Groups the requests by name, in the order of the names.
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
