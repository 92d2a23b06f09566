//! Testbed and tasks as JSON, so that agents can play them live, in the place of what the paper projects.

use serde_json::{Value, json};

use super::paper::MAIN;
use super::tasks::{Task, Turn};
use super::testbed::Testbed;
use toolgate_core::error::Error;
use toolgate_core::state::PriorCall;
use toolgate_store::StoredTool;

/// Returns the testbed, its tasks and its prompts of several tools. The states of turns are as `toolgate route --state` reads them, preconditions and
/// definitions as a registration takes them.
///
/// # Errors
/// [`Error::Internal`] if a definition is no JSON.
pub(super) fn document(
    seed: u64,
    bed: &Testbed,
    tasks: &[Task],
    several: &[Task],
) -> Result<Value, Error> {
    let tools = bed.catalog.tools.iter().map(tool).collect::<Result<Vec<_>, _>>()?;
    let task = |task: &Task| task.iter().map(turn).collect::<Vec<_>>();
    Ok(json!({
        "seed": seed,
        "tools": tools,
        "tasks": tasks.iter().map(task).collect::<Vec<_>>(),
        "prompts_of_several_tools": several.iter().map(task).collect::<Vec<_>>(),
        "projections": MAIN.iter().map(projection).collect::<Vec<_>>(),
    }))
}

fn tool(tool: &StoredTool) -> Result<Value, Error> {
    let record = &tool.record;
    let definition: Value = serde_json::from_str(&record.definition).map_err(Error::internal)?;
    Ok(json!({
        "server": record.server.as_str(),
        "model_name": record.model_name,
        "summary": record.summary,
        "schema_tokens": record.schema_tokens,
        "precondition": record.precondition,
        "definition": definition,
    }))
}

fn turn(turn: &Turn) -> Value {
    let call = |call: &PriorCall| json!({"tool": call.tool, "status": call.status.name(), "turn": call.turn});
    json!({
        "text": turn.text,
        "needs": turn.needs,
        "state": {
            "scopes": turn.state.scopes,
            "milestones": turn.state.milestones,
            "calls": turn.state.calls.iter().map(call).collect::<Vec<_>>(),
        },
    })
}

/// Returns what live runs would replace: the paper's projected figures of a method.
fn projection(row: &super::paper::Row) -> Value {
    let [success_percent, p50_seconds, p95_seconds, usd_a_task, judged_quality] = row.projected;
    json!({
        "method": row.name,
        "success_percent": success_percent,
        "p50_seconds": p50_seconds,
        "p95_seconds": p95_seconds,
        "usd_a_task": usd_a_task,
        "judged_quality": judged_quality,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tax::tasks;

    #[test]
    fn an_agent_can_play_what_is_exported() {
        let bed = Testbed::new(42, 120).expect("the testbed");
        let tasks = tasks::generate(&bed, 20, 42);
        let exported =
            document(42, &bed, &tasks, &tasks::of_several(&bed, 5, 42)).expect("a document");
        let tools = exported["tools"].as_array().expect("tools");
        assert_eq!(tools.len(), 120);
        assert!(tools.iter().all(|tool| tool["definition"]["inputSchema"].is_object()));
        let text = tools.iter().map(|tool| tool["precondition"].to_string()).collect::<String>();
        assert!(text.contains("is_authenticated") && text.contains("milestone_reached"));
        let turns: Vec<&Value> = exported["tasks"]
            .as_array()
            .expect("tasks")
            .iter()
            .flat_map(|task| task.as_array().expect("turns"))
            .collect();
        assert_eq!(turns.len(), tasks.iter().map(Vec::len).sum::<usize>());
        let is_known = |name: &Value| tools.iter().any(|tool| tool["model_name"] == *name);
        for turn in &turns {
            assert!(turn["needs"].as_array().expect("names").iter().all(is_known), "{turn}");
            assert!(!turn["text"].as_str().expect("a text").is_empty());
        }
        assert!(turns.iter().any(|turn| turn["state"]["calls"][0]["status"] == "succeeded"));
        assert_eq!(exported["prompts_of_several_tools"].as_array().map(Vec::len), Some(5));
        assert_eq!(exported["projections"].as_array().map(Vec::len), Some(MAIN.len()));
    }
}
