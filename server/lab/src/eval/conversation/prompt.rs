//! Prompts as lists of parts, and the prefix that each shares with the one before it.

use toolgate_core::identity::ToolKey;
use toolgate_routing::shard::tool::Tool;
use toolgate_store::ContentHash;

use super::Layout;

/// Piece of a prompt that is either whole or absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    what: What,
    tokens: u32,
}

/// Identity of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    History,
    Message(usize),
    Answer(usize),
    Schema(ToolKey, ContentHash),
    Summary(ToolKey),
}

impl Part {
    /// Returns the part for the user's message of a turn.
    pub(super) fn message(turn: usize, tokens: u32) -> Self {
        Self { what: What::Message(turn), tokens }
    }

    /// Returns the part for the initial history.
    pub(super) fn history(tokens: u32) -> Self {
        Self { what: What::History, tokens }
    }

    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Returns the part for a turn's call, its result and the answer.
    pub(super) fn answer(turn: usize, tokens: u32) -> Self {
        Self { what: What::Answer(turn), tokens }
    }

    /// Returns the part for a tool's definition.
    pub(super) fn schema(tool: &Tool) -> Self {
        Self { what: What::Schema(tool.key, tool.hash), tokens: tool.schema_tokens }
    }

    /// Returns the part for a tool's line in the summary pool.
    pub(super) fn summary(tool: &Tool) -> Self {
        Self { what: What::Summary(tool.key), tokens: tool.summary_tokens }
    }
}

/// Totals over the prompts of one layout, and the last prompt.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    tokens: u64,
    cached: u64,
    last: Vec<Part>,
    largest_set: usize,
    largest_schemas: u64,
    missed: usize,
}

impl Prompts {
    /// Adds the next prompt, given in pieces. `tools` are the tools among them.
    pub(super) fn push<const N: usize>(&mut self, tools: &[Part], pieces: [&[Part]; N]) {
        self.note(tools);
        let prompt = pieces.concat();
        let same = prompt.iter().zip(&self.last).take_while(|(a, b)| a == b);
        self.cached += same.map(|(part, _)| u64::from(part.tokens)).sum::<u64>();
        self.tokens += prompt.iter().map(|part| u64::from(part.tokens)).sum::<u64>();
        self.last = prompt;
    }

    /// Counts a turn as missed unless it has one of its right tools.
    pub(super) fn miss_unless(&mut self, has_right: bool) {
        self.missed += usize::from(!has_right);
    }

    /// Updates the largest set with the tools of a prompt.
    fn note(&mut self, tools: &[Part]) {
        let tokens = tools.iter().map(|part| u64::from(part.tokens)).sum();
        self.largest_set = self.largest_set.max(tools.len());
        self.largest_schemas = self.largest_schemas.max(tokens);
    }

    /// Returns the totals as a layout with the given name.
    pub(super) fn total(&self, name: &'static str) -> Layout {
        Layout {
            name,
            tokens: self.tokens,
            cached: self.cached,
            tools: self.largest_set,
            schema_tokens: self.largest_schemas,
            missed: self.missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_serves_what_both_begin_with() {
        let part = |turn, tokens| Part::message(turn, tokens);
        let mut prompts = Prompts::default();
        prompts.push(&[], [&[part(0, 10), part(1, 20)]]);
        prompts.push(&[], [&[part(0, 10)], &[part(2, 5), part(1, 20)]]);
        prompts.push(&[], [&[part(0, 10), part(2, 5), part(1, 20), part(3, 1)]]);
        let total = prompts.total("x");
        assert_eq!((total.tokens, total.cached), (30 + 35 + 36, 10 + 35));
        assert!((total.priced() - (56.0 + 4.5)).abs() < 1e-9);
    }
}
