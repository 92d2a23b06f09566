//! Choice of all tools, for turns in which nothing is deferred.

use super::Choice;
use super::ranked::Ranked;
use crate::gate::handle::TOOLS_MAX;
use crate::router::ranking::rank::FoundBy;

/// Maximum bytes of definitions in one answer where nothing is deferred: clients refuse messages above 4 MiB.
const BYTES_MAX: usize = 3 << 20;

impl Choice<'_> {
    /// Chooses every allowed tool, in the catalog's order, which is the same for every intent. If not all of them have
    /// room, the best go first. The policy's caps apply only to choosing by rank.
    pub(super) fn all(&mut self, ranked: &Ranked) {
        let slots = || (0u32..).take(self.snapshot.tools.len());
        let slots: Vec<u32> = slots().filter(|slot| self.allowed.contains(*slot)).collect();
        let bytes = |slot: &u32| self.snapshot.tool(*slot).definition.text().len();
        let all_fit =
            slots.len() <= TOOLS_MAX && slots.iter().map(bytes).sum::<usize>() <= BYTES_MAX;
        if self.options.schema_token_budget.is_some() || !all_fit {
            self.rank(ranked, false);
        }
        let mut left = BYTES_MAX;
        for slot in slots {
            if let Some(rest) = left.checked_sub(bytes(&slot)) {
                left = rest;
                // The number of tools without room is reported once, not tool by tool.
                if self.set.contains(slot) || self.set.has_bytes(slot, false) {
                    self.promote(slot, FoundBy::NotDeferred);
                }
            }
        }
    }
}
