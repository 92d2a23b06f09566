//! `tools` of a request, and the definitions that additions hold.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::listing::Listed;
use super::{Api, Offer, Strategy, Turn, Way, concise};
use crate::SEARCH_TOOL;
use crate::envelope::CALL_TOOL_NAME;
use crate::render::{
    AnthropicOptions, RenderError, Rendered, Tool, anthropic, gemini, mcp, openai_chat,
    openai_responses,
};

/// Definition of the envelope. `name` comes first, so that a stream can be told as a call of that tool early on.
const CALL_TOOL: Tool<'static> = Tool {
    name: CALL_TOOL_NAME,
    description: "Calls a tool that messages describe.",
    input_schema_json: concat!(
        r#"{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"#,
        r#""required":["name","arguments"]}"#,
    ),
    output_schema_json: "",
    annotations_json: "",
    signature: "",
};

/// Returns the tools that every request of the strategy has, whatever is active. They follow the agent's own, and stay
/// the same as long as the listing does.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub(super) fn constant(
    turn: &Turn<'_>,
    strategy: Strategy,
    listed: &Listed,
) -> Result<Rendered, RenderError> {
    let own = own_names(&turn.offer);
    let always_on = turn.offer.always_on.iter().filter(|tool| !own.contains(tool.name));
    let mut tools: Vec<Tool<'_>> = always_on.copied().collect();
    if strategy == Strategy::Pass {
        return render(turn.api, &tools);
    }
    let description = listed.description();
    let search = Tool { description: &description, ..SEARCH_TOOL };
    tools.extend(has_search(&turn.offer).then_some(search));
    tools.extend((strategy == Strategy::Envelope).then_some(CALL_TOOL));
    let mut rendered = render(turn.api, &tools)?;
    if (turn.api, strategy) == (Api::OpenAiResponses, Strategy::Native) {
        rendered
            .tools
            .iter_mut()
            .filter(|tool| tool["name"] == SEARCH_TOOL.name)
            .for_each(to_client_search);
    }
    Ok(rendered)
}

/// Renders definitions for `tools`.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub(super) fn render(api: Api, tools: &[Tool<'_>]) -> Result<Rendered, RenderError> {
    match api {
        Api::Anthropic => anthropic(tools, &AnthropicOptions::default()),
        Api::OpenAiChat => openai_chat(tools),
        Api::OpenAiResponses => openai_responses(tools),
        Api::Gemini => gemini(tools),
    }
}

/// Renders the definition of a tool for an addition. It is missing if the API takes no tool of that name.
///
/// # Errors
/// [`RenderError`] if the tool came without its full schema.
pub(super) fn render_added(way: Way, tool: Tool<'_>) -> Result<Rendered, RenderError> {
    if way.strategy == Strategy::Native {
        let mut rendered = render(way.api, &[tool])?;
        for definition in &mut rendered.tools {
            make_concise(definition);
        }
        return Ok(rendered);
    }
    if way.strategy != Strategy::Envelope {
        return render(way.api, &[tool]);
    }
    // What the model reads as text has none of the limits of the API's schemas.
    let brief = Tool { output_schema_json: "", annotations_json: "", ..tool };
    let mut rendered = mcp(&[brief])?;
    for definition in &mut rendered.tools {
        let schema = concise::input(definition["inputSchema"].take());
        let description = definition["description"].take();
        *definition = json!({ "name": tool.name });
        if !description.is_null() {
            definition["description"] = description;
        }
        definition[schema_field(way.api)] = schema;
    }
    Ok(rendered)
}

/// Returns the name that the API's own definitions give to a schema of arguments. Models know it, and it is shorter.
fn schema_field(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "input_schema",
        Api::OpenAiChat | Api::OpenAiResponses | Api::Gemini => "parameters",
    }
}

/// Takes out of a definition's schema what tells a model nothing. A strict one is a program's to read: it stays whole.
fn make_concise(definition: &mut Value) {
    if definition["strict"] == true {
        return;
    }
    for schema in ["input_schema", "parameters"] {
        if let Some(schema) = definition.get_mut(schema) {
            *schema = concise::input(schema.take());
        }
    }
}

/// Returns true if a request that defers tools has Toolgate's search.
pub(super) fn has_search(offer: &Offer<'_>) -> bool {
    // The names are the same in each turn, unlike the number, which may be 0 when all are active.
    let finds = offer.deferred > 0 || !offer.deferred_names.is_empty();
    offer.search && finds && !own_names(offer).contains(SEARCH_TOOL.name)
}

/// Returns the names that the agent's own tools have.
pub(super) fn own_names<'a>(offer: &Offer<'a>) -> HashSet<&'a str> {
    offer.own.iter().filter_map(name).collect()
}

/// Returns the name in a definition, which Chat Completions nests.
pub(super) fn name(definition: &Value) -> Option<&str> {
    definition.get("function").unwrap_or(definition).get("name")?.as_str()
}

/// Returns the names in a definition: its own, and those of the tools in a namespace.
pub(super) fn names(definition: &Value) -> Vec<&str> {
    let inner = definition.get("tools").and_then(Value::as_array);
    let inner = inner.into_iter().flatten().filter_map(name);
    name(definition).into_iter().chain(inner).collect()
}

/// Turns a function into the Responses API's search that the client answers.
fn to_client_search(function: &mut Value) {
    *function = json!({
        "type": "tool_search",
        "execution": "client",
        "description": function["description"].take(),
        "parameters": function["parameters"].take(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_programs_heed_is_left_out_of_additions_and_kept_in_tools() {
        let whole = json!({ "$schema": "https://schema.example", "type": "object", "additionalProperties": false });
        let text = whole.to_string();
        let tool = Tool { name: "a", input_schema_json: &text, ..Tool::default() };
        let schema = |way: Way, field: &str| {
            render_added(way, tool).expect("a whole schema").tools[0][field].clone()
        };
        for (api, field) in [(Api::Anthropic, "input_schema"), (Api::OpenAiResponses, "parameters")]
        {
            let way = Way { api, strategy: Strategy::Native };
            let added = schema(way, field);
            assert_eq!(added["type"], "object", "{added}");
            assert!(added.get("$schema").is_none(), "{added}");
            assert!(added.get("additionalProperties").is_none(), "{added}");
            assert_eq!(schema(way.at(0), field)["additionalProperties"], false);
        }
    }
}
