//! Methods of putting tools into prompts, turn by turn.

use std::collections::HashMap;

use super::bed::{Bed, Rule};
use super::cli_lazy::{CommandLine, Seen};
use super::paper::PRUNED_TO;
use super::tally::Sent;
use super::tasks::{Task, Turn};
use crate::conversations::{Piece, Places};
use toolgate_core::error::Error;
use toolgate_routing::gate::handle::ActiveSet;

/// Method of putting tools into prompts.
pub(super) trait Method {
    /// Starts a new conversation.
    fn begin(&mut self) {}

    /// Returns the tool part of a turn's prompt.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective.
    fn turn(&mut self, turn: &Turn) -> Result<Sent, Error>;
}

/// Method that sends the same definitions on every turn.
pub(super) struct Fixed<'a, 'e> {
    bed: &'a Bed<'e>,
    slots: Vec<u32>,
    tokens: u64,
    /// Tokens of the summary pool, if it is sent as well.
    pool: Option<u64>,
}

impl<'a, 'e> Fixed<'a, 'e> {
    /// Sends all definitions.
    pub(super) fn full(bed: &'a Bed<'e>) -> Self {
        Self::of(bed, bed.all())
    }

    /// Sends no definition.
    pub(super) fn none(bed: &'a Bed<'e>) -> Self {
        Self::of(bed, Vec::new())
    }

    /// Sends the summary pool as well. The definitions then count as on demand, as those of phase 2 do.
    pub(super) fn with_pool(self) -> Self {
        Self { pool: Some(self.bed.pool_tokens()), ..self }
    }

    /// Sends the 30 tools that these tasks need most often. No curator could choose better.
    pub(super) fn pruned(bed: &'a Bed<'e>, tasks: &[Task]) -> Self {
        let mut uses: HashMap<u32, usize> = HashMap::new();
        let needs = tasks.iter().flatten().flat_map(|turn| &turn.needs);
        for slot in needs.filter_map(|name| bed.slot(name)) {
            *uses.entry(slot).or_default() += 1;
        }
        let mut slots = bed.all();
        slots.sort_by_key(|slot| (std::cmp::Reverse(uses.get(slot).copied()), *slot));
        slots.truncate(PRUNED_TO);
        Self::of(bed, slots)
    }

    fn of(bed: &'a Bed<'e>, slots: Vec<u32>) -> Self {
        let tokens = bed.schema_tokens(&slots);
        Self { bed, slots, tokens, pool: None }
    }
}

impl Method for Fixed<'_, '_> {
    fn turn(&mut self, turn: &Turn) -> Result<Sent, Error> {
        let found = found(self.bed, turn, &self.slots);
        let all = self.tokens + self.pool.unwrap_or(0);
        let places = Places { first: vec![piece("standing", all)], ..Places::default() };
        let tools = self.slots.len();
        let sent = Sent { standing: self.tokens, on_demand: 0, tools, found, places };
        Ok(match self.pool {
            Some(pool) => Sent { standing: pool, on_demand: self.tokens, ..sent },
            None => sent,
        })
    }
}

/// Method that chooses definitions for each turn.
pub(super) struct Routed<'a, 'e> {
    bed: &'a Bed<'e>,
    rule: Rule,
    /// Tokens of the summary pool; `None` if it is not sent.
    pool: Option<u64>,
    /// Active set of the preceding turn, if the conversation keeps its set.
    shown: Option<ActiveSet>,
    keeps: bool,
}

impl<'a, 'e> Routed<'a, 'e> {
    /// Sends the summary pool before all messages, and this turn's definitions directly before its message.
    pub(super) fn new(bed: &'a Bed<'e>, rule: Rule) -> Self {
        Self { bed, rule, pool: Some(bed.pool_tokens()), shown: None, keeps: false }
    }

    /// Leaves out the summary pool, and sends this turn's definitions before all messages.
    pub(super) fn without_pool(self) -> Self {
        Self { pool: None, ..self }
    }

    /// Passes the handle of the preceding turn on, so that tools stay within the size limit of a set.
    pub(super) fn with_handle(self) -> Self {
        Self { keeps: true, ..self }
    }
}

impl Method for Routed<'_, '_> {
    fn begin(&mut self) {
        self.shown = None;
    }

    fn turn(&mut self, turn: &Turn) -> Result<Sent, Error> {
        let slots = self.bed.active(turn, &self.rule, self.shown.as_ref())?;
        let definitions = slots.iter().map(|slot| {
            let tool = self.bed.snapshot.tool(*slot);
            Piece::new(&tool.model_name, tool.schema_tokens)
        });
        let definitions: Vec<Piece> = definitions.collect();
        let places = match self.pool {
            Some(pool) => {
                Places { first: vec![piece("pool", pool)], last: definitions, ..Places::default() }
            }
            None => Places { first: definitions, ..Places::default() },
        };
        let sent = Sent {
            standing: self.pool.unwrap_or(0),
            on_demand: self.bed.schema_tokens(&slots),
            tools: slots.len(),
            found: found(self.bed, turn, &slots),
            places,
        };
        if self.keeps {
            self.shown = Some(self.bed.shown(&slots));
        }
        Ok(sent)
    }
}

/// Method in which the model asks a command for tools.
pub(super) struct CliLazy<'a, 'e> {
    bed: &'a Bed<'e>,
    line: CommandLine,
    seen: Seen,
}

impl<'a, 'e> CliLazy<'a, 'e> {
    /// Counts the tokens of the command's output.
    pub(super) fn new(bed: &'a Bed<'e>) -> Self {
        Self { bed, line: CommandLine::new(bed), seen: Seen::default() }
    }
}

impl Method for CliLazy<'_, '_> {
    fn begin(&mut self) {
        self.seen = Seen::default();
    }

    fn turn(&mut self, turn: &Turn) -> Result<Sent, Error> {
        let slots: Vec<u32> = turn.needs.iter().filter_map(|name| self.bed.slot(name)).collect();
        let prompt = self.line.prompt();
        let places = Places {
            first: vec![Piece::new("prompt", prompt)],
            read: self.seen.look(&self.line, &slots),
            ..Places::default()
        };
        Ok(Sent {
            standing: u64::from(prompt),
            on_demand: self.seen.tokens(),
            tools: self.seen.tools(),
            found: (slots.len(), turn.needs.len()),
            places,
        })
    }
}

fn piece(name: &str, tokens: u64) -> Piece {
    Piece::new(name, u32::try_from(tokens).unwrap_or(u32::MAX))
}

/// Returns the number of needed tools that are among the slots, and the number of all needed tools.
fn found(bed: &Bed<'_>, turn: &Turn, slots: &[u32]) -> (usize, usize) {
    let is_there = |name: &&String| bed.slot(name).is_some_and(|slot| slots.contains(&slot));
    (turn.needs.iter().filter(is_there).count(), turn.needs.len())
}
