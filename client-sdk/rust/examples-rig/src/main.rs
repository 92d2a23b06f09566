//! An agent's loop on rig (`rig-core`): Toolgate chooses the tools of each request to the model, and says of each
//! call whether it may run. The model is a scripted one; any of rig's takes its place.
//!
//!     TOOLGATE_TARGET=127.0.0.1:7070 cargo run -- ../../../tests/data/servers/slack.json

mod agent;

use std::error::Error;
use std::time::Duration;

use rig_core::driver::DynModel;
use rig_core::message::AssistantContent;
use rig_core::operation::Completion;
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use serde_json::json;
use toolgate_client::{Client, ClientOptions, DEFAULT_TARGET, SEARCH_TOOL_NAME, registration};

use crate::agent::Agent;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let list = std::env::args().nth(1).ok_or("name the file with the answer of tools/list")?;
    let target = std::env::var("TOOLGATE_TARGET").unwrap_or(DEFAULT_TARGET.into());
    let (outcomes, answer) = converse(&target, &list).await?;
    for outcome in outcomes {
        println!("{outcome}");
    }
    println!("{answer}");
    Ok(())
}

/// What became of each call, and the model's last words.
async fn converse(target: &str, list: &str) -> Result<(Vec<String>, String), Box<dyn Error>> {
    let options = ClientOptions { tenant: "rig".into(), ..Default::default() };
    let client = Client::connect(target, options).await?;
    let registering = client.with_deadline(Duration::from_secs(60));
    registering.register_server(registration("slack", std::fs::read(list)?)).await?;
    let mut agent = Agent::new(client, scripted());
    let answer = agent.say("tell the team that I'll be late, and put a clock on it").await?;
    Ok((agent.outcomes, answer))
}

/// A model that posts, searches for another tool, calls it wrongly, and mends its call.
fn scripted() -> DynModel<Completion> {
    let reaction = "mcp__slack__slack_add_reaction";
    let posted = json!({ "channel_id": "C1", "text": "I'll be late" });
    let wrong = json!({ "channel_id": "C1", "emoji": "clock1" });
    let right = json!({ "channel_id": "C1", "timestamp": "1.2", "reaction": "clock1" });
    let turns = [
        MockTurn::tool_call("1", "mcp__slack__slack_post_message", posted),
        MockTurn::tool_call("2", SEARCH_TOOL_NAME, json!({ "query": "add an emoji reaction" })),
        MockTurn::tool_call("3", reaction, wrong),
        MockTurn::tool_call("4", reaction, right),
        MockTurn::from_content(AssistantContent::text("Done.")),
    ];
    MockCompletionModel::from_turns(turns).into()
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_model_mends_its_call() {
        let target = std::env::var("TOOLGATE_TARGET").expect("TOOLGATE_TARGET names a server");
        let list = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/servers/slack.json");
        let (outcomes, answer) = super::converse(&target, list).await.expect("an answer");
        let begins =
            ["slack/slack_post_message ran", "{\"tools\"", "{\"error\"", "slack/slack_add"];
        assert_eq!((outcomes.len(), answer.as_str()), (begins.len(), "Done."));
        for (outcome, begin) in outcomes.iter().zip(begins) {
            assert!(outcome.starts_with(begin), "{outcome}");
        }
    }
}
