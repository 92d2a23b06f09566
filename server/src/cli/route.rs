//! `toolgate route`: shows the active set for some intents, and the tokens that it saves.

mod ranking;
pub(super) mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use toolgate_client::v1;

use super::arguments::ClientArguments;
use super::documents::{self, AgentStateFile};
use super::failure::{Exit, Failure};
use super::{json, names, output};
use toolgate_core::deferral::Mode;

const EXAMPLES: &str = "\
Examples:
  toolgate route \"why did the nightly build fail?\"
  toolgate route \"book a room\" \"tell the team\" --top-k 5
  toolgate route \"push my branch\" --state state.json --explain
  toolgate route \"and now the diff\" --handle \"$HANDLE\" --json | jq -r .active_set_handle

A state file says what the agent has done and may do; preconditions look at nothing else:
  {\"scopes\": [\"repo:write\"], \"milestones\": [\"plan_approved\"],
   \"calls\": [{\"tool\": \"git_status\", \"status\": \"succeeded\", \"turn\": 1}]}";

const DEADLINE: Duration = Duration::from_secs(10);

/// Ask which tools fit what an agent wants to do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Route {
    /// What the agent wants this turn, in words. Several are one turn's: a tool needs to fit one of them.
    #[arg(required = true, value_name = "INTENT")]
    intents: Vec<String>,
    /// What the agent has done and may do (JSON, TOML or YAML).
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The most tools to choose, 1 to 100. Default: the server's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    top_k: Option<u32>,
    /// The least overlap of a chosen tool, -1 to 1. Default: tools are held against the best one.
    #[arg(long, value_name = "COSINE", value_parser = parse_threshold, allow_negative_numbers = true)]
    threshold: Option<f32>,
    /// After the chosen tools, the next ones of the ranking as signatures, 0 to 100.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    tail: u32,
    /// The most tokens that new schemas may cost.
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u32>,
    /// The most tokens that all schemas of the active set may cost. Kept tools that the conversation has left
    /// behind go for new ones.
    #[arg(long, value_name = "TOKENS")]
    active_budget: Option<u32>,
    /// Tokens of the messages so far: the set is kept when changing it costs more in lost cache.
    #[arg(long, value_name = "TOKENS")]
    history: Option<u32>,
    /// Change the set even when the lost cache costs more.
    #[arg(long)]
    ignore_cache_cost: bool,
    /// The rule that chooses tools. With tool-attention, a threshold that is not given is 0.28.
    #[arg(long, value_enum, value_name = "RULE", default_value_t = SelectionRule::Own)]
    selection_rule: SelectionRule,
    /// How much of each tool the model is sent.
    #[arg(long, value_enum, value_name = "DETAIL", default_value_t = Detail::Schemas)]
    detail: Detail,
    /// Only tools of this MCP server. May be given more than once.
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// Have this tool in the active set whatever its overlap. May be given more than once.
    #[arg(long = "pin", value_name = "TOOL")]
    pinned: Vec<String>,
    /// Leave this tool out. May be given more than once.
    #[arg(long = "exclude", value_name = "TOOL")]
    excluded: Vec<String>,
    /// The model's context window, to see how much of it the tools take.
    #[arg(long, value_name = "TOKENS")]
    window: Option<u32>,
    /// Whether tools are found when needed instead of all sent: always, auto, auto:N or off. Default: the
    /// tenant's mode, else the server's.
    #[arg(long, value_name = "MODE")]
    deferral: Option<Mode>,
    /// The model that will see the tools.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    model: String,
    /// The handle of the turn before: its tools keep their places.
    #[arg(long, value_name = "HANDLE", default_value = "", hide_default_value = true)]
    handle: String,
    /// Also say which tools were left out, and why.
    #[arg(long)]
    explain: bool,
    /// Print nothing but the handle, for --handle of the next turn and of `toolgate gate`.
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    handle_only: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArguments,
}

/// How much of each tool the model is sent.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Detail {
    /// Names only.
    Names,
    /// One line each.
    Signatures,
    /// Whole definitions.
    Schemas,
    /// Names that the provider expands to definitions it holds.
    References,
}

/// The rule that chooses tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SelectionRule {
    /// Toolgate's own: overlap and words, packs, what was called before, and the tools of the turn before.
    Own,
    /// The paper's: the tools of the highest overlap that reach the threshold, each by itself, and nothing else.
    ToolAttention,
}

impl From<SelectionRule> for v1::SelectionRule {
    fn from(rule: SelectionRule) -> Self {
        match rule {
            SelectionRule::Own => Self::Unspecified,
            SelectionRule::ToolAttention => Self::ToolAttention,
        }
    }
}

impl From<Detail> for v1::Detail {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Names => Self::Names,
            Detail::Signatures => Self::Signatures,
            Detail::Schemas => Self::Schemas,
            Detail::References => Self::References,
        }
    }
}

