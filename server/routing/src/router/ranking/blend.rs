//! Blend of overlap, words, memory and clauses into one score for an intent.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use crate::router::intent::Intent;
use crate::router::ranking::fuse::{Fused, Slots, Weights, fuse};
use crate::router::ranking::level::Level;
use crate::router::ranking::parts::Part;
use crate::router::ranking::rank::Parts;
use crate::router::ranking::recall::Recall;
use crate::shard::Dense;
use crate::shard::snapshot::Snapshot;
use crate::shard::words::Reach;
use toolgate_core::error::Error;

/// Weight of clauses in a score, for intents that have clauses; 0 to 1.
const CLAUSE: f32 = 0.5;

/// Minimum best overlap of a clause that counts, as a share of the whole intent's best overlap. Other clauses only lead
/// up to the request ("I am new here").
const CLAUSE_REACH: f32 = 0.8;

/// Weights of a score. `toolgate eval --ablations` shows the effect of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blend {
    /// Weight of words against overlap; 0 to 1. With 0, .3, .4 and .5, recall at 5: azure .973, .992, .989, .988;
    /// MetaTool .756, .802, .788, .765; its two-tool queries .602, .731, .729, .727; StableToolBench .526, .651, .671,
    /// .689; Seal-Tools .583, .767, .809, .837. Above .4, requests in other words than the tool's begin to lose.
    pub words: f32,
    /// True if clauses count.
    pub clauses: bool,
    /// Weight of memory against overlap and words together; 0 to 1. docs/memory.md has the results of other weights. At
    /// .5, a wrong memory could take half of a right tool's score, and half is where the set is cut.
    pub memory: f32,
}

impl Default for Blend {
    /// Returns the product's weights.
    fn default() -> Self {
        Self { words: 0.4, clauses: true, memory: 0.4 }
    }
}

/// Inputs of a search.
pub(in crate::router) struct Among<'a> {
    pub(in crate::router) snapshot: &'a Snapshot,
    pub(in crate::router) index: Dense<'a>,
    pub(in crate::router) allowed: Option<&'a FixedBitSet>,
    /// Allowed tools, part by part, with the number of tools that are fused from each ranking.
    pub(in crate::router) parts: &'a [Part<'a>],
    /// Memory of the tenant's past calls; `None` where there is none.
    pub(in crate::router) recall: Option<&'a Recall>,
    /// Level that the best overlap must reach for any tool to fit.
    pub(in crate::router) level: Level,
}

/// Tool as one intent ranks it.
#[derive(Debug, Clone, Copy)]
pub(in crate::router) struct RankedTool {
    pub(in crate::router) slot: u32,
    /// Combined score; 0 to 1.
    pub(in crate::router) score: f32,
    pub(in crate::router) parts: Parts,
    /// True if the tool is the best of the whole intent or of a clause.
    pub(in crate::router) leads: bool,
}

impl Blend {
    /// Returns every tool that the intent or one of its clauses finds, best first; ties by slot. Untrusted tools that
    /// were lowered stay in their places. `vectors` are the embeddings of [`Intent::texts`].
    pub(in crate::router) fn rank(
        &self,
        among: &Among<'_>,
        intent: &Intent,
        vectors: &[Vec<f32>],
    ) -> Result<Vec<RankedTool>, Error> {
        let Some((whole_vector, clause_vectors)) = vectors.split_first() else {
            return Ok(Vec::new());
        };
        let asks = if intent.clauses().is_empty() { Asks::ForOne } else { Asks::ForSeveral };
        let whole = self.fused(among, whole_vector, &intent.text, asks)?;
        let reach = CLAUSE_REACH * whole.best_overlap;
        let mut clauses = Vec::new();
        for (vector, text) in clause_vectors.iter().zip(intent.clauses()).filter(|_| self.clauses) {
            let clause = self.fused(among, vector, text, Asks::ForSeveral)?;
            if clause.best_overlap >= reach {
                clauses.push(clause);
            }
        }
        let mut found: Vec<RankedTool> = whole.ranked.iter().map(RankedTool::of_whole).collect();
        found.iter_mut().take(1).for_each(|best| best.leads = true);
        let is_untrusted = |slot| among.snapshot.tool(slot).untrusted;
        if let Some(best) = found.iter_mut().find(|one| !is_untrusted(one.slot)) {
            best.leads = true;
        }
        if !clauses.is_empty() {
            let overlap = |slot| among.index.overlap(whole_vector, slot).unwrap_or(0.0);
            found = with_clauses(found, clauses, overlap, |slot| !is_untrusted(slot));
        }
        lower(&mut found, among.level, is_untrusted);
        Ok(found)
    }

