//! The active set in the shape that a provider's API takes. Rendering the same tools gives the same value,
//! and [`Rendered::losses`] says what a provider's schemas can't. Gate still holds calls to the registered
//! schema.
//!
//! Objects are `serde_json` maps: they keep the order of properties that the MCP server gave when your build
//! turns on `serde_json/preserve_order`, and sort them otherwise.

mod anthropic;
mod gemini;
mod gemini_types;
mod mcp;
mod openai;
mod root;
mod schema;

use serde_json::Value;

pub use anthropic::{AnthropicOptions, SearchTool, UNSUPPORTED_MODELS, anthropic, can_defer};
pub use gemini::gemini;
pub use mcp::mcp;
pub use openai::{openai_chat, openai_responses};

/// Definitions in a provider's shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The definitions, in the order of the active set.
    pub tools: Vec<Value>,
    /// What could not be said.
    pub losses: Vec<Loss>,
}

/// Something that a registered tool says and the rendered one can't.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// The tool's model-facing name.
    pub tool: String,
    /// Where, as a JSON Pointer into the registered `inputSchema`; empty for the whole.
    pub pointer: String,
    /// The keyword at fault; `name` for the tool's own name.
    pub keyword: String,
    /// What became of it.
    pub note: String,
}

/// Why a tool can't be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Full schemas were not asked for.
    #[error("{tool} came without its schema: route with DETAIL_SCHEMAS")]
    NoSchema {
        /// The tool's model-facing name.
        tool: String,
    },
    /// A definition that is not JSON: not one that the service sent.
    #[error("the {part} of {tool} is not JSON")]
    NotJson {
        /// The tool's model-facing name.
        tool: String,
        /// `inputSchema`, `outputSchema` or `annotations`.
        part: &'static str,
        /// Where and why.
        source: serde_json::Error,
    },
}
