//! Answers for the model, calls and preconditions.

use serde_json::{Value, json};
use toolgate_client::precondition::{
    all_of, any_of, cel, has_prior_tool_output, is_authenticated, milestone_reached, not,
};
use toolgate_client::v1::Precondition;
use toolgate_client::{SearchAnswer, apply_pool, calls, tool_error, tool_references};

use crate::failure::Failure;
use crate::messages::{read, write};
use crate::tools::{pairs, summaries};

/// The op's answer; `None` for an op that is none of these.
pub fn run(op: &str, args: &Value) -> Option<Result<Value, Failure>> {
    Some(match op {
        "search_answer" => read(&args["found"]).map(|found| {
            let answer = SearchAnswer::from_found(found);
            json!({ "text": answer.text, "failed": answer.failed })
        }),
        "search_references" => {
            read(&args["found"]).map(|found| json!({ "content": tool_references(&found) }))
        }
        "tool_error" => read(&args["verdict"]).and_then(|verdict| {
            tool_error(&verdict).ok_or_else(|| Failure::usage("an allowed call has no error"))
        }),
        "read_call" => read_call(args),
        "apply_pool" => read(&args["pool"])
            .map(|pool| json!({ "held": pairs(&apply_pool(&pool, &summaries(&args["held"]))) })),
        "precondition" => precondition(&args["expr"]).map(|built| write(&built)),
        _ => return None,
    })
}

fn read_call(args: &Value) -> Result<Value, Failure> {
    let call = match args["provider"].as_str().unwrap_or_default() {
        "anthropic" => calls::from_anthropic(&args["call"]),
        "openai" => calls::from_openai(&args["call"]),
        "openai_responses" => calls::from_openai_responses(&args["call"]),
        "gemini" => calls::from_gemini(&args["call"]),
        other => return Err(Failure::driver(format!("no provider {other:?}"))),
    };
    Ok(write(&call.map_err(Failure::usage)?))
}

fn precondition(expr: &Value) -> Result<Precondition, Failure> {
    let no_expr = || Failure::driver(format!("no precondition: {expr}"));
    let (kind, value) = expr.as_object().and_then(|expr| expr.iter().next()).ok_or_else(no_expr)?;
    let text = || value.as_str().ok_or_else(no_expr);
    let operands = || -> Result<Vec<_>, _> {
        value.as_array().ok_or_else(no_expr)?.iter().map(precondition).collect()
    };
    Ok(match kind.as_str() {
        "is_authenticated" => is_authenticated(text()?),
        "has_prior_tool_output" => has_prior_tool_output(text()?),
        "milestone_reached" => milestone_reached(text()?),
        "cel" => cel(text()?),
        "all_of" => all_of(operands()?),
        "any_of" => any_of(operands()?),
        "not" => not(precondition(value)?),
        _ => return Err(no_expr()),
    })
}
