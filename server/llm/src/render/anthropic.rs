//! Definitions for Anthropic's Messages API.

use serde_json::{Value, json};

use super::root::plain_root;
use super::schema::{
    Losses, Schema, input_schema, is_name, list_at, object_at, pointer, render_each,
};
use super::{RenderError, Rendered, Tool};

/// Parts of the names of models that do not accept `defer_loading`. All other models are assumed to accept it.
pub const UNSUPPORTED_MODELS: [&str; 4] = ["haiku", "claude-2", "claude-3", "claude-instant"];

/// Anthropic's own tool search to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchTool {
    /// Search by words.
    Bm25,
    /// Search by regular expression.
    Regex,
}

/// Options of the rendering for Anthropic.
#[derive(Debug, Clone)]
pub struct AnthropicOptions<'a> {
    /// Tools that the model sees only after a search or a `tool_reference` has loaded them. Default: none.
    pub deferred: &'a [Tool<'a>],
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

/// Returns true if a model accepts `defer_loading` and `tool_reference`. `unsupported` lists parts of the names of
/// those that don't.
#[must_use]
pub fn can_defer(model: &str, unsupported: &[&str]) -> bool {
    let model = model.to_lowercase();
    !unsupported.iter().any(|part| model.contains(&part.to_lowercase()))
}

/// Renders the active set as `tools` of the Messages API: the tool search, loaded tools, deferred tools.
///
/// If the model can't defer, deferred tools are sent as loaded ones and no tool search is sent, so that no tool is
/// missing. A tool that is in both lists is loaded.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn anthropic(
    tools: &[Tool<'_>],
    options: &AnthropicOptions<'_>,
) -> Result<Rendered, RenderError> {
    let loaded = render_each(tools, None, can_name, define)?;
    let is_loaded = |tool: &Tool<'_>| tools.iter().any(|t| t.name == tool.name);
    let deferred = options.deferred.iter().filter(|tool| !is_loaded(tool));
    let mut later = render_each(deferred, None, can_name, define)?;
    let defers = can_defer(options.model, options.unsupported);
    let search = options.search_tool.filter(|_| defers && !later.tools.is_empty());
    let mut seen: Vec<Value> = search.map(definition_of).into_iter().collect();
    seen.extend(loaded.tools);
    if !defers {
        seen.append(&mut later.tools);
    }
    if options.cache_breakpoint
        && let Some(last) = seen.last_mut()
    {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    for mut tool in later.tools {
        tool["defer_loading"] = true.into();
        seen.push(tool);
    }
    let losses = [loaded.losses, later.losses].concat();
    Ok(Rendered { tools: seen, losses })
}

fn definition_of(search: SearchTool) -> Value {
    let kind = match search {
        SearchTool::Bm25 => "bm25",
        SearchTool::Regex => "regex",
    };
    json!({
        "type": format!("tool_search_tool_{kind}_20251119"),
        "name": format!("tool_search_tool_{kind}"),
    })
}

fn can_name(name: &str) -> bool {
    is_name(name, 128, "_-")
}

fn define(tool: &Tool<'_>, losses: &mut Losses) -> Result<Value, RenderError> {
    let schema = plain_root(input_schema(tool)?, &[], losses);
    let schema = without_refused_properties(schema, losses);
    let mut definition = json!({ "name": tool.name, "input_schema": schema });
    if !tool.description.is_empty() {
        definition["description"] = tool.description.into();
    }
    Ok(definition)
}

fn without_refused_properties(mut schema: Schema, losses: &mut Losses) -> Schema {
    let Some(properties) = object_at(&schema, "properties") else { return schema };
    let is_taken = |name: &str| is_name(name, 64, "_.-");
    let refused: Vec<String> = properties.keys().filter(|name| !is_taken(name)).cloned().collect();
    if refused.is_empty() {
        return schema;
    }
    for name in &refused {
        let place = pointer("/properties", name);
        losses.add(&place, "properties", "dropped: not taken as a name");
    }
    let kept: Schema = properties
        .iter()
        .filter(|(name, _)| is_taken(name))
        .map(|(n, s)| (n.clone(), s.clone()))
        .collect();
    let is_kept = |name: &&Value| !name.as_str().is_some_and(|n| refused.iter().any(|r| r == n));
    let required: Vec<Value> =
        list_at(&schema, "required").iter().filter(is_kept).cloned().collect();
    schema.insert("properties".into(), kept.into());
    schema.insert("required".into(), required.into());
    schema
}
