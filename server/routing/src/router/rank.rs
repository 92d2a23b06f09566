//! Ranking: overlap of intents and summaries with the words that they share and with what is remembered of calls,
//! tools that an intent names, and words alone when nothing could be embedded. The bitmap of allowed tools takes part in the search itself.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use super::blend::{Among, Blend, Found};
use super::fuse::POOL;
use super::intent::Intent;
use super::level::Level;
use super::names;
use super::parts::Part;
use super::recall::Recall;
use crate::shard::Dense;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;

/// How a tool came into the active set. The wire's `FoundBy` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// By overlap.
    Overlap,
    /// An intent names it.
    Name,
    /// By shared words.
    Words,
    /// The request pinned it.
    Pin,
    /// It is always loaded.
    AlwaysLoad,
    /// It was in the active set before.
    Kept,
    /// Tools are not deferred this turn.
    NotDeferred,
    /// It was called for intents like this one.
    Memory,
}

impl FoundBy {
    /// Whether it was found by what it is for, and neither named nor asked for.
    #[must_use]
    pub fn is_by_meaning(self) -> bool {
        matches!(self, Self::Overlap | Self::Memory)
    }
}

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its slot.
    pub slot: u32,
    /// The best cosine over the intents; 0 when nothing was embedded.
    pub overlap: f32,
    /// What the ranking goes by.
    pub score: f32,
    /// How it was found.
    pub found_by: FoundBy,
    /// What the score was made of.
    pub parts: Parts,
    /// True when it is the best of an intent or of one of its clauses: a turn covers each.
    pub leads: bool,
    /// What the agent called before.
    pub recent: Recent,
    /// True when it owes its score to what stands beside the request: an intent that counts less than the heaviest.
    pub from_context: bool,
}

/// What the agent called before; nothing, for all that is known, by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    /// This very tool.
    pub called: bool,
    /// A tool of its MCP server.
    pub server_called: bool,
}

/// What a score was made of, each the best over the intents.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parts {
    /// What its words have in common with an intent, as a share of the best tool's; 0 to 1.
    pub words: f32,
    /// The part of an intent's words that it has, each weighed by its rarity; 0 to 1.
    pub word_share: f32,
    /// What an intent as a whole makes of it, overlap and words together; 0 to 1.
    pub whole: f32,
    /// What the best of an intent's clauses makes of it; 0 to 1.
    pub clause: f32,
    /// The cosine with the nearest of an intent and its clauses: whether any tool fits goes by it. The nearest intent that
    /// it was called for counts as well.
    pub nearest: f32,
    /// How much calls for intents like these speak for it; 0 to 1.
    pub memory: f32,
    /// What it is lifted by, since a tool of its MCP server was called last.
    pub last_called: f32,
    /// What was taken from the score of an untrusted tool, since a tool that is trusted more fits as well.
    pub lowered: f32,
}

impl Parts {
    /// Of words alone.
    #[must_use]
    pub fn of_words(words: f32) -> Self {
        Self { words, ..Self::default() }
    }

    fn max(self, other: Self) -> Self {
        Self {
            words: self.words.max(other.words),
            word_share: self.word_share.max(other.word_share),
            whole: self.whole.max(other.whole),
            clause: self.clause.max(other.clause),
            nearest: self.nearest.max(other.nearest),
            memory: self.memory.max(other.memory),
            last_called: self.last_called.max(other.last_called),
            lowered: self.lowered.max(other.lowered),
        }
    }
}

impl Candidate {
    /// What another intent makes of the same tool, where that is more.
    fn take_better(&mut self, other: &Self) {
        self.overlap = self.overlap.max(other.overlap);
        self.parts = self.parts.max(other.parts);
        if other.score > self.score {
            (self.score, self.found_by) = (other.score, other.found_by);
            self.from_context = other.from_context;
        }
        self.leads |= other.leads;
    }
}

