//! Ranking of tools by the overlap of intents and summaries, the words that they share, and remembered calls. Tools
//! that an intent names come first, and words alone decide if nothing was embedded. The search itself applies the
//! bitmap of allowed tools.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use crate::router::intent::Intent;
use crate::router::query::SelectionRule;
use crate::router::ranking::blend::{Among, Blend, RankedTool};
use crate::router::ranking::fuse::POOL;
use crate::router::ranking::level::Level;
use crate::router::ranking::names;
use crate::router::ranking::parts::Part;
use crate::router::ranking::recall::Recall;
use crate::router::tool_attention;
use crate::shard::Dense;
use crate::shard::snapshot::Snapshot;
use crate::shard::words::Reach;
use toolgate_core::error::Error;

/// Reason why a tool is in the active set. The wire's `FoundBy` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// Overlap with an intent.
    Overlap,
    /// Name in an intent.
    Name,
    /// Shared words.
    Words,
    /// Pin by the request or the policy.
    Pin,
    /// Always-loaded tool.
    AlwaysLoad,
    /// Tool of the previous active set, or one that the conversation discovered.
    Kept,
    /// No deferral this turn.
    NotDeferred,
    /// Earlier calls for similar intents.
    Memory,
}

impl FoundBy {
    /// Returns true if the tool was found by its meaning, and neither named nor requested.
    #[must_use]
    pub fn is_by_meaning(self) -> bool {
        matches!(self, Self::Overlap | Self::Memory)
    }
}

/// Tool that a ranking or a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Slot of the tool.
    pub slot: u32,
    /// Highest cosine of the tool's summary and an intent; 0 when nothing was embedded.
    pub overlap: f32,
    /// Score that the ranking sorts by.
    pub score: f32,
    /// Reason why the tool was found.
    pub found_by: FoundBy,
    /// Components of the score.
    pub parts: Parts,
    /// True if the tool is the best of an intent or of one of its clauses. A turn covers each of them.
    pub leads: bool,
    /// Earlier calls to this tool or its MCP server.
    pub recent: Recent,
    /// True if the score comes from context beside the request: an intent with less weight than the heaviest.
    pub from_context: bool,
    /// True if a place is reserved for the tool, because its MCP server was one of the last that were called.
    pub is_reserved: bool,
}

/// Earlier calls of the agent. By default none are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    /// True if the agent called this tool.
    pub called: bool,
    /// True if the agent called a tool of the same MCP server.
    pub server_called: bool,
}

/// Components of a score, each the best over the intents.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parts {
    /// Score by words, as a share of the best tool's; 0 to 1.
    pub words: f32,
    /// Share of an intent's words that the tool has, weighed by rarity; 0 to 1.
    pub word_share: f32,
    /// Score for an intent as a whole, from overlap, words and memory; 0 to 1.
    pub whole: f32,
    /// Score for the best of an intent's clauses; 0 to 1.
    pub clause: f32,
    /// Highest cosine with an intent, one of its clauses, or an intent that the tool was called for. The decision
    /// whether any tool fits goes by it.
    pub nearest: f32,
    /// Weight of earlier calls for similar intents; 0 to 1.
    pub memory: f32,
    /// Amount added to the score because a tool of its MCP server was called last.
    pub last_called: f32,
    /// Amount taken from the score of an untrusted tool because a more trusted tool fits as well.
    pub lowered: f32,
}

impl Parts {
    /// Creates parts with a score by words alone.
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
    /// Creates a candidate that is ranked by its overlap alone.
    #[must_use]
    pub fn of_overlap(slot: u32, overlap: f32) -> Self {
        Self {
            slot,
            overlap,
            score: overlap,
            found_by: FoundBy::Overlap,
            parts: Parts { whole: overlap, nearest: overlap, ..Parts::default() },
            leads: false,
            recent: Recent::default(),
            from_context: false,
            is_reserved: false,
        }
    }

    /// Takes over the values of the same tool for another intent where they are higher.
    fn take_better(&mut self, other: &Self) {
        self.overlap = self.overlap.max(other.overlap);
        self.parts = self.parts.max(other.parts);
        if other.score > self.score {
            self.score = other.score;
            self.found_by = other.found_by;
            self.from_context = other.from_context;
        }
        self.leads |= other.leads;
    }
}

/// Intents with their embeddings, and the settings of a ranking.
#[derive(Debug)]
pub struct Embedded<'a> {
    /// Intents to rank tools for.
    pub intents: &'a [Intent],
    /// Embeddings, one for each of [`Intent::texts`]; empty if the encoder is unavailable.
    pub vectors: &'a [Vec<f32>],
    /// Rule that tools are ranked by.
    pub rule: SelectionRule,
    /// Weights of overlap, words, memory and clauses in a score.
    pub blend: Blend,
    /// Memory of the tenant's past calls; `None` where there is none.
    pub recall: Option<&'a Recall>,
    /// Overlap that the best tool of an intent must reach for any tool to fit. Where it is reached, no untrusted tool
    /// ranks above the best of the others.
    pub level: Level,
    /// Words that are looked for where words alone decide.
    pub reach: Reach,
}

