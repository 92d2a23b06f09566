//! The RPCs, the listings, and the answer to a model's search.

use prost::Message;
use serde_json::{Value, json};
use toolgate_client::{Client, Error, ItemStream, model_request, rendered_tools, v1};

use crate::clients::timeout;
use crate::failure::Failure;
use crate::messages::{read, write};

/// Runs one op on a client.
pub async fn run(op: &str, client: &Client, args: &Value) -> Result<Value, Failure> {
    let client = match timeout(args)? {
        Some(deadline) => client.with_deadline(deadline),
        None => client.clone(),
    };
    let asked = &args["request"];
    match op {
        "Route" => answer(client.route(read(asked)?).await),
        "rendered" => rendered(&client, read(asked)?).await,
        "model_request" => requested(&client, read(asked)?).await,
        "Gate" => answer(client.gate(read(asked)?).await),
        "SearchTools" => answer(client.search_tools(read(asked)?).await),
        "GetSummaryPool" => answer(client.get_summary_pool(read(asked)?).await),
        "BatchGetToolSchemas" => answer(client.batch_get_tool_schemas(read(asked)?).await),
        "RegisterServer" => answer(client.register_server(read(asked)?).await),
        "UnregisterServer" => answer(client.unregister_server(read(asked)?).await),
        "ApproveTools" => answer(client.approve_tools(read(asked)?).await),
        "GetServer" => answer(client.get_server(read(asked)?).await),
        "SetPolicy" => answer(client.set_policy(read(asked)?).await),
        "GetPolicy" => answer(client.get_policy(read(asked)?).await),
        "GetUsage" => answer(client.get_usage(read(asked)?).await),
        "GetMemoryStats" => answer(client.get_memory_stats(read(asked)?).await),
        "ClearMemory" => answer(client.clear_memory(read(asked)?).await),
        "list_servers" => listed(client.servers(read(asked)?)).await,
        "list_tools" => listed(client.tools(read(asked)?)).await,
        "check_policy" => listed(client.policy_verdicts(read(asked)?)).await,
        "answer_search" => answer_search(&client, args).await,
        op => Err(Failure::driver(format!("no op {op:?}"))),
    }
}

fn answer<M: Message>(outcome: Result<M, Error>) -> Result<Value, Failure> {
    Ok(write(&outcome?))
}

/// Routes, and gives the rendered tools of the answer.
async fn rendered(client: &Client, request: v1::RouteRequest) -> Result<Value, Failure> {
    let turn = client.route(request).await?;
    let tools = rendered_tools(turn.rendered.as_ref()).map_err(Failure::usage)?;
    let loss = |loss: &v1::RenderLoss| {
        json!({
            "tool": loss.model_name, "pointer": loss.pointer,
            "keyword": loss.keyword, "note": loss.message,
        })
    };
    let losses: Vec<Value> = turn.rendered.iter().flat_map(|all| &all.losses).map(loss).collect();
    Ok(json!({ "tools": tools, "losses": losses }))
}

/// Routes, and gives what to send to the model.
async fn requested(client: &Client, request: v1::RouteRequest) -> Result<Value, Failure> {
    let turn = client.route(request).await?;
    let request = model_request(turn.rendered.as_ref()).map_err(Failure::usage)?;
    let strategy = request.strategy.as_str_name();
    let reason = request.reason.as_str_name();
    Ok(json!({
        "tools": request.tools,
        "messages": request.messages,
        "betas": request.betas,
        "ledger": request.ledger,
        "strategy": strategy.trim_start_matches("PROMPT_STRATEGY_"),
        "reason": reason.trim_start_matches("STRATEGY_REASON_"),
        "reason_message": request.reason_message,
        "handle": turn.active_set_handle,
    }))
}

async fn listed<M: Message>(items: ItemStream<M>) -> Result<Value, Failure> {
    let items: Vec<Value> = items.all().await?.iter().map(write).collect();
    Ok(json!({ "items": items }))
}

async fn answer_search(client: &Client, args: &Value) -> Result<Value, Failure> {
    let request = v1::SearchToolsRequest {
        active_set_handle: args["handle"].as_str().unwrap_or_default().to_owned(),
        state: args.get("state").map(read).transpose()?,
        detail: detail(&args["detail"])?.into(),
        ..Default::default()
    };
    let answer = client.answer_search(&args["call"]["arguments"], request).await?;
    let names: Vec<&str> = answer.tools().iter().map(|tool| tool.model_name.as_str()).collect();
    Ok(json!({
        "text": answer.text, "failed": answer.failed, "handle": answer.handle, "tools": names,
    }))
}

/// `DETAIL_SCHEMAS`, or `schemas`.
fn detail(named: &Value) -> Result<v1::Detail, Failure> {
    let Some(name) = named.as_str().filter(|name| !name.is_empty()) else {
        return Ok(v1::Detail::Unspecified);
    };
    let name = name.to_uppercase();
    let whole = if name.starts_with("DETAIL_") { name } else { format!("DETAIL_{name}") };
    v1::Detail::from_str_name(&whole).ok_or_else(|| Failure::driver(format!("no detail {whole}")))
}
