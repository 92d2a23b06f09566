//! `toolgate run -- PROGRAM`: a program whose requests to its provider go through a proxy of its own.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_gateway_llm::{Config, Cost, ModelTotals, Provider, Savings, Totals, Usd, meaning_of};

use super::failure::{Exit, Failure};
use super::gateway::GatewayTelemetry;
use super::llm::{PlaneArguments, Prepared, listen, read};
use super::text::{counted, one_line};
use super::{core_files, output};

const EXAMPLES: &str = "\
Examples:
  toolgate run -- claude
  toolgate run -- gemini
  toolgate run -- python agent.py

The program's ANTHROPIC_BASE_URL, OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL are the proxy's; requests go on to those that this
environment has, else to the providers. Codex reads none of them: it is told by an argument, if the environment has
CODEX_API_KEY or OPENAI_BASE_URL. The exit code is the program's. docs/llm-proxy.md says more.";

/// Time for the proxy to end behind the program.
const END_MAX: Duration = Duration::from_secs(5);

/// Run a program whose requests carry few tools: its base URLs are those of an LLM proxy that lives as long as it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// The proxy's file. Default: llm.toml, if there is one. llm.listen is not read.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    plane: PlaneArguments,
    /// The program, and its arguments.
    #[arg(last = true, required = true, num_args = 1.., value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Variable of a provider's base URL.
struct BaseUrl {
    provider: Provider,
    variable: &'static str,
    /// End of the variable's value that requests bring along themselves.
    version: &'static str,
}

const BASE_URLS: [BaseUrl; 3] = [
    BaseUrl { provider: Provider::Anthropic, variable: "ANTHROPIC_BASE_URL", version: "" },
    BaseUrl { provider: Provider::OpenAi, variable: "OPENAI_BASE_URL", version: "/v1" },
    BaseUrl { provider: Provider::Gemini, variable: "GOOGLE_GEMINI_BASE_URL", version: "" },
];

/// Time for the decision on the first request of a program, where the file says none. Its tools are embedded meanwhile, and a program that
/// has just started may be a short one, whose every request would be sent as it came.
const FIRST_DECISION: Duration = Duration::from_secs(5);

pub(super) fn run(run: Run) -> Result<Exit, Failure> {
    core_files::write_none();
    let runtime = output::runtime()?;
    let outcome = runtime.block_on(Box::pin(run_program(run)));
    runtime.shutdown_background();
    outcome
}

async fn run_program(run: Run) -> Result<Exit, Failure> {
    let telemetry =
        GatewayTelemetry::start_beside_program(&run.plane.server_config().load(Vec::new())?);
    let mut config = read(run.config.as_deref())?;
    config.llm.first_decision_timeout.get_or_insert(FIRST_DECISION);
    take_base_urls(&mut config)?;
    if let Some(problem) = config.problem() {
        return Err(Failure::usage(problem));
    }
    let listener =
        listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "llm.listen or --listen").await?;
    let address = listener.local_addr()?;
    let savings = Savings::default();
    let stop = CancellationToken::new();
    // The program reaches it, and nobody else knows its port.
    let authentication = None;
    let prepared = Prepared {
        config,
        listener,
        ext_proc: None,
        savings: savings.clone(),
        authentication,
        stop: stop.clone(),
    };
    let (sender, ready) = oneshot::channel();
    let told = || {
        // Nobody waits for it any more if the program could not be started.
        let _ = sender.send(());
    };
    let serving = prepared.serve(&run.plane, told);
    let running = async {
        // Without a proxy the program is not started; what is wrong is told below.
        if ready.await.is_err() {
            return Ok(None);
        }
        let ended = run_child(&run.command, address).await;
        stop.cancel();
        ended.map(Some)
    };
    let serving = async {
        tokio::select! {
            served = Box::pin(serving) => served,
            () = async { stop.cancelled().await; tokio::time::sleep(END_MAX).await } => Ok(()),
        }
    };
    let (served, ended) = tokio::join!(Box::pin(serving), running);
    telemetry.stop().await;
    let ended = ended?;
    output::note(report(&savings.totals(), &savings.accounts()));
    match ended {
        Some(status) => Ok(Exit::Program(code(status))),
        None => served.map(|()| Exit::Failed),
    }
}