/// Intent with its embeddings.
struct EmbeddedIntent<'a> {
    intent: &'a Intent,
    /// Embeddings of its texts: the whole, then its clauses.
    vectors: &'a [Vec<f32>],
}

impl<'a> Embedded<'a> {
    /// Creates intents that are ranked with the product's weights, without memory and without a level.
    #[must_use]
    pub fn new(intents: &'a [Intent], vectors: &'a [Vec<f32>]) -> Self {
        let level = Level::NONE;
        let rule = SelectionRule::Own;
        let reach = Reach::Synonyms;
        Self { intents, vectors, rule, blend: Blend::default(), recall: None, level, reach }
    }

    /// Returns each intent with its embeddings.
    fn each(&self) -> impl Iterator<Item = EmbeddedIntent<'a>> {
        let mut rest = self.vectors;
        self.intents.iter().map_while(move |intent| {
            let (vectors, after) = rest.split_at_checked(intent.text_count())?;
            rest = after;
            Some(EmbeddedIntent { intent, vectors })
        })
    }

    /// Returns up to `k` allowed tools for each intent and the tools that intents name, ordered by [`sort`]. By the rule
    /// of Tool Attention, a name finds nothing, unless words decide.
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
            Some(index) if self.rule == SelectionRule::ToolAttention => {
                let vectors = self.each().filter_map(|embedded| embedded.vectors.first());
                return tool_attention::rank(snapshot, index, vectors, k, allowed);
            }
            Some(index) => self.by_both(snapshot, index, k, allowed)?,
            None => self.by_words(snapshot, k, allowed),
        };
        self.lift_named(snapshot, allowed, &mut candidates);
        sort(snapshot, &mut candidates);
        Ok(candidates)
    }

    /// Returns true if overlaps are unavailable and words decide.
    #[must_use]
    pub fn is_words_only(&self, snapshot: &Snapshot) -> bool {
        self.index(snapshot).is_none()
    }

    /// Returns a tool's overlap and score, even if the ranking did not find it. Both are 0 when nothing was embedded.
    #[must_use]
    pub fn score_of(&self, snapshot: &Snapshot, slot: u32) -> (f32, f32) {
        self.index(snapshot).map_or((0.0, 0.0), |index| self.score(index, slot))
    }

    fn index<'s>(&self, snapshot: &'s Snapshot) -> Option<Dense<'s>> {
        snapshot.vectors().filter(|_| !self.vectors.is_empty())
    }

    /// Ranks by overlap, words and memory, for each intent separately.
    fn by_both(
        &self,
        snapshot: &Snapshot,
        index: Dense<'_>,
        k: usize,
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
        for EmbeddedIntent { intent, vectors } in self.each() {
            let ranked = self.blend.rank(&among, intent, vectors)?;
            for RankedTool { slot, score, mut parts, leads } in ranked.into_iter().take(k) {
                if intent.is_context() {
                    // What was said before is less evidence that this message needs a tool.
                    parts.nearest *= intent.weight / heaviest;
                }
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
                    is_reserved: false,
                };
                found.entry(slot).and_modify(|known| known.take_better(&here)).or_insert(here);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Returns [`FoundBy::Memory`] if memory contributes at least half of the score, or else [`FoundBy::Overlap`].
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

    /// Returns the highest cosine, and the highest weighted overlap on the scale of the heaviest intent.
    fn score(&self, index: Dense<'_>, slot: u32) -> (f32, f32) {
        let heaviest = self.heaviest();
        let best = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        self.each().fold(best, |(overlap, score), EmbeddedIntent { intent, vectors }| {
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
        let found = |part: &Part<'_>| {
            snapshot.words.search(&text, part.pool, part.allowed.as_deref(), self.reach)
        };
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
            is_reserved: false,
        };
        // Without a shared word there is nothing to rank by: random tools are worse than none.
        let best = hits.first().map_or(1.0, |hit| hit.score).max(f32::MIN_POSITIVE);
        hits.iter().map(|hit| candidate(hit.slot, (hit.score / best).min(1.0))).collect()
    }

    /// Moves tools that an intent names before all similar ones. Tools named in full come before tools named by the
    /// beginning of their name.
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
                is_reserved: false,
            });
        }
    }
}

/// Returns the cosine of a tool's summary and the whole intent, whose embedding is the first of `vectors`.
fn cosine(index: Dense<'_>, vectors: &[Vec<f32>], slot: u32) -> f32 {
    vectors.first().and_then(|vector| index.cosine(vector, slot)).unwrap_or(0.0)
}

/// Sorts candidates, best first. Among equal scores, untrusted tools come last, and those lowered most come first.
/// Slots break the remaining ties, so that the order never depends on chance.
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

#[cfg(test)]
mod tests;
