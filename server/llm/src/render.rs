//! Conversion of tools to the formats of providers' APIs. Rendering the same tools gives the same value.
//! [`Rendered::losses`] lists the parts that a provider's schemas can't express. Gate still checks calls against the
//! registered schema.
//!
//! Objects keep the MCP server's order of properties.

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

/// Tool to render.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Name that the model sees.
    pub name: &'a str,
    /// Description; may be empty.
    pub description: &'a str,
    /// `inputSchema` as JSON; empty if only the signature is known.
    pub input_schema_json: &'a str,
    /// `outputSchema` as JSON; may be empty.
    pub output_schema_json: &'a str,
    /// `annotations` as JSON; may be empty.
    pub annotations_json: &'a str,
    /// Signature of one line, for a tool without its schema; may be empty.
    pub signature: &'a str,
}

/// Definitions in a provider's format.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The definitions, in the order of the tools.
    pub tools: Vec<Value>,
    /// Parts of the registered tools that the provider's format can't express.
    pub losses: Vec<Loss>,
}

/// A part of a registered tool that the rendered one can't express.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// Name of the tool, as the model sees it.
    pub tool: String,
    /// JSON Pointer into the registered `inputSchema`; empty for the whole schema.
    pub pointer: String,
    /// The keyword concerned; `name` for the tool's own name.
    pub keyword: String,
    /// Description of the change.
    pub note: String,
}

/// Error for a tool that can't be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The request did not ask for full schemas.
    #[error("{tool} came without its schema: route with DETAIL_SCHEMAS")]
    NoSchema {
        /// Name of the tool, as the model sees it.
        tool: String,
    },
    /// A part of the definition is not JSON, so the service did not send it.
    #[error("the {part} of {tool} is not JSON")]
    NotJson {
        /// Name of the tool, as the model sees it.
        tool: String,
        /// `inputSchema`, `outputSchema` or `annotations`.
        part: &'static str,
        /// The parser's error, with its position.
        source: serde_json::Error,
    },
}
