//! Calls that teach a memory: their callers, their times and their tools.

use std::collections::{BTreeMap, HashMap};

use super::{Answer, Class, Company, LabelledQuery};
use crate::random::Random;
use toolgate_core::identity::ToolId;
use toolgate_core::quantized_embedding::QuantizedEmbedding;
use toolgate_routing::memory::{Observation, learn, now_ms};
use toolgate_store::{Exemplar, PrincipalKey};

/// Number of calls of which one is wrong.
const ONE_WRONG_IN: usize = 10;

/// Number of calls by a flooding caller, and the days over which they are made.
const FLOOD_CALLS: i64 = 1_000;
const FLOOD_DAYS: i64 = 30;

const MILLIS_OF_A_DAY: i64 = 86_400_000;

/// Principal of the flooding caller.
const FLOODER: PrincipalKey = [255; 8];

/// Division of the queries in one round.
pub(super) struct Split {
    /// Places of the queries that are measured. All of their tools are observed.
    pub(super) measured: Vec<usize>,
    /// Places of the queries that are observed, by the label of a tool.
    pub(super) observed: BTreeMap<String, Vec<usize>>,
}

impl Split {
    /// Divides the labelled queries into two halves at random, by the seed.
    pub(super) fn new(queries: &[LabelledQuery], seed: u64) -> Self {
        let labelled = |place: &usize| !queries[*place].relevant.is_empty();
        let mut places: Vec<usize> = (0..queries.len()).filter(labelled).collect();
        Random::new(seed).shuffle(&mut places);
        let (observed, measured) = places.split_at(places.len() / 2);
        let mut by_tool: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for place in observed {
            for tool in &queries[*place].relevant {
                by_tool.entry(tool.clone()).or_default().push(*place);
            }
        }
        let is_known =
            |place: &&usize| queries[**place].relevant.iter().all(|t| by_tool.contains_key(t));
        let mut measured: Vec<usize> = measured.iter().filter(is_known).copied().collect();
        measured.sort_unstable();
        Self { measured, observed: by_tool }
    }
}

/// Exemplars that were learned.
#[derive(Clone, Default)]
pub(super) struct Taught {
    pub(super) exemplars: BTreeMap<ToolId, Vec<Exemplar>>,
    /// Number of observed calls of right tools, including the wrong calls that replaced some of them.
    pub(super) calls: usize,
}

/// Lessons of one round.
pub(super) struct Lessons<'a> {
    pub(super) split: &'a Split,
    /// Answers without memory, by place.
    pub(super) plain: &'a [Answer],
    pub(super) class: &'a Class<'a>,
    pub(super) seed: u64,
}

impl Lessons<'_> {
    /// Teaches up to `calls` calls of each tool, each made today by another caller, and the calls of the company.
    pub(super) fn teach(&self, company: Company, calls: usize) -> Taught {
        let ids = self.ids();
        let mut taught = Taught::default();
        let mut random = Random::new(self.seed);
        if company == Company::Flood {
            self.flood(&mut taught, &ids, &mut random);
        }
        for (tool, places) in &self.split.observed {
            for place in places.iter().take(calls) {
                taught.calls += 1;
                let is_wrong = company == Company::Wrong && random.below(ONE_WRONG_IN) == 0;
                let called = if is_wrong { self.wrong(*place) } else { Some(tool.as_str()) };
                let id = called.and_then(|tool| ids.get(tool)).copied();
                let Some(id) = id else { continue };
                let Some(intent_embedding) = self.intent_embedding(*place) else { continue };
                let principal = (taught.calls as u64).to_be_bytes();
                self.call(&mut taught, id, intent_embedding, (principal, now_ms()));
            }
        }
        taught
    }

    /// Returns what was taught with one caller's calls added that aim at one query.
    pub(super) fn aim(&self, taught: &Taught, place: usize) -> Taught {
        let mut aimed = taught.clone();
        let ids = self.ids();
        let wrong = self.wrong(place).and_then(|tool| ids.get(tool)).copied();
        if let Some(id) = wrong
            && let Some(intent_embedding) = self.intent_embedding(place)
        {
            for at_ms in over_a_month() {
                self.call(&mut aimed, id, intent_embedding.clone(), (FLOODER, at_ms));
            }
        }
        aimed
    }

    fn flood(&self, taught: &mut Taught, ids: &HashMap<String, &ToolId>, random: &mut Random) {
        let tools = &self.class.stock.catalog.tools;
        let places: Vec<usize> = self.split.observed.values().flatten().copied().collect();
        if tools.is_empty() || places.is_empty() {
            return;
        }
        let mut named: Vec<&&ToolId> = ids.values().collect();
        named.sort();
        let id = *named[random.below(named.len())];
        for at_ms in over_a_month() {
            if let Some(intent_embedding) =
                self.intent_embedding(places[random.below(places.len())])
            {
                self.call(taught, id, intent_embedding, (FLOODER, at_ms));
            }
        }
    }

    fn call(
        &self,
        taught: &mut Taught,
        tool: &ToolId,
        intent_embedding: QuantizedEmbedding,
        (principal, at_ms): (PrincipalKey, i64),
    ) {
        let exemplars = taught.exemplars.entry(tool.clone()).or_default();
        let seen = Observation { tool: tool.clone(), intent_embedding, principal, at_ms };
        learn(exemplars, &seen, self.class.curves.half_life);
    }

    /// Returns the best-ranked tool that is not right.
    fn wrong(&self, place: usize) -> Option<&str> {
        let relevant = &self.class.curves.queries[place].relevant;
        let ranked = self.plain[place].ranked.ranked.iter();
        ranked.map(String::as_str).find(|tool| !relevant.contains(*tool))
    }

    fn intent_embedding(&self, place: usize) -> Option<QuantizedEmbedding> {
        self.class.intent_embedding(&self.class.curves.queries[place].text)
    }

    /// Returns the tools by their labels.
    fn ids(&self) -> HashMap<String, &ToolId> {
        let known = self.class.snapshot.tools.iter().map(|tool| &tool.id);
        let named = |id: &ToolId| {
            format!("{}/{}", self.class.stock.names.in_file(&id.server), id.name.as_str())
        };
        known.map(|id| (named(id), id)).collect()
    }
}

/// Returns the times of a flood's calls in milliseconds, the last one now.
fn over_a_month() -> impl Iterator<Item = i64> {
    let now = now_ms();
    (0..FLOOD_CALLS).map(move |call| {
        let days_ago = FLOOD_DAYS - 1 - call * FLOOD_DAYS / FLOOD_CALLS;
        now - days_ago * MILLIS_OF_A_DAY
    })
}
