//! May these calls run? The handle says what was shown, the state is asked again, and arguments are held
//! against the schema. Every doubt refuses.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use quick_cache::sync::Cache;

use super::handle::{ActiveSet, ShownTool};
use super::standing::{Standing, Standings};
use super::verdict::{RefusalCode, Refused, Verdict};
use crate::identity::{TenantId, ToolKey};
use crate::schema::ArgumentSchema;
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;
use crate::state::AgentState;
use crate::store::ContentHash;

/// Compiled schemas that are kept, over all tenants.
const SCHEMAS_KEPT: usize = 20_000;

/// Model-facing names in one refusal, at most.
const AVAILABLE_MAX: usize = 64;

/// One call that a model asks for.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name as the model wrote it.
    pub tool: String,
    /// The arguments as JSON text; empty means `{}`.
    pub arguments: String,
}

/// Compiled input schemas by tenant and definition.
pub struct Schemas(Cache<(TenantId, ContentHash), Arc<ArgumentSchema>>);

impl Default for Schemas {
    fn default() -> Self {
        Self(Cache::new(SCHEMAS_KEPT))
    }
}

impl Schemas {
    fn get(&self, tenant: &TenantId, tool: &Tool) -> Result<Arc<ArgumentSchema>, String> {
        let key = (tenant.clone(), tool.hash);
        self.0.get_or_insert_with(&key, || {
            ArgumentSchema::compile(tool.definition.input_schema()).map(Arc::new)
        })
    }
}

/// One Gate call: everything that its verdicts depend on.
pub struct CallCheck<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The tenant's shard.
    pub snapshot: &'a Snapshot,
    /// The agent's state now.
    pub state: &'a AgentState,
    /// What the handle says.
    pub active: &'a ActiveSet,
    /// Compiled schemas.
    pub schemas: &'a Schemas,
    /// The time.
    pub now: SystemTime,
}

impl CallCheck<'_> {
    /// The verdicts, in the calls' order.
    #[must_use]
    pub fn verdicts(&self, calls: &[Call]) -> Vec<Verdict> {
        if self.active.has_expired(self.now) {
            let message =
                "The active set has expired: ask for the tools again, then repeat the call.";
            let refused = Box::new(Refused::new(RefusalCode::HandleExpired, message));
            return calls.iter().map(|_| Err(refused.clone())).collect();
        }
        let standings = Standings::of(self.snapshot, self.state);
        let shown: HashMap<ToolKey, &ShownTool> =
            self.active.tools.iter().map(|tool| (tool.id, tool)).collect();
        let one = |call: &Call| self.verdict(call, &standings, &shown);
        calls.iter().map(one).collect()
    }

    fn verdict(
        &self,
        call: &Call,
        standings: &Standings,
        shown: &HashMap<ToolKey, &ShownTool>,
    ) -> Verdict {
        let Some(slot) = self.find(&call.tool, shown) else {
            return Err(Box::new(self.unknown(&call.tool, standings)));
        };
        let tool = self.snapshot.tool(slot);
        let was_shown = shown.get(&tool.key);
        match (standings.tool(self.snapshot, slot), was_shown) {
            (Standing::Hidden, None) => {
                return Err(Box::new(self.unknown(&call.tool, standings)));
            }
            (Standing::Hidden, Some(_)) if standings.is_denied(self.snapshot, slot) => {
                return Err(Box::new(self.unknown(&call.tool, standings)));
            }
            (Standing::Hidden, Some(_)) => {
                return Err(Box::new(self.locked(slot, RefusalCode::ScopeMissing, standings)));
            }
            (Standing::Locked, _) => {
                return Err(Box::new(self.locked(slot, RefusalCode::PreconditionUnmet, standings)));
            }
            (Standing::Open, None) => return Err(Box::new(self.not_available(tool, standings))),
            (Standing::Open, Some(shown)) if **shown != ShownTool::new(tool.key, &tool.hash) => {
                return Err(Box::new(changed(tool)));
            }
            (Standing::Open, Some(_)) => {}
        }
        self.check_arguments(tool, &call.arguments).map(|()| slot)
    }

    /// By the name the model sees; by the MCP name when the active set has one tool of it.
    fn find(&self, name: &str, shown: &HashMap<ToolKey, &ShownTool>) -> Option<u32> {
        let names = &self.snapshot.names;
        names.model_name(name).or_else(|| {
            let is_shown = |slot: &&u32| shown.contains_key(&self.snapshot.tool(**slot).key);
            let mut of_that_name = names.mcp_name(name).iter().filter(is_shown);
            let first = of_that_name.next()?;
            of_that_name.next().is_none().then_some(*first)
        })
    }

    fn check_arguments(&self, tool: &Tool, arguments: &str) -> Result<(), Box<Refused>> {
        let refused = |message: String| Refused::new(RefusalCode::ArgumentsInvalid, message);
        let schema = self.schemas.get(self.tenant, tool).map_err(|problem| {
            Box::new(refused(format!(
                "The schema of {} can't be checked: {problem}",
                tool.model_name
            )))
        })?;
        schema.check(arguments).map_err(|violations| {
            Box::new(Refused {
                input_schema: tool.definition.input_schema().to_owned(),
                violations,
                ..refused(format!(
                    "The arguments of {} do not satisfy its schema: correct them and call again.",
                    tool.model_name
                ))
            })
        })
    }

    fn unknown(&self, name: &str, standings: &Standings) -> Refused {
        let name: String = name.chars().take(128).collect();
        let message = format!("There is no tool {name:?}. Call one of the available tools.");
        Refused {
            available: self.available(standings),
            ..Refused::new(RefusalCode::UnknownTool, message)
        }
    }

    fn not_available(&self, tool: &Tool, standings: &Standings) -> Refused {
        let search = format!("select:{}", tool.model_name);
        let message = format!(
            "{} is not loaded: search for {search:?} first, then call it.",
            tool.model_name
        );
        Refused {
            available: self.available(standings),
            search,
            ..Refused::new(RefusalCode::ToolNotAvailable, message)
        }
    }

    fn locked(&self, slot: u32, code: RefusalCode, standings: &Standings) -> Refused {
        let tool = self.snapshot.tool(slot);
        let unlock = standings.unlock(self.snapshot, slot);
        let message =
            format!("{} may not run yet: needs {}.", tool.model_name, unlock.join(" and "));
        Refused { unlock, ..Refused::new(code, message) }
    }

    fn available(&self, standings: &Standings) -> Vec<String> {
        let slots = self.active.tools.iter().filter_map(|t| self.snapshot.names.key(&t.id));
        let open = slots.filter(|slot| standings.tool(self.snapshot, *slot) == Standing::Open);
        open.map(|slot| self.snapshot.tool(slot).model_name.to_string())
            .take(AVAILABLE_MAX)
            .collect()
    }
}

fn changed(tool: &Tool) -> Refused {
    let message = format!(
        "The definition of {} changed since it was shown: ask for the tools again, read it, and call \
         it anew.",
        tool.model_name
    );
    Refused {
        search: format!("select:{}", tool.model_name),
        ..Refused::new(RefusalCode::SchemaChanged, message)
    }
}
