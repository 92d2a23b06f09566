//! Headers of hosts that repeat parameters of a call, `Mcp-Param-NAME` (MCP 2026-07-28). Proxies before the gateway may have
//! routed by them, so a call that says something else is refused.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Json, Response};
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::face::Exposure;
use crate::gateway::{Gateway, KnownTool};
use crate::whole;

const REVISION_HEADER: &str = "mcp-protocol-version";

/// First revision whose hosts repeat parameters.
const FIRST_REVISION: &str = "2026-07-28";

#[derive(Deserialize)]
struct Message {
    method: String,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    params: Value,
}

/// Returns the refusal of a call whose headers are not what its arguments say.
pub(crate) async fn refusal(
    gateway: &Gateway,
    caller: &Caller,
    exposure: &Exposure,
    message: &[u8],
    headers: &HeaderMap,
) -> Option<Response> {
    let revision = headers.get(REVISION_HEADER)?.to_str().ok()?;
    if revision < FIRST_REVISION || !gateway.has_header_parameters() {
        return None;
    }
    let call: Message = serde_json::from_slice(message).ok()?;
    if call.method != "tools/call" {
        return None;
    }
    let name = call.params["name"].as_str()?;
    let tool = match exposure {
        // The gateway's own tools have no such parameters.
        Exposure::Search => return None,
        Exposure::Server(server) => gateway.tool_for(caller, server, name)?,
        Exposure::All => tool_of(gateway, caller, name).await?,
    };
    let problem = tool.parameters.check(&call.params["arguments"], headers).err()?;
    let error = json!({"code": ErrorCode::HEADER_MISMATCH, "message": problem});
    let answer = Json(json!({"jsonrpc": "2.0", "id": call.id, "error": error}));
    Some((StatusCode::BAD_REQUEST, answer).into_response())
}

/// Returns the tool that the face of all tools shows under a name.
async fn tool_of(gateway: &Gateway, caller: &Caller, shown: &str) -> Option<KnownTool> {
    let named = shown.split_once("__");
    let known = named.and_then(|(server, name)| gateway.tool_for(caller, server, name));
    if known.is_some() {
        return known;
    }
    // A name that is too long, or that models can't write.
    let (server, name) = whole::tool_of(gateway, caller, shown).await?;
    gateway.tool_for(caller, &server, &name)
}
