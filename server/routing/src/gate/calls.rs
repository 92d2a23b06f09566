//! Checks of calls that a model wants to make. The handle says which tools were shown, the agent's state is checked
//! again, and the arguments are checked against the schema. Any doubt leads to a refusal.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Instant, SystemTime};

use super::envelope::Arguments;
use super::handle::{ActiveSet, ShownTool};
use super::names;
use super::schemas::{Compiled, Schemas};
use super::verdict::{Allowed, RefusalCode, Refused, Verdict};
use super::visibility::{Visibilities, Visibility};
use crate::shard::quarantine::Quarantined;
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;
use toolgate_core::error::Error;
use toolgate_core::identity::{TenantId, ToolKey};
use toolgate_core::schema::Violation;
use toolgate_core::state::AgentState;

/// Maximum model-facing names in one refusal.
const AVAILABLE_MAX: usize = 64;

/// Maximum unknown names of one request for which a similar name is searched.
const SUGGESTIONS_MAX: usize = 4;

/// Maximum characters of an unknown name that a refusal repeats.
const NAME_MAX: usize = 128;

/// Call that a model wants to make.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Tool name as the model wrote it.
    pub tool: String,
    /// Arguments as the model sent them. See [`Arguments`].
    pub arguments: String,
    /// Mistake in the form of the call, for the model; `None` for none. Such a call is refused whatever tool it names.
    pub mistake: Option<String>,
    /// Tag of the definition that the model was shown. Empty if the call has none.
    pub shown_tag: String,
}

/// Input of one Gate request: everything that its verdicts depend on.
pub struct CallCheck<'a> {
    /// Tenant that makes the request.
    pub tenant: &'a TenantId,
    /// Snapshot of the tenant's shard.
    pub snapshot: &'a Snapshot,
    /// Current state of the agent.
    pub state: &'a AgentState,
    /// Content of the handle.
    pub active: &'a ActiveSet,
    /// Cache of compiled schemas.
    pub schemas: &'a Schemas,
    /// Current time, for the expiry of the handle.
    pub now: SystemTime,
    /// Instant after which the caller no longer waits. `None` for no limit.
    pub deadline: Option<Instant>,
}

/// Lookups shared by all calls of one request.
struct Seen<'a> {
    visibilities: Visibilities,
    shown: HashMap<ToolKey, &'a ShownTool>,
    suggestions: Cell<usize>,
}

