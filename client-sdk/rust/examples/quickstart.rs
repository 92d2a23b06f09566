//! The quickstart of the README, as it stands there.
#![allow(clippy::print_stdout, clippy::too_many_lines, reason = "it is read from top to bottom")]

use toolgate_client::precondition::{all_of, is_authenticated, milestone_reached, not};
use toolgate_client::{
    Client, ClientOptions, DEFAULT_TARGET, calls, intent, registration, rendered_tools, tool_error,
    v1,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::var("TOOLGATE_TARGET").unwrap_or(DEFAULT_TARGET.into());
    let options = ClientOptions { tenant: "demo".into(), ..Default::default() };
    let client = Client::connect(&target, options).await?;

    // Once: what an MCP server's `tools/list` answered, as bytes, text or a JSON value.
    let listed = std::fs::read("tests/data/servers/slack.json")?;
    let may_post = all_of([is_authenticated("chat:write"), not(milestone_reached("read_only"))]);
    let settings = v1::ToolSettings {
        name: "slack_post_message".into(),
        precondition: Some(may_post),
        ..Default::default()
    };
    let request = v1::RegisterServerRequest {
        tool_settings: vec![settings],
        ..registration("slack", listed)
    };
    client.with_deadline(std::time::Duration::from_secs(60)).register_server(request).await?;

    // Before the model: the active set for this turn.
    let state = v1::AgentState { scopes: vec!["chat:write".into()], ..Default::default() };
    let wanted = "post in the team's channel that I'll be ten minutes late";
    let chat = v1::ToolFormat::OpenaiChat.into();
    let request = v1::RouteRequest {
        intents: vec![intent(wanted)],
        state: Some(state.clone()),
        render: Some(v1::RenderOptions { format: chat, ..Default::default() }),
        ..Default::default()
    };
    let turn = client.route(request).await?;
    let tools = rendered_tools(turn.rendered.as_ref())?;
    println!("{} tools for the model", tools.len());

    // After the model: may its call run?
    let arguments = serde_json::json!({ "channel_id": "C1", "text": "10 min late" });
    let request = v1::GateRequest {
        active_set_handle: turn.active_set_handle.clone(),
        calls: vec![calls::call("mcp__slack__slack_post_message", &arguments, "call_1")],
        state: Some(state.clone()),
        ..Default::default()
    };
    for verdict in client.gate(request).await?.verdicts {
        match tool_error(&verdict) {
            None => println!("send it to {} as {}", verdict.server, verdict.name),
            Some(refusal) => println!("tell the model: {refusal}"),
        }
    }

    // The next turn keeps the tools that were promoted, in their places.
    let request = v1::RouteRequest {
        intents: vec![intent("did anyone reply in the Slack thread?")],
        state: Some(state),
        active_set_handle: turn.active_set_handle,
        ..Default::default()
    };
    println!("{} tools now", client.route(request).await?.active_tools.len());
    Ok(())
}

#[allow(dead_code, clippy::main_recursion, reason = "the test that runs the README calls it")]
pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
