//! Limits that apply to every tool, even to always-loaded ones: tokens of always-loaded tools, places of untrusted
//! tools, bytes of the answer.

use super::Choice;
use crate::gate::verdict::RefusalCode;
use crate::router::ranking::cut::Shortfall;
use crate::router::ranking::rank::{Candidate, FoundBy};
use crate::router::selection::left_out::LeftOut;

/// Configuration key of the limit on the tokens of always-loaded tools.
const ALWAYS_LOAD_LIMIT: &str = "router.always_load_tokens";

impl Choice<'_> {
    /// Promotes always-loaded tools. Their total tokens are limited, and untrusted ones get no more places than by
    /// rank: a flag must not push out everything else.
    pub(super) fn always_load(&mut self) {
        // Always-loaded tools take no places of the ranking, so the number of places does not limit them.
        let mut caps = self.caps(usize::MAX);
        let mut left = self.options.always_load_tokens;
        for slot in self.snapshot.always_load.iter().copied() {
            if !self.allowed.contains(slot) {
                continue;
            }
            let tool = self.snapshot.tool(slot);
            let is_new = !self.set.contains(slot);
            let cap = caps.reached(self.snapshot, slot).filter(|_| is_new && tool.untrusted);
            if cap.is_some() {
                self.leave_beyond(slot, RefusalCode::BeyondCap, cap);
            } else if let Some(rest) = left.checked_sub(tool.schema_tokens) {
                left = rest;
                if is_new {
                    caps.count(self.snapshot, slot);
                }
                self.promote(slot, FoundBy::AlwaysLoad);
            } else if is_new {
                self.leave_over(slot, ALWAYS_LOAD_LIMIT);
            }
        }
    }

    /// Leaves out a tool that does not fit a budget or a limit of the configuration. A limit is reported once per tool.
    pub(super) fn leave_over(&mut self, slot: u32, limit: impl Into<Option<&'static str>>) {
        self.leave_beyond(slot, RefusalCode::OverTokenBudget, limit.into());
    }

    fn leave_beyond(&mut self, slot: u32, code: RefusalCode, limit: Option<&'static str>) {
        if limit.is_some() && !self.over_limit.insert(slot) {
            return;
        }
        let (overlap, _) = self.embedded.score_of(self.snapshot, slot);
        self.left_out.push(LeftOut {
            slot: Some(slot),
            asked_for: String::new(),
            code,
            overlap,
            limit,
            shortfall: None,
        });
    }

    /// Leaves out a candidate with the reason why it does not pass the cut.
    pub(super) fn leave_below(&mut self, candidate: &Candidate, shortfall: Shortfall) {
        let before = self.left_out.len();
        self.leave_out(std::slice::from_ref(candidate), shortfall.code());
        for tool in &mut self.left_out[before..] {
            tool.shortfall = Some(shortfall);
        }
    }
}
