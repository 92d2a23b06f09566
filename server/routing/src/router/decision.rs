//! Decision of one Route call: gate, deferral, search and choice. It does no I/O and depends only on its inputs and the
//! clock. It is the whole cost of a call once its intents are embedded.

use super::allow::Allowed;
use super::caps::Caps;
use super::choose::{Choice, Chosen, Outcome};
use super::continuity::Change;
use super::cut::Cut;
use super::deferring::{Deferral, Deferring};
use super::explain::{self, LOOK_BEYOND};
use super::fit::Fit;
use super::fuse::POOL;
use super::left_out::LeftOut;
use super::level::Level;
use super::pending;
use super::query::{Options, RouteQuery};
use super::rank::{Candidate, Embedded};
use super::recall::Recall;
use super::recent;
use super::stages::Stages;
use crate::gate::handle::ActiveSet;
use crate::gate::standing::Standings;
use crate::gate::verdict::RefusalCode;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;

/// Multiple of `top_k` that is ranked in addition when the policy's caps may leave some candidates out.
const CAPS_LOOK_BEYOND: usize = 4;

/// Result of a decision, before anything is rendered.
pub(super) struct Decision {
    pub(super) standings: Standings,
    pub(super) active: Vec<Chosen>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) change: Change,
    pub(super) deferral: Deferral,
    pub(super) pending: Vec<String>,
    pub(super) vectors: Vec<Vec<f32>>,
    pub(super) words_only: bool,
    pub(super) candidates: Vec<Candidate>,
    pub(super) level: Level,
    pub(super) fit: Fit,
}

/// Inputs of a decision.
pub(super) struct Case<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) query: &'a RouteQuery,
    pub(super) deferring: &'a Deferring,
    pub(super) previous: Option<&'a ActiveSet>,
    /// Embeddings of requests that need no tool; empty while they are unavailable.
    pub(super) background: &'a [Vec<f32>],
    /// Memory of the tenant's past calls; `None` where there is none.
    pub(super) recall: Option<&'a Recall>,
}

impl Case<'_> {
    /// Ranks the candidates, cuts them and chooses the active set. `vectors` are the embeddings of the query's intents.
    ///
    /// # Errors
    /// An unknown server filter, or an embedding that does not fit the index.
    pub(super) fn decide(
        self,
        vectors: Vec<Vec<f32>>,
        stages: &mut Stages,
    ) -> Result<Decision, Error> {
        let Self { snapshot, query, deferring, previous, background, recall } = self;
        let options = &query.options;
        let standings = Standings::of(snapshot, &query.state);
        let pending = pending::visible(snapshot, &standings, &query.state);
        let allowed = Allowed::new(snapshot, standings, options, &pending)?;
        stages.next("search");
        let deferral = deferring.decide(snapshot, &allowed, options);
        let asked = (&*query.intents, options);
        let level = Level::of(snapshot, asked, background, allowed.slots.as_ref());
        let embedded = Embedded { recall, level, ..Embedded::new(&query.intents, &vectors) };
        let look_at = look_at(snapshot, options);
        // Ranks more than are reported: candidates found by words must not hide tools that reach a threshold.
        let mut candidates = embedded.rank(snapshot, look_at.max(POOL), allowed.slots.as_ref())?;
        recent::note(snapshot, &query.state, &mut candidates);
        recent::lean(snapshot, &query.state, &mut candidates);
        let words_only = embedded.is_words_only(snapshot);
        let cut = Cut::of(snapshot, (&embedded, options), level, &candidates);
        let fit =
            if words_only { Fit::Unknown } else { Fit::of(&candidates, |one| cut.passes(one)) };
        let choice = Choice::new(snapshot, &allowed, &embedded, query, level);
        let deferred = deferral.decision.deferred;
        let outcome = choice.make(previous, &candidates, deferred);
        candidates.truncate(look_at);
        let Outcome { active, mut left_out, change } = outcome;
        let unknown = allowed.unknown_exclusions.iter().take(LOOK_BEYOND);
        left_out.extend(unknown.map(|name| LeftOut::named(None, name, RefusalCode::UnknownTool)));
        let left_out = explain::wanted(snapshot, &allowed, &embedded, options, level, left_out)?;
        let deferral = deferral.with_active(active.len());
        let standings = allowed.standings;
        stages.next("promote");
        Ok(Decision {
            standings,
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

/// Returns the number of candidates to rank.
fn look_at(snapshot: &Snapshot, options: &Options) -> usize {
    let for_caps = if Caps::exist(snapshot) { CAPS_LOOK_BEYOND * options.top_k } else { 0 };
    let to_explain = if options.explain { LOOK_BEYOND } else { 0 };
    options.top_k + options.signature_tail + to_explain + for_caps
}