    fn fused(
        &self,
        among: &Among<'_>,
        vector: &[f32],
        text: &str,
        asks: Asks,
    ) -> Result<Ranking, Error> {
        let Among { snapshot, index, allowed, parts, recall, .. } = among;
        let mut near = Vec::new();
        let mut worded = Vec::new();
        for Part { allowed, pool } in *parts {
            let hits = index.search(vector, *pool, allowed.as_deref()).map_err(Error::internal)?;
            near.extend(hits.iter().map(|hit| (hit.slot, hit.overlap)));
            let hits = snapshot.words.search(text, *pool, allowed.as_deref(), Reach::Words);
            worded.extend(hits);
        }
        let overlap = |slot| index.overlap(vector, slot).unwrap_or(0.0);
        let best_overlap = near.first().map_or(0.0, |(_, overlap)| *overlap);
        let known = recall.map_or_else(Vec::new, |recall| recall.tools(snapshot, vector, *allowed));
        let weights = Weights { words: self.words, memory: self.memory };
        let sets_scale = |slot| !snapshot.tool(slot).untrusted;
        let ranked_by = |slot, overlap| match asks {
            Asks::ForOne => index.ranked_by_kinds(vector, slot, overlap),
            Asks::ForSeveral => index.ranked(slot, overlap),
        };
        let slots = Slots { overlap, ranked_by, sets_scale };
        let mut ranked = fuse(&near, &worded, &known, slots, weights);
        ranked.iter_mut().for_each(|one| one.nearest += index.given_back(one.slot));
        Ok(Ranking { ranked, best_overlap })
    }
}

/// Number of things that an intent asks for. Recall at 5 of people's requests of several things falls if the kinds of a
/// tool's requests count for them too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    ForOne,
    ForSeveral,
}

/// Tools that one text finds.
struct Ranking {
    ranked: Vec<Fused>,
    best_overlap: f32,
}

/// Lowers untrusted tools to the best score of the others, if one of the others reaches the level. A third party that
/// describes its tool in the words of requests must not rank above a tool that fits.
fn lower(found: &mut [RankedTool], level: Level, is_untrusted: impl Fn(u32) -> bool) {
    let others = || found.iter().filter(|one| !is_untrusted(one.slot));
    // Without a level, nothing shows that one of the others fits.
    if level == Level::NONE || !others().any(|one| level.is_reached_by(one.parts.nearest)) {
        return;
    }
    let best = others().map(|one| one.score).fold(0.0, f32::max);
    for one in found.iter_mut().filter(|one| is_untrusted(one.slot) && one.score > best) {
        one.parts.lowered = one.score - best;
        one.score = best;
    }
}

