//! The size of an answer: what the definitions of its tools take of one message, so that no tool makes an answer that
//! clients refuse to read.

use super::query::Detail;
use crate::shard::tool::Tool;

/// The configuration key that answers are held to.
pub const LIMIT: &str = "limits.max_message_size";

/// The part of a message that is kept for what is not tools: the handle, refusals, figures.
const RESERVED: usize = 8;

/// Bytes of a tool beside its texts: numbers, tags of fields, its part of the handle.
const FIXED: usize = 192;

/// Counts bytes of tools against the largest message.
#[derive(Debug, Clone, Copy)]
pub struct AnswerSize {
    left: usize,
    detail: Detail,
}

impl AnswerSize {
    /// An answer without tools, sent at `detail`, of `message_max` bytes at most.
    #[must_use]
    pub fn new(message_max: usize, detail: Detail) -> Self {
        Self { left: message_max - message_max / RESERVED, detail }
    }

    /// Returns true if the tool fits.
    #[must_use]
    pub fn fits(&self, tool: &Tool, is_brief: bool) -> bool {
        self.bytes(tool, is_brief) <= self.left
    }

    /// Counts a tool no longer that was taken in this form.
    pub fn give_back(&mut self, tool: &Tool, is_brief: bool) {
        self.left += self.bytes(tool, is_brief);
    }

    /// Returns true if the tool fits, and counts it then.
    pub fn take(&mut self, tool: &Tool, is_brief: bool) -> bool {
        let rest = self.left.checked_sub(self.bytes(tool, is_brief));
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    /// Bytes of the tool in the answer, rather too many than too few.
    fn bytes(&self, tool: &Tool, is_brief: bool) -> usize {
        let texts = match self.detail {
            Detail::Schemas if is_brief => tool.signature().text.len(),
            // Of the definition, only parts are sent, and none of them is longer than it is there, but for a schema in
            // another form.
            Detail::Schemas => {
                let definition = &tool.definition;
                let registered = definition.input_schema().len();
                definition.text().len() + definition.sent_schema().len().saturating_sub(registered)
            }
            Detail::Signatures => tool.signature().text.len(),
            Detail::Names | Detail::References => 0,
        };
        // A tool's names stand in it, in its id, and in the change of the set.
        let names = 2 * (tool.id.server.as_str().len() + tool.id.name.as_str().len());
        texts + names + 3 * tool.model_name.len() + FIXED
    }
}
