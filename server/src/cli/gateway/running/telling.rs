//! Lines for people: each server when it is ready, or slow, or has a problem.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use toolgate_mcp::{Gateway, GatewayChange, Overview, ServerOverview};

use crate::cli::gateway::readers_line;
use crate::cli::output;
use crate::cli::text::counted;

/// Time after which a server that is not there yet is named.
const SLOW: Duration = Duration::from_secs(2);

/// Says of each server when it is ready, and of slow ones that they are.
pub(super) async fn tell(gateway: Gateway) {
    let mut seen = gateway.seen();
    let mut told: HashMap<String, String> = HashMap::new();
    let mut told_ready = None;
    let mut told_findings = BTreeSet::new();
    let mut is_reviewed = false;
    loop {
        let overview = gateway.overview(&gateway.anybody());
        let lines: Vec<String> =
            overview.servers.iter().filter_map(|server| news(server, &mut told)).collect();
        lines.iter().for_each(output::note);
        if overview.servers.iter().all(is_settled) {
            let ready = overview.servers.iter().filter(|server| is_ready(server)).count();
            // Of more than before as well: one that failed is there, or the files name another. Of none there is nothing to tell.
            let is_any = ready > 0 || overview.servers.is_empty();
            if is_any && told_ready.is_none_or(|told| told < ready) {
                told_ready = Some(ready);
                complete_lines(&overview, ready).iter().for_each(output::note);
            }
            if !is_reviewed {
                is_reviewed = true;
                let reviewed = gateway.reviewed_overview(&gateway.anybody()).await;
                kept_back(&reviewed, &mut told_findings).iter().for_each(output::note);
            }
        }
        match tokio::time::timeout(SLOW, gateway.changed(&mut seen)).await {
            Ok(GatewayChange::Servers) => {}
            Ok(GatewayChange::Registrations) => is_reviewed = false,
            Err(_slow) => {
                let overview = gateway.overview(&gateway.anybody());
                slow(&overview, &mut told).iter().for_each(output::note);
            }
        }
    }
}

fn is_ready(server: &ServerOverview) -> bool {
    matches!(&*server.state, "ready" | "idle") && server.is_searchable
}

/// Returns true if nobody need wait for the server: it is there, or has said why it is not. One that failed is tried again and
/// again; the catalog refuses one that is ready and has a problem.
fn is_settled(server: &ServerOverview) -> bool {
    let ServerOverview { state, problem, is_held, .. } = server;
    let has_failed = matches!(&**state, "waiting" | "needs login" | "stopped")
        || (matches!(&**state, "starting" | "ready" | "idle") && !problem.is_empty());
    *is_held || has_failed || is_ready(server)
}

/// Returns a line for each tool, prompt or resource that is left out or waits for approval, once. `told` holds those that are now.
fn kept_back(overview: &Overview, told: &mut BTreeSet<String>) -> Vec<String> {
    let findings = |server: &ServerOverview| -> Vec<String> {
        let all = server.findings.iter().chain(&server.withheld);
        all.map(|finding| format!("{}: {finding}", server.name)).collect()
    };
    let now: Vec<String> = overview.servers.iter().flat_map(findings).collect();
    let before = std::mem::replace(told, now.iter().cloned().collect());
    now.into_iter().filter(|line| !before.contains(line)).collect()
}

/// Returns a line for each server that is still starting, once.
fn slow(overview: &Overview, told: &mut HashMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for ServerOverview { name, state, .. } in &overview.servers {
        if state == "starting" && !told.contains_key(name) {
            let line = format!("{name}: slow to start; serving without it");
            told.insert(name.clone(), line.clone());
            lines.push(line);
        }
    }
    lines
}

/// Returns the line of a server, unless people were told the same last. That it is started once more is no news.
fn news(server: &ServerOverview, told: &mut HashMap<String, String>) -> Option<String> {
    if server.state == "starting" {
        if let Some(before) = told.get_mut(&server.name).filter(|_| server.problem.is_empty()) {
            // It was ready, and will be once more.
            before.clear();
        }
        return None;
    }
    let line = line(server);
    if told.get(&server.name) == Some(&line) {
        return None;
    }
    told.insert(server.name.clone(), line.clone());
    Some(line)
}