/// Merges the tools that the whole intent found with those of its clauses, best first; ties by slot. The best tool of a
/// clause leads, and so does the best of those that set the scale. `overlap` looks up the overlap of a slot with the
/// whole intent.
fn with_clauses(
    found: Vec<RankedTool>,
    clauses: Vec<Ranking>,
    overlap: impl Fn(u32) -> f32,
    sets_scale: impl Fn(u32) -> bool,
) -> Vec<RankedTool> {
    let unclaused = |one: RankedTool| {
        let parts = Parts { clause: 0.0, ..one.parts };
        (one.slot, RankedTool { parts, ..one })
    };
    let mut found: BTreeMap<u32, RankedTool> = found.into_iter().map(unclaused).collect();
    for clause in clauses {
        let first = clause.ranked.iter().position(|fused| sets_scale(fused.slot));
        for (place, fused) in clause.ranked.into_iter().enumerate() {
            let slot = fused.slot;
            let one = found.entry(slot).or_insert_with(|| RankedTool::unseen(slot, overlap(slot)));
            one.parts.clause = one.parts.clause.max(fused.score);
            one.parts.nearest = one.parts.nearest.max(fused.nearest);
            one.parts.word_share = one.parts.word_share.max(fused.word_share);
            one.parts.memory = one.parts.memory.max(fused.memory);
            one.leads |= place == 0 || Some(place) == first;
        }
    }
    let mut found: Vec<RankedTool> = found.into_values().map(RankedTool::with_clause).collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
    found
}

impl RankedTool {
    /// Creates the result of an intent with a single clause.
    fn of_whole(fused: &Fused) -> Self {
        let Fused { slot, words, word_share, memory, nearest, score, .. } = *fused;
        let whole = score;
        let clause = score;
        let said = Parts { words, word_share, nearest, memory, ..Parts::default() };
        let parts = Parts { whole, clause, ..said };
        Self { slot, score, parts, leads: false }
    }

    /// Creates the result of a tool that the whole intent did not find.
    fn unseen(slot: u32, overlap: f32) -> Self {
        let parts = Parts { nearest: overlap, ..Parts::default() };
        Self { slot, score: 0.0, parts, leads: false }
    }

    /// Returns the tool with its final score: half from the whole intent, half from the best of the whole and its
    /// clauses.
    fn with_clause(self) -> Self {
        let Parts { whole, clause, .. } = self.parts;
        Self { score: (1.0 - CLAUSE) * whole + CLAUSE * clause.max(whole), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fused(slot: u32, score: f32) -> Fused {
        let [words, word_share, memory] = [0.0; 3];
        Fused { slot, overlap: score, words, word_share, memory, nearest: score, score }
    }

    /// Returns true for slot 9 and above.
    fn is_untrusted(slot: u32) -> bool {
        slot >= 9
    }

    #[test]
    fn a_clause_is_led_by_its_best_tool_that_is_not_untrusted_too() {
        let whole = [fused(1, 0.9), fused(2, 0.3)];
        let ranked = vec![fused(9, 0.8), fused(10, 0.7), fused(2, 0.6), fused(3, 0.5)];
        let clause = Ranking { ranked, best_overlap: 0.8 };
        let whole = whole.iter().map(RankedTool::of_whole).collect();
        let found = with_clauses(whole, vec![clause], |_| 0.1, |slot| !is_untrusted(slot));
        let leading = found.iter().filter(|one| one.leads).map(|one| one.slot);
        assert_eq!(leading.collect::<Vec<_>>(), [2, 9]);
    }

    #[test]
    fn untrusted_tools_are_lowered_to_the_best_of_the_others_where_one_fits() {
        let scores = |level: f32| {
            let all = [fused(9, 1.0), fused(10, 0.8), fused(1, 0.6), fused(11, 0.5)];
            let mut found: Vec<RankedTool> = all.iter().map(RankedTool::of_whole).collect();
            lower(&mut found, Level(level), is_untrusted);
            found.iter().map(|one| (one.score, one.parts.lowered)).collect::<Vec<_>>()
        };
        let lowered = scores(0.6);
        assert_eq!(
            lowered.iter().map(|(score, _)| *score).collect::<Vec<_>>(),
            [0.6, 0.6, 0.6, 0.5]
        );
        assert!(lowered[0].1 > lowered[1].1 && lowered[3].1 == 0.0, "{lowered:?}");
        assert_eq!(scores(0.7)[0], (1.0, 0.0), "none of the others fits");
    }
}