impl CallCheck<'_> {
    /// Returns the verdicts in the order of the calls. Schemas that are not compiled yet are compiled here.
    ///
    /// # Errors
    /// [`Error::DeadlineExceeded`] if the deadline passes.
    pub fn verdicts(&self, calls: &[Call]) -> Result<Vec<Verdict>, Error> {
        let mut verdicts = vec![None; calls.len()];
        self.judge(calls, &mut verdicts, usize::MAX)?;
        Ok(verdicts.into_iter().flatten().collect())
    }

    /// Judges the calls that have no verdict yet. It starts to compile schemas until those compiled in this call took
    /// `most_units` units of about 100 ns. With 0, it compiles none. Calls whose schemas are still not compiled get no
    /// verdict.
    ///
    /// # Errors
    /// [`Error::DeadlineExceeded`] if the deadline passes.
    pub fn judge(
        &self,
        calls: &[Call],
        verdicts: &mut [Option<Verdict>],
        most_units: usize,
    ) -> Result<(), Error> {
        let left = calls.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_none());
        if self.active.has_expired(self.now) {
            let message =
                "The active set has expired: ask for the tools again, then repeat the call.";
            let refused = Box::new(Refused::new(RefusalCode::HandleExpired, message));
            left.for_each(|(_, verdict)| *verdict = Some(Err(refused.clone())));
            return Ok(());
        }
        let visibilities = Visibilities::of(self.snapshot, self.state);
        let shown = self.active.callable().map(|tool| (tool.id, tool)).collect();
        let suggestions = Cell::new(SUGGESTIONS_MAX);
        let seen = Seen { visibilities, shown, suggestions };
        let mut units = 0;
        for (call, verdict) in left {
            self.must_be_in_time()?;
            *verdict = match self.open(call, &seen) {
                Err(refused) => Some(Err(refused)),
                Ok(slot) => {
                    let schema = self.schema(slot, &mut units, most_units)?;
                    schema.map(|schema| self.check_arguments(slot, &schema, &call.arguments))
                }
            };
        }
        Ok(())
    }

    fn must_be_in_time(&self) -> Result<(), Error> {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        if is_late { Err(Error::DeadlineExceeded) } else { Ok(()) }
    }

    /// Returns the compiled schema of a tool, or `None` if it is not compiled and no units are left.
    fn schema(
        &self,
        slot: u32,
        units: &mut usize,
        most_units: usize,
    ) -> Result<Option<Compiled>, Error> {
        let tool = self.snapshot.tool(slot);
        let kept = self.schemas.kept(self.tenant, tool);
        if kept.is_some() || *units >= most_units {
            return Ok(kept);
        }
        self.must_be_in_time()?;
        let compiled = self.schemas.compile(self.tenant, tool);
        *units = units.saturating_add(compiled.units());
        Ok(Some(compiled))
    }

    /// Returns the slot of the tool that may be called, provided that the arguments are valid.
    fn open(&self, call: &Call, seen: &Seen<'_>) -> Result<u32, Box<Refused>> {
        if let Some(mistake) = &call.mistake {
            return Err(Box::new(Refused::new(RefusalCode::ArgumentsInvalid, mistake.as_str())));
        }
        let slot = self.find(&call.tool, seen)?;
        let tool = self.snapshot.tool(slot);
        match (seen.visibilities.tool(self.snapshot, slot), seen.shown.get(&tool.key)) {
            (Visibility::Hidden, None) => Err(Box::new(self.unknown(&call.tool, seen))),
            (Visibility::Hidden, Some(_)) if seen.visibilities.is_denied(self.snapshot, slot) => {
                Err(Box::new(self.unknown(&call.tool, seen)))
            }
            (Visibility::Hidden, Some(_)) => {
                Err(Box::new(self.locked(slot, RefusalCode::ScopeMissing, seen)))
            }
            (Visibility::Locked, _) => {
                Err(Box::new(self.locked(slot, RefusalCode::PreconditionUnmet, seen)))
            }
            (Visibility::Allowed, None) => Err(Box::new(self.not_available(tool, seen))),
            (Visibility::Allowed, Some(shown)) if !shown.is_of(&tool.hash) => {
                Err(Box::new(Refused { slot: Some(slot), ..changed(tool) }))
            }
            (Visibility::Allowed, Some(_)) => Ok(slot),
        }
    }

    /// Finds the tool by the name as written. If several tools have the same MCP name, the active set decides.
    fn find(&self, name: &str, seen: &Seen<'_>) -> Result<u32, Box<Refused>> {
        // A tool that was denied after it was shown is treated as unregistered.
        let is_shown = |slot: u32| {
            seen.shown.contains_key(&self.snapshot.tool(slot).key)
                && !seen.visibilities.is_denied(self.snapshot, slot)
        };
        let known = |slot| is_shown(slot) || self.is_visible(slot, seen);
        let slots = names::find(self.snapshot, name, known);
        if let [slot] = slots[..] {
            return Ok(slot);
        }
        let shown: Vec<u32> = slots.iter().copied().filter(|slot| is_shown(*slot)).collect();
        match (&shown[..], slots.first()) {
            ([slot], _) => Ok(*slot),
            (_, None) => Err(Box::new(self.absent(name, seen))),
            (_, Some(first)) => Err(Box::new(self.ambiguous(self.snapshot.tool(*first), seen))),
        }
    }

    fn is_visible(&self, slot: u32, seen: &Seen<'_>) -> bool {
        seen.visibilities.tool(self.snapshot, slot) != Visibility::Hidden
    }

    /// Checks the arguments. An allowed call holds the unwrapped arguments if they were sent in an envelope.
    fn check_arguments(&self, slot: u32, schema: &Compiled, sent: &str) -> Verdict {
        let tool = self.snapshot.tool(slot);
        let refused = |message: String| Refused::new(RefusalCode::ArgumentsInvalid, message);
        let schema = schema.schema().map_err(|problem| {
            let message = format!("The schema of {} can't be checked: {problem}", tool.model_name);
            Box::new(refused(message))
        })?;
        let violations = match Arguments::read(sent) {
            Ok(Arguments { value, text }) => match schema.check(&value) {
                Ok(()) => return Ok(Allowed { slot, arguments: text }),
                Err(violations) => violations,
            },
            Err(problem) => vec![Violation { pointer: String::new(), problem }],
        };
        let message = format!(
            "The arguments of {} do not satisfy its schema: correct them and call again.",
            tool.model_name
        );
        let input_schema = tool.definition.sent_schema().to_owned();
        Err(Box::new(Refused { slot: Some(slot), input_schema, violations, ..refused(message) }))
    }

    /// Returns the refusal for a name that no tool has. A quarantined tool is named only to callers who could have seen
    /// it.
    fn absent(&self, name: &str, seen: &Seen<'_>) -> Refused {
        let knows = |tool: &&Quarantined| match seen.visibilities.group(tool.group) {
            Visibility::Allowed | Visibility::Locked => true,
            Visibility::Hidden => {
                seen.shown.contains_key(&tool.key)
                    && !seen.visibilities.denies(self.snapshot, tool.group)
            }
        };
        match self.snapshot.quarantine.named(names::bare(name)).find(knows) {
            Some(tool) => self.quarantined(tool, seen),
            None => self.unknown(name, seen),
        }
    }

    fn quarantined(&self, tool: &Quarantined, seen: &Seen<'_>) -> Refused {
        let message = format!(
            "{} waits for the approval of whoever keeps the catalog and may not run: do without it.",
            tool.model_name
        );
        let available = self.available(seen);
        Refused { available, ..Refused::new(RefusalCode::Quarantined, message) }
    }

    fn unknown(&self, name: &str, seen: &Seen<'_>) -> Refused {
        let shown: String = name.chars().take(NAME_MAX).collect();
        let message = format!("There is no tool {shown:?}.");
        let code = RefusalCode::UnknownTool;
        let available = self.available(seen);
        match self.nearest(name, seen) {
            None => {
                let message = format!("{message} Call one of the available tools.");
                Refused { available, ..Refused::new(code, message) }
            }
            Some(near) => {
                let nearest = near.model_name.to_string();
                let search = format!("select:{nearest}");
                let is_loaded = seen.shown.contains_key(&near.key);
                let what = if is_loaded {
                    "it is loaded: call it".to_owned()
                } else {
                    format!("search for {search:?} first, then call it")
                };
                let message = format!("{message} Did you mean {nearest}? If so, {what}.");
                let search = if is_loaded { String::new() } else { search };
                Refused { available, nearest, search, ..Refused::new(code, message) }
            }
        }
    }

    /// Returns the visible tool with the nearest name. Only for the first few unknown names of a request, because the
    /// search takes a while in a large catalog.
    fn nearest(&self, name: &str, seen: &Seen<'_>) -> Option<&Tool> {
        let left = seen.suggestions.get().checked_sub(1)?;
        seen.suggestions.set(left);
        let near = names::suggest(self.snapshot, name, |slot| self.is_visible(slot, seen));
        near.map(|slot| self.snapshot.tool(slot))
    }

    fn ambiguous(&self, one: &Tool, seen: &Seen<'_>) -> Refused {
        let name = one.id.name.as_str();
        let search = format!("select:{name}");
        let message = format!(
            "Several MCP servers have a tool {name:?}: search for {search:?}, then call one by its whole name."
        );
        let available = self.available(seen);
        Refused { available, search, ..Refused::new(RefusalCode::ToolNotAvailable, message) }
    }

    fn not_available(&self, tool: &Tool, seen: &Seen<'_>) -> Refused {
        let search = format!("select:{}", tool.model_name);
        let message = format!(
            "The schema of {} was not loaded: search for {search:?} first, then call it.",
            tool.model_name
        );
        let available = self.available(seen);
        Refused { available, search, ..Refused::new(RefusalCode::ToolNotAvailable, message) }
    }

    fn locked(&self, slot: u32, code: RefusalCode, seen: &Seen<'_>) -> Refused {
        let tool = self.snapshot.tool(slot);
        let unlock = seen.visibilities.unlock(self.snapshot, slot);
        let message =
            format!("{} may not run yet: needs {}.", tool.model_name, unlock.join(" and "));
        Refused { unlock, ..Refused::new(code, message) }
    }

    fn available(&self, seen: &Seen<'_>) -> Vec<String> {
        let slots = self.active.callable().filter_map(|t| self.snapshot.names.key(&t.id));
        let is_open =
            |slot: &u32| seen.visibilities.tool(self.snapshot, *slot) == Visibility::Allowed;
        let open = slots.filter(is_open);
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

#[cfg(test)]
mod tests;
