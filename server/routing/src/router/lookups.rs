//! Requests of a conversation other than Route: verdicts on calls, the summary pool, schemas by name.

use std::sync::Arc;
use std::time::Instant;

use crate::gate::calls::Call;
use crate::gate::handle::{ActiveSet, HELD_MAX, Holder, ShownTool, TOOLS_MAX};
use crate::gate::verdict::{RefusalCode, Refused, Verdict};
use crate::gate::visibility::{Visibilities, Visibility};
use crate::memory::{Observation, now_ms};
use crate::router::Router;
use crate::router::answers::account;
use crate::router::answers::answer_size::AnswerSize;
use crate::router::answers::event;
use crate::router::answers::explain::{self, Refusal};
use crate::router::answers::pool::{self, PoolDelta};
use crate::router::aside::aside;
use crate::router::judging::Judging;
use crate::router::query::Detail;
use crate::router::ranking::rank::FoundBy;
use crate::router::route::Active;
use crate::router::selection::choose::Chosen;
use crate::router::selection::left_out::LeftOut;
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;
use crate::usage::Amounts;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::state::AgentState;
use toolgate_store::Revision;

/// Gate request.
#[derive(Debug, Clone)]
pub struct GateQuery {
    /// Handle that Route returned for this turn.
    pub handle: String,
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

/// Request for the summary pool.
#[derive(Debug, Clone, Default)]
pub struct PoolQuery {
    /// State of the agent: its calls so far and its scopes.
    pub state: AgentState,
    /// Revision that the client holds; `None` for the whole pool.
    pub since: Option<Revision>,
    /// True to list names without summaries.
    pub names_only: bool,
    /// True to include the pool as text for a prompt as well.
    pub render: bool,
}

/// Request for tools by name.
#[derive(Debug, Clone)]
pub struct SchemasQuery {
    /// Model-facing names or `server/name`.
    pub names: Vec<String>,
    /// Amount of detail sent for each tool.
    pub detail: Detail,
    /// State of the agent: its calls so far and its scopes.
    pub state: AgentState,
    /// Handle to add the tools to; empty for a new one.
    pub previous: String,
    /// Size limit of the answer in bytes.
    pub message_max: usize,
}

/// Tools found by name.
pub struct SchemaLookup {
    /// Snapshot that all slots refer to.
    pub snapshot: Arc<Snapshot>,
    /// Tools found, in the order of the request.
    pub tools: Vec<Active>,
    /// Amount of detail sent for each tool.
    pub detail: Detail,
    /// Names that could not be returned, with the reasons.
    pub refusals: Vec<Refusal>,
    /// Handle of the active set with these tools added.
    pub handle: String,
    /// Expiry of the handle, in seconds since 1970 (UTC).
    pub handle_expires: u64,
}

impl Router {
    /// Judges whether the calls may run. Counts and logs the verdicts.
    ///
    /// # Errors
    /// An unknown tenant, a revision not reached in time, a store that can't be read, or a snapshot too old for
    /// verdicts. A handle that does not belong to this holder is no error: it refuses every call.
    pub async fn gate(
        &self,
        holder: Holder<'_>,
        query: GateQuery,
        deadline: Option<Instant>,
    ) -> Result<Verdicts, Error> {
        let started = Instant::now();
        let gated = self.judge(holder, query, deadline).await?;
        let counted = counted(&gated.verdicts);
        event::gate(holder.tenant, gated.snapshot.revision, &counted, started.elapsed());
        self.usage.count(holder.tenant, &counted);
        Ok(gated)
    }

    async fn judge(
        &self,
        holder: Holder<'_>,
        query: GateQuery,
        deadline: Option<Instant>,
    ) -> Result<Verdicts, Error> {
        let GateQuery { handle, calls, state, min_revision } = query;
        let snapshot = self.shards.reach(holder.tenant, min_revision, deadline).await?;
        let currency = self.shards.currency(holder.tenant, &snapshot);
        self.shards.freshness().vouch(currency)?;
        let Ok(mut active) = ActiveSet::open(&handle, &self.key, holder) else {
            let message = "The active-set handle is not valid: ask for the tools again.";
            let refused = Box::new(Refused::new(RefusalCode::HandleInvalid, message));
            let verdicts = calls.iter().map(|_| Err(refused.clone())).collect();
            return Ok(Verdicts { snapshot, verdicts });
        };
        let intent_embedding = active.intent_embedding.take();
        let judging = Judging {
            tenant: holder.tenant.clone(),
            snapshot: Arc::clone(&snapshot),
            schemas: Arc::clone(&self.schemas),
            now: self.shards.clock(),
            verdicts: vec![None; calls.len()],
            state,
            active,
            deadline,
            calls,
        };
        let verdicts = judging.verdicts(&self.warmer).await?;
        if let (Some(memory), Some(intent_embedding)) = (&self.memory, intent_embedding) {
            let principal = holder.principal_key(&self.key);
            let at_ms = now_ms();
            for allowed in verdicts.iter().flatten() {
                let tool = snapshot.tool(allowed.slot).id.clone();
                let intent_embedding = intent_embedding.clone();
                memory.observe(
                    holder.tenant,
                    Observation { tool, intent_embedding, principal, at_ms },
                );
            }
        }
        Ok(Verdicts { snapshot, verdicts })
    }

    /// Queues the schemas of shown tools for compilation, before the tools are called.
    pub(in crate::router) fn warm_schemas(
        &self,
        tenant: &TenantId,
        snapshot: &Arc<Snapshot>,
        shown: &[Active],
    ) {
        self.warmer.want(tenant, snapshot, shown.iter().map(|tool| tool.chosen.slot));
    }

