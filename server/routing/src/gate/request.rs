//! Gate requests: the calls that a model wants to make are judged, and the verdicts counted, logged and remembered.

use std::sync::Arc;
use std::time::Instant;

use super::calls::Call;
use super::event;
use super::handle::{ActiveSet, Holder};
use super::judging::Judging;
use super::key::HandleKey;
use super::shown::{self, Evidence, TaggedCalls};
use super::verdict::{RefusalCode, Refused, Verdict};
use super::warmer::Warmer;
use crate::memory::{Memory, Observation, now_ms};
use crate::shard::shards::Shards;
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;
use crate::usage::{Amounts, Ledger};
use toolgate_core::error::Error;
use toolgate_core::quantized_embedding::QuantizedEmbedding;
use toolgate_core::state::AgentState;
use toolgate_store::Revision;

/// Gate request.
#[derive(Debug, Clone)]
pub struct GateQuery {
    /// Evidence of the tools that the model was shown.
    pub evidence: Evidence,
    /// Handle whose tools, where they are called, are remembered for its intent; empty for none. It is evidence of nothing.
    /// Read if `evidence` is no handle.
    pub intent_handle: String,
    /// Calls that the model wants to make.
    pub calls: Vec<Call>,
    /// Current state of the agent.
    pub state: AgentState,
    /// Minimum revision that the answer must be based on.
    pub min_revision: Revision,
}

/// Verdicts of one Gate call.
pub struct Verdicts {
    /// Snapshot that all slots refer to.
    pub snapshot: Arc<Snapshot>,
    /// Verdicts, one per call, in the order of the calls.
    pub verdicts: Vec<Verdict>,
}

/// Gate for the calls of all tenants.
pub struct Gate {
    shards: Arc<Shards>,
    usage: Arc<Ledger>,
    key: HandleKey,
    warmer: Arc<Warmer>,
    memory: Option<Arc<Memory>>,
}

impl Gate {
    /// Creates a gate over `shards` that counts in `usage`. It accepts handles signed with `key`, and finds compiled
    /// schemas in `warmer`, or has them compiled there.
    #[must_use]
    pub fn new(
        shards: Arc<Shards>,
        usage: Arc<Ledger>,
        key: HandleKey,
        warmer: Arc<Warmer>,
    ) -> Self {
        Self { shards, usage, key, warmer, memory: None }
    }

    /// Returns the same gate, with a memory of the tools that were called for each intent.
    #[must_use]
    pub fn with_memory(self, memory: Arc<Memory>) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Judges whether the calls may run. Counts and logs the verdicts.
    ///
    /// # Errors
    /// An unknown tenant, a revision not reached in time, a store that can't be read, or a snapshot too old for
    /// verdicts. A handle that does not belong to this holder is no error: it refuses every call.
    pub async fn judge(
        &self,
        holder: Holder<'_>,
        query: GateQuery,
        deadline: Option<Instant>,
    ) -> Result<Verdicts, Error> {
        let started = Instant::now();
        let judged = self.verdicts(holder, query, deadline).await?;
        let counted = counted(&judged.verdicts);
        event::log(holder.tenant, judged.snapshot.revision, &counted, started.elapsed());
        self.usage.count(holder.tenant, &counted);
        let allowed = judged.verdicts.iter().flatten();
        let called = allowed.map(|allowed| judged.snapshot.tool(allowed.slot).key);
        self.usage.called(holder.tenant, holder.principal, called);
        Ok(judged)
    }

    /// Returns the tag that proves that a model was shown this definition: 6 characters, valid today and tomorrow (UTC).
    #[must_use]
    pub fn shown_tag(&self, holder: Holder<'_>, tool: &Tool) -> String {
        shown::tag(&self.key, holder, tool, self.shards.clock())
    }

    /// Waits until the schemas of all shown tools are compiled. Only for tests: calls do not wait for this.
    pub async fn schemas_are_warm(&self) {
        self.warmer.idle().await;
    }

