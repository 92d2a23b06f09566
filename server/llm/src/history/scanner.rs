//! Collects the events of a history into a [`History`].

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::events::Event;
use super::reading::found_tools;
use super::{CallStatus, History, SeenCall, snapshot};
use crate::SEARCH_TOOL_NAME;

// The state has at most 64 KiB on the wire. The rest of it is for scopes, milestones and attributes.
const DISCOVERED_BYTES: usize = 24 * 1024;
const CALLS_BYTES: usize = 24 * 1024;
const CALL_OVERHEAD: usize = 16;
const NAME_OVERHEAD: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Scanner {
    found: Vec<String>,
    found_names: HashSet<String>,
    calls: Vec<SeenCall>,
    /// Indexes of calls that may still get an answer, by call ID.
    open: HashMap<String, usize>,
    /// Indexes of calls without an ID that have no answer yet, oldest first.
    anonymous: std::collections::VecDeque<usize>,
    /// Indexes of calls of a snapshot that the messages have not repeated, by call ID.
    restored: HashMap<String, usize>,
    /// Number of the model's next turn.
    next_turn: u32,
    turns: u32,
    model_speaks: bool,
}

impl Scanner {
    /// Adds the content of a snapshot.
    pub(super) fn restore(&mut self, entry: &Value) {
        let restored = snapshot::read(entry);
        for tool in &restored.discovered {
            self.find(tool);
        }
        let known: HashSet<String> = self.calls.iter().map(|call| call.id.clone()).collect();
        for call in restored.calls {
            if !call.id.is_empty() {
                if known.contains(&call.id) {
                    continue;
                }
                self.restored.insert(call.id.clone(), self.calls.len());
                // A second answer of a call that was answered before the compaction could load tools.
                if call.status == CallStatus::Unspecified {
                    self.open.insert(call.id.clone(), self.calls.len());
                }
            }
            self.calls.push(call);
        }
        self.turns = self.turns.max(restored.turns);
        self.next_turn = self.turns;
        self.model_speaks = false;
    }

    pub(super) fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Spoke { model } => {
                if model && !self.model_speaks {
                    self.next_turn = self.next_turn.saturating_add(1);
                    self.turns = self.turns.max(self.next_turn);
                }
                self.model_speaks = model;
            }
            Event::Found { tool } => self.find(tool),
            Event::Referred { key, tool } if self.may_refer(key.as_deref()) => self.find(tool),
            Event::Referred { .. } => {}
            Event::Called { key, tool } => self.call(key, &tool),
            Event::Answered { key, failed, content, may_load } => {
                self.answer(key, failed, may_load.then_some(content));
            }
        }
    }

    pub(super) fn finish(self) -> History {
        let newest = self.found.iter().rev();
        let kept = fitting(newest.map(|name| (name, name.len() + NAME_OVERHEAD)), DISCOVERED_BYTES);
        let discovered = kept.into_iter().rev().cloned().collect();
        History { discovered, calls: newest_calls(&self.calls), turns: self.turns }
    }

    /// Returns true if the answer of a call may refer to tools: the first one of a call of the search tool. Whoever wrote
    /// the answer of another tool, such as a page of the web, could load tools with it.
    fn may_refer(&self, key: Option<&str>) -> bool {
        let open = key.and_then(|key| self.open.get(key));
        open.is_some_and(|call| self.calls[*call].tool == SEARCH_TOOL_NAME)
    }

    fn find(&mut self, tool: &str) {
        if self.found_names.insert(tool.to_owned()) {
            self.found.push(tool.to_owned());
        }
    }

    fn call(&mut self, key: Option<String>, tool: &str) {
        let id = key.unwrap_or_default();
        if let Some(&known) = self.restored.get(&id)
            && self.calls[known].tool == tool
        {
            // The turn of this call was counted before the compaction. Its answer may follow once more.
            self.restored.remove(&id);
            self.open.insert(id, known);
            self.next_turn = self.calls[known].turn.saturating_add(1);
            self.turns = self.turns.max(self.next_turn);
            return;
        }
        // Some providers reuse an ID. With another tool, it is another call.
        if self.open.get(&id).is_some_and(|&open| self.calls[open].tool == tool) {
            return;
        }
        if id.is_empty() {
            self.anonymous.push_back(self.calls.len());
        } else {
            self.open.insert(id.clone(), self.calls.len());
        }
        let turn = self.next_turn.saturating_sub(1);
        let status = CallStatus::Unspecified;
        self.calls.push(SeenCall { tool: tool.to_owned(), status, turn, id });
    }

    /// Notes an answer. `found` is its content, if that may load tools.
    fn answer(&mut self, key: Option<String>, failed: bool, found: Option<&Value>) {
        let answered = match key {
            Some(id) => self.open.remove(&id),
            None => self.anonymous.pop_front(),
        };
        let Some(index) = answered else { return };
        self.calls[index].status = if failed { CallStatus::Failed } else { CallStatus::Succeeded };
        if failed {
            return;
        }
        // The search is not in the catalog; its answer names the tools that it loaded.
        let tool = self.calls[index].tool.clone();
        let tools = if tool == SEARCH_TOOL_NAME {
            found.map(found_tools).unwrap_or_default()
        } else {
            vec![tool]
        };
        for tool in tools {
            self.find(&tool);
        }
    }
}

/// Returns the newest calls that fit. The last success of each tool takes precedence, because preconditions depend on
/// it.
fn newest_calls(calls: &[SeenCall]) -> Vec<SeenCall> {
    let mut succeeded = HashSet::new();
    let (first, others): (Vec<usize>, Vec<usize>) = (0..calls.len()).rev().partition(|&index| {
        calls[index].status == CallStatus::Succeeded && succeeded.insert(&calls[index].tool)
    });
    let order = first.into_iter().chain(others);
    let sizes = order.map(|index| (index, calls[index].tool.len() + CALL_OVERHEAD));
    let mut kept = fitting(sizes, CALLS_BYTES);
    kept.sort_unstable();
    kept.into_iter().map(|index| calls[index].clone()).collect()
}

/// Returns the first items that fit the budget of bytes.
fn fitting<T>(sizes: impl Iterator<Item = (T, usize)>, budget: usize) -> Vec<T> {
    let mut left = budget;
    sizes
        .map_while(|(item, size)| {
            left = left.checked_sub(size)?;
            Some(item)
        })
        .collect()
}
