//! `toolgate gateway logs`: what a server wrote to its standard error, or why there is nothing.

use toolgate_mcp::ServerOverview;

use super::{GatewayAddress, calling, client};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;

pub(super) async fn show(at: &GatewayAddress, server: &str) -> Result<Exit, Failure> {
    let known = calling::known(at, server, Failure::new).await?;
    let text = client::text(at, &format!("gateway/logs/{server}")).await?;
    if text.is_empty() {
        output::note(nothing(server, known.as_ref()));
    }
    output::print(&text)?;
    Ok(Exit::Done)
}

/// Returns why a server wrote nothing, and what would start it. Who may not ask for its state learns no more.
fn nothing(name: &str, known: Option<&ServerOverview>) -> String {
    let why = known.map(|known| why(name, known)).unwrap_or_default();
    format!("{name} has written no lines to its standard error{why}")
}

fn why(name: &str, known: &ServerOverview) -> String {
    let ServerOverview { state, transport, problem, is_held, .. } = known;
    let problem = problem.lines().next().unwrap_or_default();
    let problem = if problem.is_empty() { String::new() } else { format!(": {problem}") };
    match state.as_str() {
        "needs login" => {
            format!(
                ": nobody has logged in to it; `toolgate gateway login {name}` does, and starts it"
            )
        }
        "waiting" if *is_held => {
            format!(", since it is not started before its entry has what it lacks{problem}")
        }
        "waiting" => format!(
            ": its last start failed, and it is tried again by itself, or now by `toolgate gateway restart {name}`{problem}"
        ),
        _ if transport != "stdio" => {
            ": it is reached by its URL, and what it writes is where it runs".to_owned()
        }
        "idle" => ": it is started by the first call of one of its tools".to_owned(),
        "starting" => ": it is being started".to_owned(),
        state => format!(" (state: {state})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(state: &str, transport: &str, problem: &str, is_held: bool) -> String {
        let known = json!({
            "name": "sea", "state": state, "transport": transport, "protocol": "", "tools": 0,
            "is_searchable": false, "started_in": null, "restarts": 0, "problem": problem, "is_held": is_held,
        });
        let known: ServerOverview = serde_json::from_value(known).expect("an overview");
        nothing("sea", Some(&known))
    }

    #[test]
    fn a_server_that_wrote_nothing_is_told_with_the_reason() {
        let nothing_of_it = "sea has written no lines to its standard error";
        for (state, transport, problem, is_held, want) in [
            ("idle", "stdio", "", false, ": it is started by the first call of one of its tools"),
            ("starting", "stdio", "", false, ": it is being started"),
            ("ready", "stdio", "", false, " (state: ready)"),
            (
                "ready",
                "http",
                "",
                false,
                ": it is reached by its URL, and what it writes is where it runs",
            ),
            (
                "idle",
                "http",
                "",
                false,
                ": it is reached by its URL, and what it writes is where it runs",
            ),
            (
                "waiting",
                "stdio",
                "set SEA_TOKEN",
                true,
                ", since it is not started before its entry has what it lacks: set SEA_TOKEN",
            ),
            (
                "waiting",
                "stdio",
                "no such file\nand more",
                false,
                ": its last start failed, and it is tried again by itself, or now by `toolgate gateway restart sea`: no such file",
            ),
            (
                "needs login",
                "http",
                "HTTP 401",
                false,
                ": nobody has logged in to it; `toolgate gateway login sea` does, and starts it",
            ),
        ] {
            assert_eq!(told(state, transport, problem, is_held), format!("{nothing_of_it}{want}"));
        }
        assert_eq!(nothing("sea", None), nothing_of_it);
    }
}