    /// Returns the number of schemas compiled since the start.
    #[must_use]
    pub fn schema_compilations(&self) -> u64 {
        self.warmer.schemas().compilations()
    }

    async fn verdicts(
        &self,
        holder: Holder<'_>,
        query: GateQuery,
        deadline: Option<Instant>,
    ) -> Result<Verdicts, Error> {
        let GateQuery { evidence, intent_handle, calls, state, min_revision } = query;
        let snapshot = self.shards.reach(holder.tenant, min_revision, deadline).await?;
        let currency = self.shards.currency(holder.tenant, &snapshot);
        self.shards.freshness().vouch(currency)?;
        let tagged = TaggedCalls {
            snapshot: &snapshot,
            state: &state,
            calls: &calls,
            key: &self.key,
            holder,
            now: self.shards.clock(),
            is_strict: matches!(evidence, Evidence::Tags),
        };
        let searched = match evidence {
            Evidence::Handle(_) => None,
            Evidence::Tags | Evidence::Catalog => self.searched(holder, &intent_handle),
        };
        let active = match evidence {
            Evidence::Handle(handle) => ActiveSet::open(&handle, &self.key, holder),
            Evidence::Tags | Evidence::Catalog => Ok(tagged.active_set()),
        };
        let Ok(mut active) = active else {
            let message = "The active-set handle is not valid: ask for the tools again.";
            let refused = Box::new(Refused::new(RefusalCode::HandleInvalid, message));
            let verdicts = calls.iter().map(|_| Err(refused.clone())).collect();
            return Ok(Verdicts { snapshot, verdicts });
        };
        let intent_embedding = active.intent_embedding.take();
        let judging = Judging {
            tenant: holder.tenant.clone(),
            snapshot: Arc::clone(&snapshot),
            now: self.shards.clock(),
            verdicts: vec![None; calls.len()],
            state,
            active,
            deadline,
            calls,
        };
        let verdicts = judging.verdicts(&self.warmer).await?;
        let judged = Verdicts { snapshot, verdicts };
        if let Some(intent) = &intent_embedding {
            self.remember(holder, &judged, intent, |_any| true);
        }
        if let Some(ActiveSet { tools, intent_embedding: Some(intent), .. }) = &searched {
            let is_found = |tool: &Tool| tools.iter().any(|found| found.id == tool.key);
            self.remember(holder, &judged, intent, is_found);
        }
        Ok(judged)
    }

    /// Returns the active set of a handle whose calls are to be remembered; `None` if it is not this holder's, or has expired.
    fn searched(&self, holder: Holder<'_>, handle: &str) -> Option<ActiveSet> {
        if handle.is_empty() || self.memory.is_none() {
            return None;
        }
        let set = ActiveSet::open(handle, &self.key, holder).ok()?;
        (!set.has_expired(self.shards.clock())).then_some(set)
    }

    /// Remembers the allowed calls for the intent that the tools were chosen for, where calls are remembered, and the tools are
    /// those that it was for.
    fn remember(
        &self,
        holder: Holder<'_>,
        judged: &Verdicts,
        intent: &QuantizedEmbedding,
        is_for: impl Fn(&Tool) -> bool,
    ) {
        let Some(memory) = &self.memory else { return };
        let principal = holder.principal_key(&self.key);
        let at_ms = now_ms();
        let called = judged.verdicts.iter().flatten();
        for tool in called.map(|allowed| judged.snapshot.tool(allowed.slot)) {
            if !is_for(tool) {
                continue;
            }
            let tool = tool.id.clone();
            let intent_embedding = intent.clone();
            memory.observe(holder.tenant, Observation { tool, intent_embedding, principal, at_ms });
        }
    }
}

/// Returns the verdicts as amounts for the ledger.
fn counted(verdicts: &[Verdict]) -> Amounts {
    let mut counted = Amounts::default();
    for verdict in verdicts {
        match verdict {
            Ok(_) => counted.allowed_calls += 1,
            Err(refused) => *counted.refused.entry(refused.code.name().into()).or_default() += 1,
        }
    }
    counted
}
