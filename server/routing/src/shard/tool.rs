//! One tool as a shard holds it: the parsed record, ready to be ranked, shown and called.

use std::sync::OnceLock;

use super::ruled::Ruled;
use crate::catalog::definition::Definition;
use crate::catalog::signature::Signature;
use toolgate_core::identity::{ToolId, ToolKey};
use toolgate_core::tokens;
use toolgate_store::{ContentHash, Revision, StoredTool};

/// A tool of a snapshot; its slot is its place in the summary pool's order.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Who it is.
    pub id: ToolId,
    /// The same in 128 bits.
    pub key: ToolKey,
    /// The name the model sees.
    pub model_name: Box<str>,
    /// The text that was embedded.
    pub summary: Box<str>,
    /// Words that users say when they mean it.
    pub search_hint: Box<str>,
    /// The MCP definition.
    pub definition: Definition,
    /// SHA-256 of the canonical definition.
    pub hash: ContentHash,
    /// The snapshot's requirement group that it belongs to.
    pub group: u32,
    /// One of the agent's own tools, and no MCP server's.
    pub built_in: bool,
    /// Of an MCP server whose texts are a third party's.
    pub untrusted: bool,
    /// May be deferred; otherwise it is always part of the active set.
    pub deferrable: bool,
    /// The policy's least overlap for it, instead of the request's.
    pub threshold: Option<f32>,
    /// The rules of the policy that limit how many of their tools are chosen.
    pub caps: Box<[u32]>,
    /// cl100k_base tokens of what a provider is sent for it.
    pub schema_tokens: u32,
    /// cl100k_base tokens of its line of the summary pool.
    pub summary_tokens: u32,
    name_tokens: OnceLock<u32>,
    brief: OnceLock<(Signature, u32)>,
    /// The revision at which that line last changed.
    pub summary_revision: Revision,
}

impl Tool {
    /// Makes a tool of a stored one, its parsed definition, and what the policy's rules make of it. Which
    /// tools are deferrable goes in this order: always loaded and critical tools never; MCP tools; built-in ones that
    /// ask for it. What a tool is called says nothing: anybody may register a `tool_search`.
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

    /// cl100k_base tokens of its name in a line of its own; counted when first asked for, since few ask.
    #[must_use]
    pub fn name_tokens(&self) -> u32 {
        *self.name_tokens.get_or_init(|| tokens::count(&format!("{}\n", self.model_name)))
    }

    /// The tool in one line, for a model; made when first asked for, since few ask.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.brief().0
    }

    /// cl100k_base tokens of that line.
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

    /// Bytes that this holds, without the line that is made when it is asked for: a twentieth of the rest.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let names = self.id.server.as_str().len() + self.id.name.as_str().len();
        let texts = self.model_name.len() + self.summary.len() + self.search_hint.len();
        size_of::<Self>() + self.caps.len() * 4 + names + texts + self.definition.memory_bytes()
    }
}
