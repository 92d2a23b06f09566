//! Prompts as lists of parts, and what one has in common with the beginning of the one before.

use toolgate_core::identity::ToolKey;
use toolgate_routing::shard::tool::Tool;
use toolgate_store::ContentHash;

use super::Layout;

/// A piece of a prompt that is there whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    what: What,
    tokens: u32,
}

/// What tells parts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    History,
    Message(usize),
    Answer(usize),
    Schema(ToolKey, ContentHash),
    Summary(ToolKey),
}

impl Part {
    /// The user's message of a turn.
    pub(super) fn message(turn: usize, tokens: u32) -> Self {
        Self { what: What::Message(turn), tokens }
    }

    /// What the conversation began with.
    pub(super) fn history(tokens: u32) -> Self {
        Self { what: What::History, tokens }
    }

    /// Tokens of it.
    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// What came back in a turn.
    pub(super) fn answer(turn: usize, tokens: u32) -> Self {
        Self { what: What::Answer(turn), tokens }
    }

    /// A tool's definition.
    pub(super) fn schema(tool: &Tool) -> Self {
        Self { what: What::Schema(tool.key, tool.hash), tokens: tool.schema_tokens }
    }

    /// A tool's line of the summary pool.
    pub(super) fn summary(tool: &Tool) -> Self {
        Self { what: What::Summary(tool.key), tokens: tool.summary_tokens }
    }
}

/// The prompts of one layout: their sums, and the last of them.
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
    /// The next prompt, in pieces, and the tools among them.
    pub(super) fn push<const N: usize>(&mut self, tools: &[Part], pieces: [&[Part]; N]) {
        self.note(tools);
        let prompt = pieces.concat();
        let same = prompt.iter().zip(&self.last).take_while(|(a, b)| a == b);
        self.cached += same.map(|(part, _)| u64::from(part.tokens)).sum::<u64>();
        self.tokens += prompt.iter().map(|part| u64::from(part.tokens)).sum::<u64>();
        self.last = prompt;
    }

    /// Notes a turn that has none of its right tools.
    pub(super) fn miss_unless(&mut self, has_right: bool) {
        self.missed += usize::from(!has_right);
    }

    /// Notes the tools of a prompt, for the largest set.
    fn note(&mut self, tools: &[Part]) {
        let tokens = tools.iter().map(|part| u64::from(part.tokens)).sum();
        self.largest_set = self.largest_set.max(tools.len());
        self.largest_schemas = self.largest_schemas.max(tokens);
    }

    /// The sums, under a name.
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
