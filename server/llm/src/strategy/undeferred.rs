//! Requests while deferral is switched off altogether: nothing in them speaks of deferred tools.

use serde_json::Value;

use super::auto::{Choice, is_search};
use super::{Offer, Prepared, Reason, Strategy, Turn, prepare_by};
use crate::history::strip;
use crate::render::RenderError;

/// Field of definitions, and of settings of MCP servers, that defers tools.
const DEFER: &str = "defer_loading";

/// Makes the request of one turn with [`Strategy::Pass`], whatever was asked for, and without any trace of deferral. The
/// agent's own definitions lose `defer_loading`, the provider's tool searches are left out, and all references are
/// removed from the messages. No beta is named.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn prepare_undeferred(turn: &Turn<'_>) -> Result<Prepared, RenderError> {
    let own = loaded(turn.offer.own);
    let catalog = turn.offer.always_on.iter().chain(turn.offer.active);
    let messages = strip(turn.messages, catalog.map(|tool| tool.name), false).messages;
    let find = |name: &str| (turn.offer.find)(name);
    let turn = Turn {
        api: turn.api,
        strategy: turn.strategy,
        endpoint: turn.endpoint,
        offer: Offer {
            own: &own,
            always_on: turn.offer.always_on,
            active: turn.offer.active,
            deferred: turn.offer.deferred,
            catalog_tokens: turn.offer.catalog_tokens,
            search: turn.offer.search,
            deferred_names: turn.offer.deferred_names,
            listing: turn.offer.listing,
            budget: turn.offer.budget,
            find: &find,
        },
        system_tokens: turn.system_tokens,
        messages: &messages,
        ledger: turn.ledger,
        count: turn.count,
    };
    let is_asked = turn.strategy == Some(Strategy::Pass);
    let reason = if is_asked { Reason::Asked } else { Reason::NothingDeferred };
    prepare_by(&turn, Choice { strategy: Strategy::Pass, reason })
}

/// Returns the agent's own tools, all of them loaded.
fn loaded(own: &[Value]) -> Vec<Value> {
    let kept = own.iter().filter(|tool| !is_search(tool));
    kept.cloned()
        .map(|mut tool| {
            load(&mut tool);
            tool
        })
        .collect()
}

/// Removes `defer_loading` from a definition, from the tools of a namespace, and from the settings of an MCP server's
/// tools. Schemas, in which a property may have that name, stay as they are.
fn load(tool: &mut Value) {
    let Some(fields) = tool.as_object_mut() else { return };
    fields.shift_remove(DEFER);
    for part in ["function", "default_config"] {
        if let Some(part) = fields.get_mut(part).and_then(Value::as_object_mut) {
            part.shift_remove(DEFER);
        }
    }
    let tools = fields.get_mut("tools").and_then(Value::as_array_mut);
    tools.into_iter().flatten().for_each(load);
    let configs = fields.get_mut("configs").and_then(Value::as_object_mut);
    for config in configs.into_iter().flat_map(|configs| configs.values_mut()) {
        load(config);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_tools_lose_their_deferral_wherever_an_api_has_it() {
        let schema = json!({ "type": "object", "properties": { "defer_loading": {} } });
        let plain = [
            json!({ "name": "a", "input_schema": schema }),
            json!({ "type": "function", "function": { "name": "b", "parameters": schema } }),
            json!({ "type": "namespace", "name": "n", "tools": [{ "type": "function", "name": "c" }] }),
            json!({ "type": "mcp_toolset", "mcp_server_name": "s", "default_config": { "enabled": true },
                    "configs": { "d": { "enabled": true } } }),
            json!({ "type": "mcp", "server_label": "s", "server_url": "https://mcp.example" }),
        ];
        let mut deferred = plain.clone();
        deferred[0][DEFER] = true.into();
        deferred[1]["function"][DEFER] = true.into();
        deferred[2]["tools"][0][DEFER] = true.into();
        deferred[3]["default_config"][DEFER] = true.into();
        deferred[3]["configs"]["d"][DEFER] = true.into();
        deferred[4][DEFER] = true.into();
        let searches = [
            json!({ "type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25" }),
            json!({ "type": "tool_search" }),
        ];
        assert_eq!(loaded(&[&searches[..], &deferred].concat()), plain);
        assert_eq!(loaded(&plain), plain);
        assert_eq!(loaded(&[json!(7)]), [json!(7)]);
    }

    #[test]
    fn what_is_left_of_a_definition_keeps_its_order() {
        let text = r#"{"name":"a","defer_loading":true,"description":"b","input_schema":{}}"#;
        let tool: Value = serde_json::from_str(text).expect("it is JSON");
        let [loaded] = &loaded(&[tool])[..] else { panic!("one definition stays one") };
        assert_eq!(loaded.to_string(), text.replace(r#""defer_loading":true,"#, ""));
    }
}