/// Returns the lines of a gateway whose servers are ready, but for those that wait for what their entries lack.
fn complete_lines(overview: &Overview, ready: usize) -> Vec<String> {
    let servers = match overview.servers.len() {
        all if all == ready => counted(all, "server"),
        all => format!("{ready} of {}", counted(all, "server")),
    };
    let tools = counted(overview.tools, "tool");
    let mut lines =
        vec![format!("{servers} ready: {tools} behind discover_tools"), start_line(overview)];
    lines.extend(always_on_line(overview));
    lines.extend(readers_line(&overview.servers));
    lines
}

/// Returns what the tools would cost a host, and what it starts with.
pub(in crate::cli::gateway) fn start_line(overview: &Overview) -> String {
    let Overview { tools, tool_tokens, start_tokens, .. } = overview;
    let less = tool_tokens.saturating_sub(*start_tokens);
    let share = if less == 0 {
        String::new()
    } else {
        format!(" ({:.1}% less)", 100.0 * less as f64 / *tool_tokens as f64)
    };
    format!(
        "{}, {} tokens; a host starts with {}{share}",
        counted(*tools, "tool"),
        grouped(*tool_tokens),
        grouped(*start_tokens)
    )
}

/// Returns which tools hosts see without a search, where the gateway chooses them or the file names some.
pub(in crate::cli::gateway) fn always_on_line(overview: &Overview) -> Option<String> {
    let Overview { always_on, chooses_always_on, .. } = overview;
    let names = always_on.join(", ");
    match (always_on.is_empty(), chooses_always_on) {
        (true, false) => None,
        (true, true) => Some(
            "always on: nothing yet, since the next start chooses by the calls until then"
                .to_owned(),
        ),
        (false, true) => Some(format!("always on, by the calls before this start: {names}")),
        (false, false) => Some(format!("always on: {names}")),
    }
}

