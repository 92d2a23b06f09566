//! `discover_tools`: a search of the routing plane, told in the form that models call by.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};
use toolgate_client::{ErrorReason, v1};
use toolgate_upstream::ServerStatus;

use crate::caller::Caller;
use crate::definitions::{CALL, CALL_READ};
use crate::gateway::{Gateway, state_name};

const RESULTS_DEFAULT: u64 = 5;
const RESULTS_MAX: u64 = 20;

/// Most characters of the problem of a server that is not there.
const PROBLEM_MAX: usize = 200;

/// Prefix of model-facing names, which hosts put before their own.
const PREFIX: &str = "mcp__";

/// Answers `discover_tools`. A search that is not a model's is not counted.
///
/// # Errors
/// The problem, for the model.
pub(crate) async fn discover(
    gateway: &Gateway,
    caller: &Caller,
    arguments: &Map<String, Value>,
    is_counted: bool,
) -> Result<String, String> {
    let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default().trim();
    if query.is_empty() {
        return Err("`query` is missing: say what you want to do".to_owned());
    }
    let most = arguments.get("max_results").and_then(Value::as_u64).unwrap_or(RESULTS_DEFAULT);
    let is_whole = query.len() >= 7
        && query.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("select:"));
    let detail = if is_whole { v1::Detail::Schemas } else { v1::Detail::Signatures };
    let request = v1::SearchToolsRequest {
        query: query.to_owned(),
        max_results: Some(most.clamp(1, RESULTS_MAX) as u32),
        detail: detail as i32,
        state: Some(caller.state(gateway)),
        ..Default::default()
    };
    let found = gateway.plane_for(caller).search_tools(request).await;
    let found = match found {
        Ok(found) => {
            gateway.saw_revision(caller, Some(found.catalog_revision));
            found
        }
        // Nothing is registered yet. Servers that are on their way are named below.
        Err(error) if error.reason() == Some(ErrorReason::TenantNotFound) => {
            gateway.saw_revision(caller, None);
            v1::SearchToolsResponse::default()
        }
        Err(error) => return Err(format!("the search failed: {error}")),
    };
    let is_here = |tool: &&v1::ActiveTool| gateway.lets_in(caller, &tool.server, &tool.name);
    let tools: Vec<&v1::ActiveTool> = found.tools.iter().filter(is_here).collect();
    if is_counted {
        gateway.counts(caller).searches.fetch_add(1, Ordering::Relaxed);
        let shown: Vec<String> = tools.iter().map(|tool| tool.model_name.clone()).collect();
        // Others have no intent that memory could learn for: they name tools, or words were enough.
        if found.form() == v1::SearchForm::Natural {
            let handle = found.active_set_handle.clone();
            gateway.history().wanted(&caller.owner(), shown.clone(), handle);
        }
        gateway.count(caller, &gateway.history().searched(&caller.owner(), shown));
    }
    let readers = Readers::of(gateway, caller, &tools).await;
    let mut text = told(&readers, &tools, &found, is_whole);
    close(&mut text, &missing(gateway, caller), &tools, is_whole);
    Ok(text)
}

/// Returns the name by which a host's model calls a tool.
pub(crate) fn shown_name(model_name: &str) -> &str {
    model_name.strip_prefix(PREFIX).unwrap_or(model_name)
}

/// Knowledge of which of the found tools only read.
struct Readers<'g> {
    gateway: &'g Gateway,
    /// Tools that only read of servers that have not listed them yet, as the catalog has them, by server.
    stored: HashMap<String, Vec<String>>,
}

impl<'g> Readers<'g> {
    async fn of(gateway: &'g Gateway, caller: &Caller, tools: &[&v1::ActiveTool]) -> Self {
        let mut stored = HashMap::new();
        for tool in tools {
            let server = &tool.server;
            let is_listed = gateway.fleet().listing(server).is_some();
            if !is_listed && gateway.is_believed(server) && !stored.contains_key(server) {
                stored.insert(server.clone(), gateway.stored_readers(caller, server).await);
            }
        }
        Self { gateway, stored }
    }

    fn risk(&self, tool: &v1::ActiveTool) -> &'static str {
        let is_read_only = match self.stored.get(&tool.server) {
            Some(stored) => {
                let Self { gateway, .. } = self;
                stored.contains(&tool.name) || gateway.reads_by_word(&tool.server, &tool.name)
            }
            None => self.gateway.is_read_only(&tool.server, &tool.name),
        };
        if is_read_only { "read" } else { "write" }
    }
}

fn told(
    readers: &Readers<'_>,
    tools: &[&v1::ActiveTool],
    found: &v1::SearchToolsResponse,
    is_whole: bool,
) -> String {
    let mut text = String::new();
    if tools.is_empty() {
        text.push_str("No tool was found.");
    } else {
        text.push_str(&format!("{} of {} tools:\n", tools.len(), found.searched_tools));
    }
    for tool in tools {
        text.push('\n');
        text.push_str(&if is_whole { whole(readers, tool) } else { brief(readers, tool) });
    }
    if !found.message.is_empty() {
        text.push_str(&format!("\n{}", found.message.replace(PREFIX, "")));
    }
    text
}

/// Ends the text with the servers that are not there yet, and with how the tools are called.
fn close(text: &mut String, missing: &[String], tools: &[&v1::ActiveTool], is_whole: bool) {
    if !missing.is_empty() {
        text.push_str(&format!("\nNot there yet: {}.", missing.join(", ")));
    }
    if !tools.is_empty() {
        text.push_str(&format!(
            "\nCall those that read with {CALL_READ}, others with {CALL}, by the name with its #tag."
        ));
        if !is_whole {
            text.push_str(" select:NAME gives the whole schema.");
        }
    }
}

fn brief(readers: &Readers<'_>, tool: &v1::ActiveTool) -> String {
    let shown = tagged(tool);
    let signature = tool.signature.strip_prefix(&tool.model_name).unwrap_or(&tool.signature);
    let lossy = if tool.signature_lossy { " [more in the schema]" } else { "" };
    format!("{shown}{signature}{lossy}\n  {}\n", readers.risk(tool))
}

fn whole(readers: &Readers<'_>, tool: &v1::ActiveTool) -> String {
    format!(
        "{}\n  {}: {}\n  input schema: {}\n",
        tagged(tool),
        readers.risk(tool),
        tool.description,
        tool.input_schema_json
    )
}

fn tagged(tool: &v1::ActiveTool) -> String {
    format!("{}#{}", shown_name(&tool.model_name), tool.shown_tag)
}

/// Returns the caller's servers that have listed no tools yet, each with its state, and the problem that it has.
fn missing(gateway: &Gateway, caller: &Caller) -> Vec<String> {
    let servers = gateway.servers_of(&caller.tenant);
    let absent = servers.iter().filter(|status| gateway.fleet().listing(&status.name).is_none());
    let told = |status: &ServerStatus| {
        let problem = status.told_problem.as_deref().and_then(|problem| problem.lines().next());
        let problem: String = problem.unwrap_or_default().chars().take(PROBLEM_MAX).collect();
        let colon = if problem.is_empty() { "" } else { ": " };
        format!("{} ({}{colon}{problem})", status.name, state_name(status.state))
    };
    absent.map(told).collect()
}
