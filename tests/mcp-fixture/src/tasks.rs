//! Tools that run as tasks (the extension of 2026-07-28), and one that never does.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, InputRequest,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions};
use serde_json::{Value, json};

use crate::contents::{text, typed};
use crate::questions::{accepted_field, asked, form};
use crate::tools::argument;

/// Names of the tools, with the names of their arguments.
pub(crate) const TOOLS: [(&str, &[&str]); 7] = [
    ("greet", &["name"]),
    ("slow_compute", &[]),
    ("failing_job", &[]),
    ("protocol_error_job", &[]),
    ("confirm_delete", &["filename"]),
    ("multi_input", &[]),
    ("test_tool_with_task", &[]),
];

const POLL_MS: u64 = 100;

/// Answers a call of a tool of this file; none if the name is not one of theirs.
pub(crate) async fn call(
    tasks: &TaskManager,
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let may_be_task = capabilities.supports_tasks();
    Some(match request.name.as_ref() {
        "greet" => Ok(text(format!("Hello, {}!", argument(request, "name")))),
        "slow_compute" => {
            let time = seconds(request);
            if may_be_task {
                Ok(task(tasks, |context| Box::pin(compute(context, time))))
            } else {
                tokio::time::sleep(time).await;
                Ok(text("Computed."))
            }
        }
        "failing_job" if may_be_task => Ok(task(tasks, |_| {
            Box::pin(async { Ok(CallToolResult::error(vec![ContentBlock::text("It failed.")])) })
        })),
        "protocol_error_job" if may_be_task => Ok(task(tasks, |_| {
            Box::pin(async { Err(ErrorData::internal_error("it broke", None).into()) })
        })),
        "confirm_delete" if may_be_task => {
            let message = format!("Delete {}?", argument(request, "filename"));
            Ok(task(tasks, |context| confirming(context, vec![message])))
        }
        "multi_input" if may_be_task => {
            let messages = vec!["First?".to_owned(), "Second?".to_owned()];
            Ok(task(tasks, |context| confirming(context, messages)))
        }
        "test_tool_with_task" if may_be_task => after_a_question(tasks, request),
        name if TOOLS.iter().any(|(tool, _)| *tool == name) => {
            let required = ClientCapabilities::builder().enable_tasks().build();
            Err(ErrorData::missing_required_client_capability(required))
        }
        _ => return None,
    })
}

fn task(tasks: &TaskManager, work: impl FnOnce(TaskContext) -> TaskFuture) -> CallToolResponse {
    let options = TaskOptions::new().with_poll_interval_ms(POLL_MS);
    CallToolResponse::Task(CreateTaskResult::new(tasks.spawn(options, work)))
}

fn seconds(request: &CallToolRequestParams) -> Duration {
    let seconds = request.arguments.as_ref().and_then(|arguments| arguments.get("seconds"));
    Duration::try_from_secs_f64(seconds.and_then(Value::as_f64).unwrap_or_default())
        .unwrap_or_default()
}

async fn compute(context: TaskContext, time: Duration) -> Result<CallToolResult, TaskExit> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(said("Computed.")),
        () = context.cancelled() => Err(TaskExit::Cancelled),
    }
}

/// Asks several questions at once, and is done when each has its answer.
fn confirming(context: TaskContext, messages: Vec<String>) -> TaskFuture {
    Box::pin(async move {
        let questions = messages.into_iter().enumerate().map(|(number, message)| {
            let context = context.clone();
            async move {
                let question: InputRequest = typed(form(&message, "confirm", "boolean"))?;
                context.request_input(format!("question-{number}"), question).await
            }
        });
        let answers = futures_util::future::try_join_all(questions).await?;
        Ok(said(&json!(answers).to_string()))
    })
}

/// Asks the client first, and goes on as a task.
fn after_a_question(
    tasks: &TaskManager,
    request: &CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    let answers = request.input_responses.as_ref();
    let name = accepted_field(answers, "user_name", "name")
        .or_else(|| accepted_field(answers, "user_name", "user_name"));
    let Some(name) = name else {
        let question = json!({"user_name": form("What is your name?", "name", "string")});
        return Ok(asked(question, Some("task"))?.into());
    };
    let greeting = format!("Hello, {}!", name.as_str().unwrap_or_default());
    Ok(task(tasks, |_| Box::pin(async move { Ok(said(&greeting)) })))
}

fn said(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