/// Intents with their embeddings; none when the encoder could not be had.
#[derive(Debug)]
pub struct Embedded<'a> {
    /// The intents.
    pub intents: &'a [Intent],
    /// One embedding for each of [`Intent::texts`], or none at all.
    pub vectors: &'a [Vec<f32>],
    /// How overlap, words, memory and clauses make a score.
    pub blend: Blend,
    /// What is remembered of the tenant's calls; `None` where nothing is.
    pub recall: Option<&'a Recall>,
    /// What the best overlap of an intent must reach for any tool to fit: where it does, no untrusted tool ranks before
    /// the best of the others.
    pub level: Level,
}

/// An intent with the embeddings of its texts: the whole, then its clauses.
type WithVectors<'a> = (&'a Intent, &'a [Vec<f32>]);

impl<'a> Embedded<'a> {
    /// Intents as the product ranks them.
    #[must_use]
    pub fn new(intents: &'a [Intent], vectors: &'a [Vec<f32>]) -> Self {
        let level = Level::NONE;
        Self { intents, vectors, blend: Blend::default(), recall: None, level }
    }

    /// Each intent with its embeddings.
    fn each(&self) -> impl Iterator<Item = WithVectors<'a>> {
        let mut rest = self.vectors;
        self.intents.iter().map_while(move |intent| {
            let (own, after) = rest.split_at_checked(intent.text_count())?;
            rest = after;
            Some((intent, own))
        })
    }

    /// The best `k` of the allowed tools, best first, as [`sort`] puts them.
    ///
    /// # Errors
    /// [`Error::Internal`] when an embedding does not fit the index.
    pub fn rank(
        &self,
        snapshot: &Snapshot,
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Candidate>, Error> {
        let mut candidates = match self.index(snapshot) {
            Some(index) => self.by_both(snapshot, (index, k), allowed)?,
            None => self.by_words(snapshot, k, allowed),
        };
        self.lift_named(snapshot, allowed, &mut candidates);
        sort(snapshot, &mut candidates);
        Ok(candidates)
    }

    /// True when overlaps can't be had and words decide.
    #[must_use]
    pub fn is_words_only(&self, snapshot: &Snapshot) -> bool {
        self.index(snapshot).is_none()
    }

    /// A tool's overlap and score, whether or not it was found.
    #[must_use]
    pub fn score_of(&self, snapshot: &Snapshot, slot: u32) -> (f32, f32) {
        self.index(snapshot).map_or((0.0, 0.0), |index| self.score(index, slot))
    }

    fn index<'s>(&self, snapshot: &'s Snapshot) -> Option<Dense<'s>> {
        snapshot.vectors().filter(|_| !self.vectors.is_empty())
    }

    /// By overlap and words together, for each intent by itself.
    fn by_both(
        &self,
        snapshot: &Snapshot,
        (index, k): (Dense<'_>, usize),
        allowed: Option<&FixedBitSet>,
    ) -> Result<Vec<Candidate>, Error> {
        let mut found: BTreeMap<u32, Candidate> = BTreeMap::new();
        let heaviest = self.heaviest();
        let parts = Part::all(snapshot, allowed, k.max(POOL));
        let among = Among {
            snapshot,
            index,
            allowed,
            parts: &parts,
            recall: self.recall,
            level: self.level,
        };
        for (intent, vectors) in self.each() {
            let ranked = self.blend.rank(&among, intent, vectors)?;
            for Found { slot, score, parts, leads } in ranked.into_iter().take(k) {
                let overlap = cosine(index, vectors, slot);
                let score = score * intent.weight / heaviest;
                let found_by = self.found_by(&parts);
                let recent = Recent::default();
                let from_context = intent.weight < heaviest;
                let here = Candidate {
                    slot,
                    overlap,
                    parts,
                    score,
                    found_by,
                    leads,
                    recent,
                    from_context,
                };
                found.entry(slot).and_modify(|known| known.take_better(&here)).or_insert(here);
            }
        }
        Ok(found.into_values().collect())
    }

    /// By memory, what has most of its score from there.
    fn found_by(&self, parts: &Parts) -> FoundBy {
        let remembered = self.blend.memory * parts.memory;
        let most = parts.whole.max(parts.clause);
        if remembered > 0.0 && remembered >= most / 2.0 {
            FoundBy::Memory
        } else {
            FoundBy::Overlap
        }
    }

    fn heaviest(&self) -> f32 {
        self.intents.iter().map(|intent| intent.weight).fold(0.0, f32::max)
    }

    /// The best cosine, and the best weighted one on the scale of the heaviest intent.
    fn score(&self, index: Dense<'_>, slot: u32) -> (f32, f32) {
        let heaviest = self.heaviest();
        let best = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        self.each().fold(best, |(overlap, score), (intent, vectors)| {
            let held = vectors.first().and_then(|vector| index.overlap(vector, slot));
            let held = held.unwrap_or(0.0);
            let cosine = cosine(index, vectors, slot);
            (overlap.max(cosine), score.max(held * intent.weight / heaviest))
        })
    }

    fn by_words(
        &self,
        snapshot: &Snapshot,
        k: usize,
        allowed: Option<&FixedBitSet>,
    ) -> Vec<Candidate> {
        let text: Vec<_> = self.intents.iter().map(|intent| intent.text.as_str()).collect();
        let text = text.join("\n");
        let parts = Part::all(snapshot, allowed, k);
        let found =
            |part: &Part<'_>| snapshot.words.search(&text, part.pool, part.allowed.as_deref());
        let hits: Vec<_> = parts.iter().flat_map(found).collect();
        let candidate = |slot, score| Candidate {
            slot,
            overlap: 0.0,
            score,
            parts: Parts::of_words(score),
            found_by: FoundBy::Words,
            leads: false,
            recent: Recent::default(),
            from_context: false,
        };
        // Where no word is shared there is nothing to go by: tools at random are worse than none.
        let best = hits.first().map_or(1.0, |hit| hit.score).max(f32::MIN_POSITIVE);
        hits.iter().map(|hit| candidate(hit.slot, (hit.score / best).min(1.0))).collect()
    }

    /// A tool whose name stands in an intent goes before everything that was only similar, one of which an
    /// intent has the beginning of a name after those.
    fn lift_named(
        &self,
        snapshot: &Snapshot,
        allowed: Option<&FixedBitSet>,
        candidates: &mut Vec<Candidate>,
    ) {
        let named = names::in_intents(self.intents, snapshot, allowed);
        candidates.retain(|candidate| !named.contains_key(&candidate.slot));
        for (slot, rung) in named {
            let (overlap, _) = self.score_of(snapshot, slot);
            candidates.push(Candidate {
                slot,
                overlap,
                score: rung.above() + overlap,
                parts: Parts::of_words(1.0),
                found_by: FoundBy::Name,
                leads: true,
                recent: Recent::default(),
                from_context: false,
            });
        }
    }
}

/// The cosine of a tool's summary and an intent as a whole, whose embedding is the first of these.
fn cosine(index: Dense<'_>, vectors: &[Vec<f32>], slot: u32) -> f32 {
    vectors.first().and_then(|vector| index.cosine(vector, slot)).unwrap_or(0.0)
}

/// Best first. Of equals untrusted tools go last, those first that were lowered most; then by slot, so that the order
/// never depends on chance.
pub fn sort(snapshot: &Snapshot, candidates: &mut [Candidate]) {
    let is_untrusted = |one: &Candidate| snapshot.tool(one.slot).untrusted;
    candidates.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| is_untrusted(a).cmp(&is_untrusted(b)))
            .then(b.parts.lowered.total_cmp(&a.parts.lowered))
            .then(a.slot.cmp(&b.slot))
    });
}
