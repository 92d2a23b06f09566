//! Conversion of the active set to the formats of providers' APIs. Rendering the same tools gives the same value.
//! [`Rendered::losses`] lists the parts that a provider's schemas can't express. Gate still checks calls against the
//! registered schema.
//!
//! Objects are `serde_json` maps. They keep the MCP server's order of properties if your build turns on
//! `serde_json/preserve_order`, and sort them otherwise.

use toolgate_llm::render::{self, Tool};
pub use toolgate_llm::render::{
    Loss, RenderError, Rendered, SearchTool, UNSUPPORTED_MODELS, can_defer,
};
use toolgate_proto::v1::ActiveTool;

/// Options of the rendering for Anthropic.
#[derive(Debug, Clone)]
pub struct AnthropicOptions<'a> {
    /// Tools that the model sees only after a search or a `tool_reference` has loaded them. Default: none.
    pub deferred: &'a [ActiveTool],
    /// Name of the model that receives the tools. Default: "", which counts as a model that can defer.
    pub model: &'a str,
    /// Tool search to send with deferred tools; `None` if the caller has one of its own. Default: BM25.
    pub search_tool: Option<SearchTool>,
    /// Parts of the names of models that can't defer tools. Default: [`UNSUPPORTED_MODELS`].
    pub unsupported: &'a [&'a str],
    /// True if the last loaded tool ends a cached prefix, which leaves out deferred tools. Default: false.
    pub cache_breakpoint: bool,
}

impl Default for AnthropicOptions<'_> {
    fn default() -> Self {
        Self {
            deferred: &[],
            model: "",
            search_tool: Some(SearchTool::Bm25),
            unsupported: &UNSUPPORTED_MODELS,
            cache_breakpoint: false,
        }
    }
}

/// Renders the active set as `tools` of the Messages API: the tool search, loaded tools, deferred tools.
///
/// If the model can't defer, deferred tools are sent as loaded ones and no tool search is sent, so that no tool is
/// missing. A tool that is in both lists is loaded.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn anthropic(
    tools: &[ActiveTool],
    options: &AnthropicOptions<'_>,
) -> Result<Rendered, RenderError> {
    let deferred = to_render(options.deferred);
    let options = render::AnthropicOptions {
        deferred: &deferred,
        model: options.model,
        search_tool: options.search_tool,
        unsupported: options.unsupported,
        cache_breakpoint: options.cache_breakpoint,
    };
    render::anthropic(&to_render(tools), &options)
}

/// Renders the active set as `tools` of the Chat Completions API. The tools are not strict, so schemas stay as they
/// are. A request holds 128 tools; later ones are left out and listed in the losses.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn openai_chat(tools: &[ActiveTool]) -> Result<Rendered, RenderError> {
    render::openai_chat(&to_render(tools))
}

/// Renders the active set as `tools` of the Responses API. The tools are not strict, so schemas stay as they are. A
/// request holds 128 tools; later ones are left out and listed in the losses.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn openai_responses(tools: &[ActiveTool]) -> Result<Rendered, RenderError> {
    render::openai_responses(&to_render(tools))
}

/// Renders the active set as `functionDeclarations`, to be sent as `[{"functionDeclarations": [...]}]`.
///
/// Schemas are rewritten in Gemini's subset. Every keyword that it can't express is listed in the losses. Models that
/// accept full JSON Schema (`parametersJsonSchema`) don't need this. A request holds 512 declarations; later ones are
/// left out and listed in the losses.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn gemini(tools: &[ActiveTool]) -> Result<Rendered, RenderError> {
    render::gemini(&to_render(tools))
}

/// Renders the active set as `tools` of an answer to `tools/list`, with the names that the model sees. Schemas and
/// annotations are the registered ones. MCP's `title`, `icons` and `_meta` are not part of an active set.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn mcp(tools: &[ActiveTool]) -> Result<Rendered, RenderError> {
    render::mcp(&to_render(tools))
}

fn to_render(tools: &[ActiveTool]) -> Vec<Tool<'_>> {
    tools.iter().map(tool_of).collect()
}

fn tool_of(tool: &ActiveTool) -> Tool<'_> {
    Tool {
        name: &tool.model_name,
        description: &tool.description,
        input_schema_json: &tool.input_schema_json,
        output_schema_json: &tool.output_schema_json,
        annotations_json: &tool.annotations_json,
        signature: &tool.signature,
    }
}