    /// Waits until the schemas of all shown tools are compiled. Only for tests: calls do not wait for this.
    pub async fn schemas_are_warm(&self) {
        self.warmer.idle().await;
    }

    /// Returns the number of schemas compiled for Gate since the start.
    #[must_use]
    pub fn schema_compilations(&self) -> u64 {
        self.schemas.compilations()
    }

    /// Returns the summary pool, whole or since a revision, with its snapshot.
    ///
    /// # Errors
    /// An unknown tenant, or a store that can't be read.
    pub async fn summary_pool(
        &self,
        holder: Holder<'_>,
        query: PoolQuery,
    ) -> Result<(Arc<Snapshot>, PoolDelta), Error> {
        let snapshot = self.shards.get(holder.tenant, 0).await?;
        let shard = Arc::clone(&snapshot);
        let read = move || {
            let visibilities = Visibilities::of(&shard, &query.state);
            let mut delta = pool::delta(&shard, &visibilities, query.since);
            if query.names_only {
                delta = delta.with_names_only(&shard, &visibilities);
            }
            Ok(if query.render { delta.with_text(&shard) } else { delta })
        };
        let delta = aside(&snapshot, read).await?;
        Ok((snapshot, delta))
    }

    /// Returns tools by name, and a handle that covers them together with the tools of `previous`.
    ///
    /// # Errors
    /// An unknown tenant, a store that can't be read, a handle that does not belong to this holder, or more tools than
    /// a handle has room for.
    pub async fn schemas(
        &self,
        holder: Holder<'_>,
        query: &SchemasQuery,
    ) -> Result<SchemaLookup, Error> {
        let SchemasQuery { names, detail, state, previous, message_max } = query;
        let detail = *detail;
        let previous = self.previous(holder, previous)?;
        let snapshot = self.shards.get(holder.tenant, 0).await?;
        let shard = Arc::clone(&snapshot);
        let state = state.clone();
        let visibilities = aside(&snapshot, move || Ok(Visibilities::of(&shard, &state))).await?;
        // Kept tools keep the definitions that were shown: only the requested tools are shown with new ones.
        let (mut shown, intent_embedding) =
            previous.map_or_else(Default::default, |set| (set.tools, set.intent_embedding));
        let mut tools = Vec::new();
        let mut left_out = Vec::new();
        let mut size = AnswerSize::new(*message_max, detail);
        for name in names {
            match find(&snapshot, &visibilities, name) {
                Ok(slot) if !size.take(snapshot.tool(slot), false) => {
                    left_out.push(LeftOut::over_size(slot, 0.0));
                }
                Ok(slot) => {
                    let chosen = chosen(slot, show(&mut shown, snapshot.tool(slot), detail));
                    tools.push(account::active(&snapshot, chosen, detail));
                }
                Err(refused) => left_out.push(refused),
            }
        }
        check_room(&shown)?;
        self.warm_schemas(holder.tenant, &snapshot, &tools);
        self.usage.count(holder.tenant, &account::looked_up(&tools));
        let (handle, handle_expires) =
            self.seal(holder, snapshot.revision, shown, intent_embedding);
        let refusals = explain::refusals(&snapshot, &visibilities, left_out);
        Ok(SchemaLookup { snapshot, tools, detail, refusals, handle, handle_expires })
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

fn find(snapshot: &Snapshot, visibilities: &Visibilities, name: &str) -> Result<u32, LeftOut> {
    let slot = snapshot.names.requested(name, &snapshot.tools);
    let visibility = slot.map(|slot| visibilities.tool(snapshot, slot));
    let refused = |slot, code| LeftOut::named(slot, name, code);
    match (slot, visibility) {
        (Some(slot), Some(Visibility::Allowed)) => Ok(slot),
        (Some(_), Some(Visibility::Locked)) => Err(refused(slot, RefusalCode::PreconditionUnmet)),
        _ => Err(refused(None, RefusalCode::UnknownTool)),
    }
}

/// Refuses more tools than a handle can name.
pub(in crate::router) fn check_room(shown: &[ShownTool]) -> Result<(), Error> {
    if shown.len() <= TOOLS_MAX {
        return Ok(());
    }
    let limit = "active set";
    let maximum = TOOLS_MAX as u64;
    let actual = shown.len() as u64;
    Err(Error::LimitExceeded { limit, maximum, actual })
}

/// Adds the tool with its current definition and holds it for the next Route calls. Returns true if this definition was
/// not shown before. A tool that was shown as a signature remains one if `detail` sends no full definition.
pub(in crate::router) fn show(shown: &mut Vec<ShownTool>, tool: &Tool, detail: Detail) -> bool {
    let now = ShownTool::new(tool.key, &tool.hash).held_for(HELD_MAX);
    match shown.iter_mut().find(|before| before.id == now.id) {
        Some(before) => {
            let was_shown = before.is_of(&tool.hash);
            let stays_brief = before.is_signature_of(&tool.hash) && !detail.has_schemas();
            let is_whole = was_shown && !before.is_signature_of(&tool.hash);
            let brief = || ShownTool::by_signature(tool.key, &tool.hash).held_for(HELD_MAX);
            *before = if stays_brief { brief() } else { now };
            !(is_whole || stays_brief)
        }
        None => {
            shown.push(now);
            true
        }
    }
}

fn chosen(slot: u32, newly_promoted: bool) -> Chosen {
    let found_by = FoundBy::Name;
    Chosen {
        slot,
        overlap: 0.0,
        score: 0.0,
        found_by,
        newly_promoted,
        is_brief: false,
        held_for: 0,
    }
}
