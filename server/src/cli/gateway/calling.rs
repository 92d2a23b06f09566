//! `toolgate gateway call`: a tool is called as a host calls it. Where that can't be, people are told why.

use serde_json::{Value, json};
use toolgate_core::nearest::nearest;
use toolgate_mcp::ServerOverview;

use super::{GatewayAddress, client};
use crate::cli::failure::{Exit, Failure};
use crate::cli::names::unknown;
use crate::cli::output;

/// Beginning of Gate's refusal of a name that it does not know.
const NO_SUCH_TOOL: &str = "There is no tool ";

/// Beginning of the answer to a search that finds no tool.
const NOTHING_FOUND: &str = "No tool was found.";

pub(super) async fn call(
    at: &GatewayAddress,
    server: &str,
    tool: &str,
    arguments: &Value,
) -> Result<Exit, Failure> {
    let known = known(at, server, Failure::refused).await?;
    if let Some(problem) = known.as_ref().and_then(not_ready) {
        return Err(Failure::refused(problem));
    }
    let call = json!({"name": format!("{server}/{tool}"), "arguments": arguments});
    let result = client::result(at, "call_tool", &call).await?;
    let is_unknown = text_of(&result).starts_with(NO_SUCH_TOOL);
    if result["isError"] == true && is_unknown {
        let listed = client::result(at, "discover_tools", &json!({"query": server})).await?;
        let tools = tools_of(server, text_of(&listed));
        let list = format!("toolgate gateway why {server}");
        let problem = format!("{server} has no tool `{tool}`");
        return Err(Failure::refused(unknown(&problem, tool, tools.into_iter(), &list)));
    }
    client::print(&result)
}

/// Prints what a model finds for a request, and which of these tools hosts see without a search.
pub(super) async fn why(at: &GatewayAddress, arguments: &Value) -> Result<Exit, Failure> {
    let result = client::result(at, "discover_tools", arguments).await?;
    let exit = client::print(&result)?;
    // Who may not ask for the state learns no more.
    let overview = client::overview(at).await.unwrap_or_default();
    let found: Vec<&str> = seen_anyway(text_of(&result), &overview.always_on).collect();
    if !found.is_empty() {
        output::print(&format!("always on, so that hosts need no search: {}\n", found.join(", ")))?;
    }
    let query = arguments["query"].as_str().unwrap_or_default();
    if text_of(&result).starts_with(NOTHING_FOUND)
        && let Some(near) = nearest(query, overview.servers.iter().map(|server| &*server.name))
    {
        output::note(format_args!("did you mean the server `{near}`?"));
    }
    Ok(exit)
}

/// Returns those tools of the always-on set that a search lists.
fn seen_anyway<'a>(listed: &'a str, always_on: &'a [String]) -> impl Iterator<Item = &'a str> {
    let found = |name: &&String| {
        let mut rests = listed.lines().filter_map(|line| line.strip_prefix(name.as_str()));
        rests.any(|rest| rest.starts_with(['#', '(']))
    };
    always_on.iter().filter(found).map(String::as_str)
}

/// Returns the state of a server; `None` if the caller may not ask for it.
///
/// # Errors
/// [`Failure`] if no gateway answers, and `failure` if it has no such server.
pub(super) async fn known(
    at: &GatewayAddress,
    server: &str,
    failure: fn(String) -> Failure,
) -> Result<Option<ServerOverview>, Failure> {
    let overview = match client::overview(at).await {
        Ok(overview) => overview,
        Err(failure) if failure.exit() == Exit::Unreachable => return Err(failure),
        // The request itself says what is wrong.
        Err(_) => return Ok(None),
    };
    let (found, others): (Vec<ServerOverview>, Vec<ServerOverview>) =
        overview.servers.into_iter().partition(|known| known.name == server);
    let names = others.iter().map(|server| server.name.as_str());
    match found.into_iter().next() {
        Some(found) => Ok(Some(found)),
        None => {
            let problem = format!("the gateway has no server `{server}`");
            let list = "toolgate gateway status";
            Err(failure(unknown(&problem, server, names, list)))
        }
    }
}

/// Returns why no tool of a server can be called: it was never ready.
fn not_ready(server: &ServerOverview) -> Option<String> {
    let has_tools = server.tools > 0 || matches!(&*server.state, "ready" | "idle");
    if has_tools {
        return None;
    }
    let ServerOverview { name, state, problem, .. } = server;
    let problem = problem.lines().next().unwrap_or_default();
    let problem = if problem.is_empty() { String::new() } else { format!(": {problem}") };
    Some(format!("{name} is not ready ({state}){problem}"))
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Returns the tools of a server that a search by its name lists.
fn tools_of<'a>(server: &str, listed: &'a str) -> Vec<&'a str> {
    let tool = |line: &'a str| {
        let rest = line.strip_prefix(server)?.strip_prefix("__")?;
        rest.split(['#', '(']).next()
    };
    listed.lines().filter_map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_always_on_tools_of_a_list_are_found() {
        let listed = "2 tools:\n\nnotes__echo#k3f9a1(text: string) - Echoes\n  read\n";
        let always_on = ["notes__ech", "notes__add", "notes__echo"].map(str::to_owned);
        let found: Vec<&str> = seen_anyway(listed, &always_on).collect();
        assert_eq!(found, ["notes__echo"]);
    }

    #[test]
    fn the_tools_of_a_list_are_found() {
        let listed = "2 tools:\n\nnotes__echo#k3f9a1(text: string) - Echoes\n  read\n\nnotes__add_note(a: b)\nnotes2__x#y()\n";
        assert_eq!(tools_of("notes", listed), ["echo", "add_note"]);
    }
}