pub(super) async fn run(mut route: Route) -> Result<Exit, Failure> {
    if route.intents.iter().any(|intent| intent.trim().is_empty()) {
        return Err(Failure::usage(
            "an intent is blank: say what the agent wants to do, such as: toolgate route \"why did the nightly build fail?\"",
        ));
    }
    let state = read_state(route.state.take())?;
    let client = route.client.connect(DEADLINE).await?;
    let as_json = route.json;
    let handle_only = route.handle_only;
    let explained = route.explain;
    if !as_json && !handle_only {
        unquoted(&route.intents).iter().for_each(output::note);
    }
    let mut request = route.into_request(state);
    // The text report explains each tool.
    if let Some(options) = request.options.as_mut().filter(|_| !as_json && !handle_only) {
        options.explain = true;
    }
    let servers =
        request.options.as_ref().map(|options| options.servers.clone()).unwrap_or_default();
    let answer = match client.route(request).await {
        Ok(answer) => answer,
        Err(error) => {
            let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
            return Err(names::failure_of(&client, &servers, error).await);
        }
    };
    if handle_only {
        output::print(&format!("{}\n", answer.active_set_handle))?;
    } else if as_json {
        output::print_json(&json::route(&answer))?;
    } else {
        output::print(&report::report(&answer, explained))?;
    }
    Ok(Exit::Done)
}

/// Reads the state from a file; `None` without a file.
pub(super) fn read_state(path: Option<PathBuf>) -> Result<Option<v1::AgentState>, Failure> {
    path.map(|path| documents::read::<AgentStateFile>(&path).map(Into::into)).transpose()
}

fn parse_threshold(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(number) if (-1.0..=1.0).contains(&number) => Ok(number),
        _ => Err("an overlap is a number from -1 to 1".into()),
    }
}

impl Route {
    fn into_request(self, state: Option<v1::AgentState>) -> v1::RouteRequest {
        let intents = self.intents.into_iter().map(|text| v1::Intent { text, weight: None });
        let (deferral, deferral_percent) = match self.deferral {
            None => (v1::DeferralMode::Unspecified, None),
            Some(Mode::Always) => (v1::DeferralMode::Always, None),
            Some(Mode::Auto(percent)) => (v1::DeferralMode::Auto, Some(percent.into())),
            Some(Mode::Off) => (v1::DeferralMode::Off, None),
        };
        v1::RouteRequest {
            intents: intents.collect(),
            state,
            active_set_handle: self.handle,
            options: Some(v1::RouteOptions {
                top_k: self.top_k,
                threshold: self.threshold,
                schema_token_budget: self.budget,
                detail: v1::Detail::from(self.detail).into(),
                pinned_tools: self.pinned,
                excluded_tools: self.excluded,
                servers: self.servers,
                context_window: self.window,
                explain: self.explain,
                active_token_budget: self.active_budget,
                history_tokens: self.history,
                ignore_cache_cost: self.ignore_cache_cost,
                deferral: deferral.into(),
                deferral_percent,
                model: self.model,
                signature_tail: self.tail,
                selection_rule: v1::SelectionRule::from(self.selection_rule).into(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}

/// Returns a hint that words without quotes are separate intents, if they look like one sentence.
fn unquoted(intents: &[String]) -> Option<String> {
    let is_word = |intent: &String| !intent.trim().contains(char::is_whitespace);
    (intents.len() > 1 && intents.iter().all(is_word)).then(|| {
        format!(
            "these are {} intents of a word each; quote what is one: \"{}\"",
            intents.len(),
            intents.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::arguments::{Arguments, Command};
    use clap::Parser as _;
    use toolgate_client::v1;

    #[test]
    fn the_line_becomes_the_request() {
        let line = "toolgate route a b --top-k 3 --threshold -0.25 --detail names --server git --pin p \
                    --exclude x --exclude y --handle h --explain --window 1000 --budget 5 --active-budget 9 \
                    --history 7 --ignore-cache-cost --deferral auto:7 --model m --tail 8 --selection-rule tool-attention";
        let parsed = Arguments::try_parse_from(line.split_whitespace()).expect("a good line");
        let Command::Route(route) = parsed.command else {
            panic!("{:?}", parsed.command);
        };
        let request = route.into_request(None);
        let texts: Vec<_> = request.intents.iter().map(|intent| intent.text.as_str()).collect();
        assert_eq!((texts, request.active_set_handle.as_str()), (vec!["a", "b"], "h"));
        let want = v1::RouteOptions {
            top_k: Some(3),
            threshold: Some(-0.25),
            schema_token_budget: Some(5),
            detail: v1::Detail::Names.into(),
            pinned_tools: vec!["p".into()],
            excluded_tools: vec!["x".into(), "y".into()],
            servers: vec!["git".into()],
            context_window: Some(1000),
            explain: true,
            active_token_budget: Some(9),
            history_tokens: Some(7),
            ignore_cache_cost: true,
            deferral: v1::DeferralMode::Auto.into(),
            deferral_percent: Some(7),
            model: "m".into(),
            signature_tail: 8,
            selection_rule: v1::SelectionRule::ToolAttention.into(),
            ..Default::default()
        };
        assert_eq!(request.options, Some(want));
    }

    #[test]
    fn words_without_quotes_are_told() {
        let told = |intents: &[&str]| {
            super::unquoted(&intents.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        let text = told(&["show", "me", "changes"]).expect("a note");
        assert!(text.contains("3 intents") && text.contains("\"show me changes\""), "{text}");
        assert_eq!(told(&["push"]), None);
        assert_eq!(told(&["book a room", "email"]), None);
    }

    #[test]
    fn what_is_not_said_is_left_to_the_server() {
        let parsed = Arguments::try_parse_from(["toolgate", "route", "a"]).expect("a good line");
        let Command::Route(route) = parsed.command else {
            panic!("{:?}", parsed.command);
        };
        let options = route.into_request(None).options.expect("options");
        assert_eq!(
            (options.top_k, options.threshold, options.schema_token_budget),
            (None, None, None)
        );
    }
}
