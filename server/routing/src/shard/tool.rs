//! Tool in a shard: the parsed record, ready to be ranked, shown and called.

use std::sync::OnceLock;

use super::ruled::Ruled;
use crate::catalog::definition::Definition;
use crate::catalog::signature::Signature;
use toolgate_core::identity::{ToolId, ToolKey};
use toolgate_core::tokens;
use toolgate_store::{ContentHash, Revision, StoredTool};

/// Tool of a snapshot. Its slot is its position in the summary pool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Identity of the tool.
    pub id: ToolId,
    /// Key of the tool: its identity in 128 bits.
    pub key: ToolKey,
    /// Name that the model sees.
    pub model_name: Box<str>,
    /// Summary, which is the text that was embedded.
    pub summary: Box<str>,
    /// Words that users say when they mean the tool.
    pub search_hint: Box<str>,
    /// MCP definition.
    pub definition: Definition,
    /// SHA-256 of the canonical definition.
    pub hash: ContentHash,
    /// Index of the snapshot's requirement group that it belongs to.
    pub group: u32,
    /// True if it is one of the agent's own tools and not of an MCP server.
    pub built_in: bool,
    /// True if its MCP server is untrusted, so that its texts come from a third party.
    pub untrusted: bool,
    /// True if it may be deferred. Otherwise it is always part of the active set.
    pub deferrable: bool,
    /// Minimum overlap that the policy sets for it, instead of the request's.
    pub threshold: Option<f32>,
    /// Indexes of the policy's rules that limit how many of their tools are chosen.
    pub caps: Box<[u32]>,
    /// Number of cl100k_base tokens that a provider is sent for it.
    pub schema_tokens: u32,
    /// Number of cl100k_base tokens of its line of the summary pool.
    pub summary_tokens: u32,
    name_tokens: OnceLock<u32>,
    brief: OnceLock<(Signature, u32)>,
    /// Revision at which its line of the summary pool last changed.
    pub summary_revision: Revision,
}

impl Tool {
    /// Creates a tool from a stored one, its parsed definition, and the effects of the policy's rules. Always loaded
    /// and critical tools are never deferrable. Of the others, tools of MCP servers are deferrable, and built-in tools
    /// only if they ask for it. A tool's name has no influence: anyone may register a `tool_search`.
    #[must_use]
    pub fn new(stored: StoredTool, definition: Definition, built_in: bool, ruled: Ruled) -> Self {
        let record = stored.record;
        let never = record.always_load || record.critical || ruled.always_load || ruled.critical;
        let deferrable = !never && (!built_in || definition.asks_to_be_deferred());
        let id = ToolId { server: record.server, name: record.name };
        Self {
            key: id.key(),
            name_tokens: OnceLock::new(),
            brief: OnceLock::new(),
            id,
            model_name: record.model_name.into(),
            summary: record.summary.into(),
            search_hint: record.search_hint.into(),
            definition,
            hash: record.hash,
            group: ruled.group,
            built_in,
            untrusted: ruled.untrusted,
            deferrable,
            threshold: ruled.threshold,
            caps: ruled.caps,
            schema_tokens: record.schema_tokens,
            summary_tokens: record.summary_tokens,
            summary_revision: stored.summary_revision,
        }
    }

    /// Returns the cl100k_base tokens of its name on a line of its own. They are counted on first use, because few
    /// callers need them.
    #[must_use]
    pub fn name_tokens(&self) -> u32 {
        *self.name_tokens.get_or_init(|| tokens::count(&format!("{}\n", self.model_name)))
    }

    /// Returns the tool's one-line signature for a model. It is made on first use, because few callers need it.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.brief().0
    }

    /// Returns the cl100k_base tokens of the signature.
    #[must_use]
    pub fn signature_tokens(&self) -> u32 {
        self.brief().1
    }

    fn brief(&self) -> &(Signature, u32) {
        self.brief.get_or_init(|| {
            let signature = Signature::of(&self.model_name, &self.definition);
            let tokens = tokens::count(&signature.text);
            (signature, tokens)
        })
    }

    /// Returns the bytes in use, without the signature, which is made on first use and takes a twentieth of the rest.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let names = self.id.server.as_str().len() + self.id.name.as_str().len();
        let texts = self.model_name.len() + self.summary.len() + self.search_hint.len();
        size_of::<Self>() + self.caps.len() * 4 + names + texts + self.definition.memory_bytes()
    }
}