/// Returns a number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn line(server: &ServerOverview) -> String {
    let ServerOverview { name, state, transport, protocol, .. } = server;
    let problem = server.problem.lines().next().unwrap_or_default();
    match server.started_in {
        Some(seconds) if state == "ready" || state == "idle" => {
            let tools = counted(server.tools, "tool");
            let line =
                format!("{name}: {state} in {seconds:.1} s, {tools}, {transport}, MCP {protocol}");
            if problem.is_empty() { line } else { format!("{line}: {problem}") }
        }
        _ if problem.is_empty() => format!("{name}: {state}"),
        _ => format!("{name}: {state}: {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_that_a_host_is_spared_are_told() {
        let overview = Overview {
            tools: 182,
            tool_tokens: 60_527,
            start_tokens: 1_994,
            ..Overview::default()
        };
        let line = "182 tools, 60,527 tokens; a host starts with 1,994 (96.7% less)";
        assert_eq!(start_line(&overview), line);
        let few = Overview { tools: 1, tool_tokens: 40, start_tokens: 480, ..Overview::default() };
        assert_eq!(start_line(&few), "1 tool, 40 tokens; a host starts with 480");
    }

    #[test]
    fn tools_that_are_always_on_are_told_with_who_chose_them() {
        let line = |names: &[&str], chooses_always_on| {
            let always_on = names.iter().map(|name| (*name).to_owned()).collect();
            let overview = Overview { always_on, chooses_always_on, ..Overview::default() };
            always_on_line(&overview)
        };
        assert_eq!(line(&[], false), None);
        assert_eq!(line(&["a__b", "a__c"], false).as_deref(), Some("always on: a__b, a__c"));
        let chosen = "always on, by the calls before this start: a__b";
        assert_eq!(line(&["a__b"], true).as_deref(), Some(chosen));
        assert!(line(&[], true).expect("a line").contains("nothing yet"));
    }

    #[test]
    fn a_server_that_waits_for_a_variable_keeps_nobody_else_from_being_told() {
        let server = |name: &str, is_held: bool| ServerOverview {
            name: name.to_owned(),
            state: if is_held { "waiting" } else { "ready" }.to_owned(),
            transport: "stdio".to_owned(),
            protocol: String::new(),
            tools: 2,
            is_searchable: !is_held,
            started_in: None,
            restarts: 0,
            problem: if is_held { "set HUB_TOKEN" } else { "" }.to_owned(),
            findings: Vec::new(),
            withheld: Vec::new(),
            is_held,
            is_circuit_open: false,
            unbelieved_readers: if is_held { 0 } else { 1 },
            leaving: Vec::new(),
        };
        let servers = vec![server("git", false), server("hub", true)];
        assert_eq!(line(&servers[1]), "hub: waiting: set HUB_TOKEN");
        let overview = Overview { servers, tools: 2, ..Overview::default() };
        let lines = complete_lines(&overview, 1);
        assert_eq!(lines[0], "1 of 2 servers ready: 2 tools behind discover_tools");
        assert!(lines[2].starts_with("1 tool says that it only reads (git 1)"), "{lines:?}");
    }

    fn server(state: &str, problem: &str) -> ServerOverview {
        ServerOverview {
            name: "notes".to_owned(),
            state: state.to_owned(),
            transport: "stdio".to_owned(),
            protocol: "2026-07-28".to_owned(),
            tools: 1,
            is_searchable: true,
            started_in: (state == "ready").then_some(1.0),
            restarts: 0,
            problem: problem.to_owned(),
            findings: Vec::new(),
            withheld: Vec::new(),
            is_held: false,
            is_circuit_open: false,
            unbelieved_readers: 0,
            leaving: Vec::new(),
        }
    }

    #[test]
    fn c4_a_slow_server_is_named_once_and_told_again_when_it_is_ready() {
        let of = |servers| Overview { servers, ..Overview::default() };
        let slow_one = of(vec![server("starting", "")]);
        let mut told = HashMap::new();
        let line = "notes: slow to start; serving without it";
        assert_eq!(slow(&slow_one, &mut told), [line]);
        assert!(slow(&slow_one, &mut told).is_empty());
        assert_eq!(news(&server("starting", ""), &mut told), None);
        let ready = news(&server("ready", ""), &mut told);
        assert!(ready.is_some_and(|line| line.starts_with("notes: ready")));
        assert!(slow(&of(vec![server("waiting", "x")]), &mut HashMap::new()).is_empty());
    }

    #[test]
    fn a_problem_is_told_once_however_often_the_server_is_tried() {
        let mut told = HashMap::new();
        let states = [
            ("starting", ""),
            ("waiting", "x"),
            ("starting", "x"),
            ("waiting", "x"),
            ("waiting", "y"),
            ("starting", "y"),
            ("ready", ""),
            ("ready", ""),
            ("starting", ""),
            ("ready", ""),
        ];
        let lines = states.map(|(state, problem)| news(&server(state, problem), &mut told));
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        let ready = "notes: ready in 1.0 s, 1 tool, stdio, MCP 2026-07-28";
        assert_eq!(lines, ["notes: waiting: x", "notes: waiting: y", ready, ready]);
    }

    #[test]
    fn a_server_that_fails_or_needs_a_login_keeps_nothing_back() {
        assert!(!is_settled(&server("starting", "")));
        for (state, problem) in
            [("ready", ""), ("waiting", "x"), ("starting", "x"), ("needs login", "x")]
        {
            assert!(is_settled(&server(state, problem)), "{state}");
        }
        let unregistered = ServerOverview { is_searchable: false, ..server("ready", "") };
        assert!(!is_settled(&unregistered));
    }

    #[test]
    fn a_finding_is_told_once_for_as_long_as_it_is_one() {
        let of = |findings: &[&str]| {
            let findings = findings.iter().map(|&finding| finding.to_owned()).collect();
            let servers = vec![ServerOverview { findings, ..server("ready", "") }];
            Overview { servers, ..Overview::default() }
        };
        let mut told = BTreeSet::new();
        assert_eq!(kept_back(&of(&["a"]), &mut told), ["notes: a"]);
        assert_eq!(kept_back(&of(&["a", "b"]), &mut told), ["notes: b"]);
        assert!(kept_back(&of(&["b"]), &mut told).is_empty());
        assert_eq!(told.len(), 1, "only what is found now is kept");
        assert_eq!(kept_back(&of(&["a", "b"]), &mut told), ["notes: a"]);
    }
}