impl BaseUrl {
    /// Returns the value in this environment, without slashes at its end; `None` if there is none.
    fn own(&self) -> Option<String> {
        let value = std::env::var(self.variable).ok()?;
        let value = value.trim().trim_end_matches('/');
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns the value for a program behind the proxy, in whose place `own` would stand: it ends with a version if that
    /// does, so that the program's paths lead to the same places.
    fn for_program(&self, address: SocketAddr, own: Option<&str>) -> String {
        let is_versioned = own.is_none_or(|own| own.ends_with(self.version));
        let version = if is_versioned { self.version } else { "" };
        format!("http://{address}/{}{version}", self.provider.name())
    }
}

/// Takes the base URLs of this environment for the providers'.
fn take_base_urls(config: &mut Config) -> Result<(), Failure> {
    for base in &BASE_URLS {
        let Some(value) = base.own() else { continue };
        let value = value.strip_suffix(base.version).unwrap_or(&value);
        let url = value
            .parse()
            .map_err(|error| Failure::usage(format!("{} is no URL: {error}", base.variable)))?;
        *config.upstream.of_mut(base.provider) = url;
    }
    Ok(())
}

async fn run_child(command: &[OsString], address: SocketAddr) -> Result<ExitStatus, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("name a program behind `--`"));
    };
    let mut child = Command::new(program);
    if is_codex(program) {
        child.args(for_codex(address, arguments));
    }
    child.args(arguments).kill_on_drop(true);
    for base in &BASE_URLS {
        child.env(base.variable, base.for_program(address, base.own().as_deref()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        // A proxy of the network can't reach this machine's own addresses.
        let known = std::env::var(name).unwrap_or_default();
        let all = if known.is_empty() { String::new() } else { format!("{known},") };
        child.env(name, format!("{all}127.0.0.1,localhost"));
    }
    let child = child.spawn().map_err(|error| {
        Failure::new(format!("{} can't be started: {error}", program.to_string_lossy()))
    })?;
    wait(child).await
}

/// Key of Codex's settings for the base URL of OpenAI, which it reads from no variable.
const CODEX_KEY: &str = "openai_base_url";

/// Variable with a key for Codex.
const CODEX_API_KEY: &str = "CODEX_API_KEY";

fn is_codex(program: &OsStr) -> bool {
    Path::new(program).file_stem().is_some_and(|name| name == "codex")
}

/// Returns the arguments that point Codex at the proxy. Without a key in the environment it may be logged in with ChatGPT,
/// whose requests go to another place than OpenAI's API, unless that place is named.
fn for_codex(address: SocketAddr, own_arguments: &[OsString]) -> Vec<OsString> {
    let [_, openai, _] = &BASE_URLS;
    let own = openai.own();
    let is_set = own_arguments
        .iter()
        .any(|argument| argument.to_string_lossy().trim_start().starts_with(CODEX_KEY));
    if is_set {
        return Vec::new();
    }
    if own.is_none() && std::env::var_os(CODEX_API_KEY).is_none() {
        output::note(format!(
            "toolgate: {CODEX_API_KEY} is not set, so that codex goes past the proxy; docs/llm-proxy.md says how it does not"
        ));
        return Vec::new();
    }
    let url = openai.for_program(address, own.as_deref());
    vec!["-c".into(), format!("{CODEX_KEY}={url:?}").into()]
}

/// Waits for a program. Signals that end this process go to it instead.
#[cfg(unix)]
async fn wait(mut child: Child) -> Result<ExitStatus, Failure> {
    use std::io::IsTerminal as _;

    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let mut hangups = signal(SignalKind::hangup())?;
    let mut quits = signal(SignalKind::quit())?;
    // A terminal sends its signals to the program itself.
    let has_terminal = std::io::stdin().is_terminal();
    let process = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    loop {
        let signal = tokio::select! {
            ended = child.wait() => return Ok(ended?),
            _ = interrupts.recv() => (!has_terminal).then_some(Signal::INT),
            _ = quits.recv() => (!has_terminal).then_some(Signal::QUIT),
            _ = terminations.recv() => Some(Signal::TERM),
            _ = hangups.recv() => Some(Signal::HUP),
        };
        if let (Some(process), Some(signal)) = (process, signal) {
            // It may have ended just now.
            let _ = kill_process(process, signal);
        }
    }
}

#[cfg(not(unix))]
async fn wait(mut child: Child) -> Result<ExitStatus, Failure> {
    Ok(child.wait().await?)
}

/// Returns the exit code for a program's end, as shells give it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(1);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Returns what was saved, for a reader. Accounts are by model.
fn report(totals: &Totals, accounts: &[ModelTotals]) -> String {
    let passed: u64 = totals.passed.values().sum();
    let rewritten = counted(usize::try_from(totals.rewritten).unwrap_or(usize::MAX), "request");
    let mut lines = vec![format!(
        "toolgate: {rewritten} with deferred tools, {passed} sent as they came; about {} tokens saved, net (computed)",
        totals.saved_tokens()
    )];
    if totals.searches > 0 {
        let requests =
            counted(usize::try_from(totals.search_requests).unwrap_or(usize::MAX), "request");
        lines.push(format!(
            "  {} searches were answered, with {requests} more; what hosts did not see took about {} tokens (computed)",
            totals.searches, totals.hop_tokens
        ));
    }
    let usage = &totals.usage;
    if usage.answers > 0 {
        lines.push(format!(
            "  the provider counted, of these: {} tokens of input, {} from its cache, {} of output",
            usage.input_tokens, usage.cached_tokens, usage.output_tokens
        ));
    }
    lines.extend(totals.cost.as_ref().map(in_money));
    lines.extend(without_price(accounts));
    if !totals.passed.is_empty() {
        lines.push("  sent as they came:".to_owned());
        lines.extend(totals.passed.iter().map(|(reason, count)| passed_line(reason, *count)));
    }
    lines.join("\n")
}

/// Returns how many requests were sent as they came for a reason, and what it means.
fn passed_line(reason: &str, count: u64) -> String {
    let meaning = meaning_of(reason).unwrap_or("docs/llm-proxy.md says more");
    format!("    {count} {reason}: {meaning}")
}

/// Returns what requests cost and would have cost. All of it is of those whose usage the provider told.
fn in_money(cost: &Cost) -> String {
    let requests = counted(usize::try_from(cost.requests).unwrap_or(usize::MAX), "request");
    let saved = cost.saved();
    let net =
        if saved < Usd::default() { format!("{} more", -saved) } else { format!("{saved} saved") };
    let mut text = format!(
        "  in money, by your prices: {requests} cost {}, without Toolgate about {} (computed); about {net}, net (computed)",
        cost.spent, cost.without
    );
    if cost.hidden > Usd::default() {
        text.push_str(&format!(
            "\n  of this, requests that hosts did not see cost {}",
            cost.hidden
        ));
    }
    if cost.lost_cache > Usd::default() {
        text.push_str(&format!(
            "\n  of this, lost cache cost about {} (computed)",
            cost.lost_cache
        ));
    }
    text
}

/// Returns how to have a report in money of models whose requests were rewritten and whose price is not known.
fn without_price(accounts: &[ModelTotals]) -> Option<String> {
    let is_unknown = |account: &&ModelTotals| {
        let Totals { cost, usage, .. } = &account.totals;
        cost.is_none() && usage.answers > 0
    };
    let names: Vec<String> =
        accounts.iter().filter(is_unknown).map(|account| one_line(&account.model, 64)).collect();
    let first = names.first()?;
    Some(format!(
        "  no price is known of {}; llm.toml sets one, in US dollars of a million tokens: [llm.prices] {first:?} = {{ input = ..., output = ... }}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_without_a_version_has_none_for_the_program() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 7));
        let [anthropic, openai, _] = &BASE_URLS;
        let proxy = "http://127.0.0.1:7/openai";
        assert_eq!(openai.for_program(address, None), format!("{proxy}/v1"));
        assert_eq!(openai.for_program(address, Some("https://x/api/v1")), format!("{proxy}/v1"));
        assert_eq!(openai.for_program(address, Some("https://x/api/v4")), proxy);
        let own = Some("https://x");
        assert_eq!(anthropic.for_program(address, own), "http://127.0.0.1:7/anthropic");
    }

    #[test]
    fn the_report_marks_what_is_computed() {
        let mut totals =
            Totals { rewritten: 2, deferred_tokens: 150, hop_tokens: 50, ..Totals::default() };
        totals.passed.insert("few-tools", 3);
        let text = report(&totals, &[]);
        assert!(
            text.contains("2 requests") && text.contains("about 100 tokens saved, net"),
            "{text}"
        );
        assert!(text.contains("computed"), "{text}");
        let passed = "\n    3 few-tools: the definitions are smaller than `defer_above`";
        assert!(text.ends_with(passed), "{text}");
        assert!(!text.contains("provider counted"), "{text}");
        assert!(!text.contains("money") && !text.contains("price"), "{text}");
    }

    #[test]
    fn a_model_without_a_price_is_told_how_to_get_one() {
        let mut totals = Totals { rewritten: 1, ..Totals::default() };
        totals.usage.answers = 1;
        let account = |model: &str, totals: &Totals| ModelTotals {
            tenant: "a".into(),
            model: model.to_owned(),
            totals: totals.clone(),
        };
        let priced = Totals { cost: Some(Cost::default()), ..totals.clone() };
        let accounts = [account("new-1", &totals), account("known", &priced)];
        let text = report(&totals, &accounts);
        assert!(text.contains("no price is known of new-1; llm.toml sets one"), "{text}");
        assert!(text.contains("[llm.prices] \"new-1\" = { input = ..., output = ... }"), "{text}");
        assert!(!text.contains("in money"), "{text}");
        let passed = [account("new-1", &Totals::default())];
        assert!(!report(&totals, &passed).contains("no price"), "nothing was measured of it");
        let text = report(&Totals { cost: priced.cost, ..totals.clone() }, &accounts[1..]);
        assert!(text.contains("0 requests cost $0.00, without Toolgate about $0.00"), "{text}");
        assert!(!text.contains("no price") && !text.contains("lost cache"), "{text}");
    }
}
