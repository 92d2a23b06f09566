//! Size of an answer: the bytes of one message that the definitions of its tools take. The limit keeps tools from
//! making an answer that clients refuse to read.

use crate::router::query::Detail;
use crate::shard::tool::Tool;

/// Configuration key of the limit on the size of an answer.
pub const LIMIT: &str = "limits.max_message_size";

/// Divisor of the message size: an eighth of it is reserved for the handle, refusals and figures.
const RESERVED: usize = 8;

/// Bytes of a tool beside its texts: numbers, tags of fields, its part of the handle.
const FIXED: usize = 192;

/// Counter of the bytes of tools against the largest message.
#[derive(Debug, Clone, Copy)]
pub struct AnswerSize {
    left: usize,
    detail: Detail,
}

impl AnswerSize {
    /// Creates a counter for an answer without tools, sent at `detail`, of at most `message_max` bytes.
    #[must_use]
    pub fn new(message_max: usize, detail: Detail) -> Self {
        Self { left: message_max - message_max / RESERVED, detail }
    }

    /// Returns true if the tool fits.
    #[must_use]
    pub fn fits(&self, tool: &Tool, is_brief: bool) -> bool {
        self.bytes(tool, is_brief) <= self.left
    }

    /// Gives back the bytes of a tool that was taken in this form.
    pub fn give_back(&mut self, tool: &Tool, is_brief: bool) {
        self.left += self.bytes(tool, is_brief);
    }

    /// Takes the bytes of the tool if they fit. Returns true if they do.
    pub fn take(&mut self, tool: &Tool, is_brief: bool) -> bool {
        let rest = self.left.checked_sub(self.bytes(tool, is_brief));
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    /// Returns an upper estimate of the bytes of the tool in the answer.
    fn bytes(&self, tool: &Tool, is_brief: bool) -> usize {
        let texts = match self.detail {
            Detail::Schemas if is_brief => tool.signature().text.len(),
            // Only parts of the definition are sent. None of them is longer than in the definition, except a schema in
            // another form.
            Detail::Schemas => {
                let definition = &tool.definition;
                let registered = definition.input_schema().len();
                definition.text().len() + definition.sent_schema().len().saturating_sub(registered)
            }
            Detail::Signatures => tool.signature().text.len(),
            Detail::Names | Detail::References => 0,
        };
        // A tool's names occur in the tool, in its id, and in the change of the set.
        let names = 2 * (tool.id.server.as_str().len() + tool.id.name.as_str().len());
        texts + names + 3 * tool.model_name.len() + FIXED
    }
}
