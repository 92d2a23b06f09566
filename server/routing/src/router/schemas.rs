//! Tools that are requested by name, and the handle that covers them.

use std::sync::Arc;

use crate::gate::handle::{HELD_MAX, Holder, ShownTool, TOOLS_MAX};
use crate::gate::verdict::RefusalCode;
use crate::gate::visibility::{Visibilities, Visibility};
use crate::router::Router;
use crate::router::answers::account;
use crate::router::answers::answer_size::AnswerSize;
use crate::router::answers::explain::{self, Refusal};
use crate::router::aside::aside;
use crate::router::query::Detail;
use crate::router::ranking::rank::FoundBy;
use crate::router::route::{Active, Shown};
use crate::router::selection::choose::Chosen;
use crate::router::selection::left_out::LeftOut;
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;
use toolgate_core::error::Error;
use toolgate_core::state::AgentState;

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
        let mut shown = previous.map_or_else(Shown::default, Shown::from);
        let mut tools = Vec::new();
        let mut left_out = Vec::new();
        let mut size = AnswerSize::new(*message_max, detail);
        for name in names {
            match find(&snapshot, &visibilities, name) {
                Ok(slot) if !size.take(snapshot.tool(slot), false) => {
                    left_out.push(LeftOut::over_size(slot, 0.0));
                }
                Ok(slot) => {
                    let chosen = chosen(slot, show(&mut shown.tools, snapshot.tool(slot), detail));
                    tools.push(account::active(&snapshot, chosen, detail));
                }
                Err(refused) => left_out.push(refused),
            }
        }
        check_room(&shown.tools)?;
        self.warm_schemas(holder.tenant, &snapshot, &tools);
        self.usage.count(holder.tenant, &account::looked_up(&tools));
        let (handle, handle_expires) = self.seal(holder, snapshot.revision, shown);
        let refusals = explain::refusals(&snapshot, &visibilities, left_out);
        Ok(SchemaLookup { snapshot, tools, detail, refusals, handle, handle_expires })
    }
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
