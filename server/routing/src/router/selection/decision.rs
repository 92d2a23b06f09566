//! Decision of one Route call: gate, deferral, search and choice. It does no I/O and depends only on its inputs and the
//! clock. It is the whole cost of a call once its intents are embedded.

use crate::gate::handle::ActiveSet;
use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::Visibilities;
use crate::router::allow::Allowed;
use crate::router::answers::explain::{self, LOOK_BEYOND};
use crate::router::answers::pending;
use crate::router::query::{Options, RouteQuery, SelectionRule};
use crate::router::ranking::cut::Cut;
use crate::router::ranking::fit::Fit;
use crate::router::ranking::fuse::POOL;
use crate::router::ranking::level::Level;
use crate::router::ranking::pool;
use crate::router::ranking::rank::{Candidate, Embedded};
use crate::router::ranking::recall::Recall;
use crate::router::selection::caps::Caps;
use crate::router::selection::choose::{Choice, Chosen, Outcome};
use crate::router::selection::continuity::Change;
use crate::router::selection::deferring::{Deferral, Deferring};
use crate::router::selection::left_out::LeftOut;
use crate::router::stages::Stages;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;

/// Multiple of `top_k` that is ranked in addition when the policy's caps may leave some candidates out.
const CAPS_LOOK_BEYOND: usize = 4;

/// Result of a decision, before anything is rendered.
pub(in crate::router) struct Decision {
    pub(in crate::router) visibilities: Visibilities,
    pub(in crate::router) active: Vec<Chosen>,
    pub(in crate::router) left_out: Vec<LeftOut>,
    pub(in crate::router) change: Change,
    pub(in crate::router) deferral: Deferral,
    pub(in crate::router) pending: Vec<String>,
    pub(in crate::router) vectors: Vec<Vec<f32>>,
    pub(in crate::router) words_only: bool,
    pub(in crate::router) candidates: Vec<Candidate>,
    pub(in crate::router) level: Level,
    pub(in crate::router) fit: Fit,
}

/// Inputs of a decision.
pub(in crate::router) struct RouteInputs<'a> {
    pub(in crate::router) snapshot: &'a Snapshot,
    pub(in crate::router) query: &'a RouteQuery,
    pub(in crate::router) deferring: &'a Deferring,
    pub(in crate::router) previous: Option<&'a ActiveSet>,
    /// Embeddings of requests that need no tool; empty while they are unavailable.
    pub(in crate::router) background: &'a [Vec<f32>],
    /// Memory of the tenant's past calls; `None` where there is none.
    pub(in crate::router) recall: Option<&'a Recall>,
}

impl RouteInputs<'_> {
    /// Ranks the candidates, cuts them and chooses the active set. `vectors` are the embeddings of the query's intents.
    ///
    /// # Errors
    /// An unknown server filter, or an embedding that does not fit the index.
    pub(in crate::router) fn decide(
        self,
        vectors: Vec<Vec<f32>>,
        stages: &mut Stages,
    ) -> Result<Decision, Error> {
        let Self { snapshot, query, deferring, previous, background, recall } = self;
        let options = &query.options;
        let visibilities = Visibilities::of(snapshot, &query.state);
        let pending = pending::visible(snapshot, &visibilities, &query.state);
        let allowed = Allowed::new(snapshot, visibilities, options, &pending)?;
        stages.next("search");
        let deferral = deferring.decide(snapshot, &allowed, options);
        let level =
            Level::of(snapshot, &query.intents, options, background, allowed.slots.as_ref());
        let rule = options.selection_rule;
        let recall = recall.filter(|_| rule == SelectionRule::Own);
        let embedded = Embedded { rule, recall, level, ..Embedded::new(&query.intents, &vectors) };
        let look_at = look_at(snapshot, options);
        // Ranks more than are reported: candidates found by words must not hide tools that reach a threshold.
        let most = look_at.max(POOL);
        let mut candidates = pool::candidates(snapshot, &embedded, query, &allowed, most)?;
        let words_only = embedded.is_words_only(snapshot);
        let cut = Cut::of(snapshot, &embedded, options, level, &candidates);
        let fit = match level {
            _ if words_only => Fit::Unknown,
            Level::UNREACHABLE => Fit::of(&candidates, |one| cut.passes(one)).or_courtesy(),
            _ => Fit::of(&candidates, |one| cut.passes(one)),
        };
        let choice = Choice::new(snapshot, &allowed, &embedded, query, level);
        let deferred = deferral.decision.deferred;
        let outcome = choice.make(previous, &candidates, deferred);
        report(&mut candidates, look_at);
        let Outcome { active, mut left_out, change } = outcome;
        let unknown = allowed.unknown_exclusions.iter().take(LOOK_BEYOND);
        left_out.extend(unknown.map(|name| LeftOut::named(None, name, RefusalCode::UnknownTool)));
        let left_out = explain::wanted(snapshot, &allowed, &embedded, options, level, left_out)?;
        let deferral = deferral.with_active(active.len());
        let visibilities = allowed.visibilities;
        stages.next("promote");
        Ok(Decision {
            visibilities,
            active,
            left_out,
            change,
            deferral,
            pending,
            vectors,
            words_only,
            candidates,
            level,
            fit,
        })
    }
}

/// Leaves the first `most` candidates; those with a reserved place that are further down take the last of these places.
fn report(candidates: &mut Vec<Candidate>, most: usize) {
    let mut beyond = candidates.split_off(most.min(candidates.len()));
    beyond.retain(|one| one.is_reserved);
    candidates.truncate(most.saturating_sub(beyond.len()));
    candidates.append(&mut beyond);
}

/// Returns the number of candidates to rank.
fn look_at(snapshot: &Snapshot, options: &Options) -> usize {
    let for_caps = if Caps::exist(snapshot) { CAPS_LOOK_BEYOND * options.top_k } else { 0 };
    let to_explain = if options.explain { LOOK_BEYOND } else { 0 };
    options.top_k + options.signature_tail + to_explain + for_caps
}

#[cfg(test)]
mod tests;
