//! Arguments that subcommands share, and the list of subcommands.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use toolgate_client::{Client, ClientOptions};
use toolgate_encoder_worker::{HELP, WorkerArguments};

use super::credentials::CredentialArguments;
use super::failure::{Exit, Failure};
use super::running_gateway::RunningGateway;
use super::{
    bench, calibrate, catalog, completions, config, doctor, eval, gate, gateway, key, lint, llm,
    memory, model, output, pack, policy, register, route, run, search, serve, servers, store,
    summarize, tokens, tools, usage,
};
use toolgate_config::units::parse_duration;
use toolgate_config::{Config, FlagValue, Parsed, Setting, Source, keys, load};

/// Address of a server that listens where it usually does.
pub(super) const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7070";

/// Name for the plane within a gateway.
pub(super) const GATEWAY: &str = "gateway";

const EXAMPLES: &str = "\
Examples:
  toolgate model fetch                          get the encoder, once
  toolgate serve                                start a server on 127.0.0.1:7070
  toolgate register servers/                    register every tools/list in a directory
  toolgate route \"what changed since friday?\"   ask which tools fit
  toolgate doctor                               what a server would lack here

Exit codes:
  0  done
  1  failed
  2  the command line makes no sense
  3  gate refused a call, a registration rejected a tool, a search found nothing, or a check found something
  4  no server could be reached
  130  interrupted by Ctrl-C

Results go to stdout, everything else to stderr. --json gives results for machines. NO_COLOR is honoured.";

/// A routing plane for the tools of LLM agents: agents say what they want to do, Toolgate answers with the
/// few tools that fit and may be used, and later says whether the model's call may run.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, after_help = EXAMPLES, propagate_version = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Serve(serve::Serve),
    Register(register::Register),
    Unregister(servers::Unregister),
    Servers(servers::Servers),
    Route(route::Route),
    Search(search::Search),
    Gate(gate::Gate),
    Gateway(gateway::Gateway),
    Llm(llm::Llm),
    Run(run::Run),
    Tools(tools::Tools),
    Usage(usage::Usage),
    Policy(policy::Policy),
    Catalog(catalog::Catalog),
    Memory(memory::Memory),
    Store(store::StoreCommand),
    Key(key::Key),
    Model(model::Model),
    Doctor(doctor::Doctor),
    Eval(eval::Eval),
    Calibrate(calibrate::Calibrate),
    Bench(bench::Bench),
    Lint(lint::Lint),
    Summarize(summarize::Summarize),
    Pack(pack::PackCommand),
    Tokens(tokens::Tokens),
    Config(config::Config),
    Completions(completions::Completions),
    EncoderWorker(EncoderWorker),
    /// End the processes of a gateway's servers when the gateway is killed; it starts this itself.
    #[command(name = SUPERVISE, hide = true)]
    Supervise,
    /// Enter a sandbox and become the program of a gateway's server; the gateway starts this itself.
    #[command(name = SANDBOXED, hide = true, disable_help_flag = true)]
    Sandboxed {
        /// The sandbox, the program, and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// Name of the command that a gateway starts to have its servers' processes ended with it.
pub(super) const SUPERVISE: &str = "supervise-processes";

/// Name of the command that a gateway starts to have a server's process enter its sandbox.
pub(super) const SANDBOXED: &str = "sandboxed-process";

/// Serve a sentence encoder over gRPC: one process for one device. `serve --gpu` starts these itself.
#[derive(Debug, Args)]
#[command(after_help = HELP, args_override_self = true)]
pub(super) struct EncoderWorker {
    #[command(flatten)]
    pub(super) worker: WorkerArguments,
}

/// Which server to talk to, and for whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct ClientArguments {
    /// The server's address, or `gateway` for the plane within a gateway that runs on this machine. Default:
    /// http://127.0.0.1:7070; where nobody answers there, commands that read ask the gateway.
    #[arg(long, env = "TOOLGATE_ENDPOINT", value_name = "URL")]
    pub(super) endpoint: Option<String>,
    /// The tenant. Without one the server uses "default".
    #[arg(
        long,
        env = "TOOLGATE_TENANT",
        default_value = "",
        hide_default_value = true,
        value_name = "NAME"
    )]
    pub(super) tenant: String,
    /// How long a call may take, such as 500ms or 10s. The server may cut it.
    #[arg(long, value_parser = parse_duration, value_name = "DURATION")]
    pub(super) deadline: Option<Duration>,
    #[command(flatten)]
    pub(super) credentials: CredentialArguments,
}

impl ClientArguments {
    /// Connects to the server, to read. Where nobody answers at the default, the gateway that runs on this machine is asked.
    /// `deadline` applies if the user gives none.
    pub(super) async fn connect(&self, deadline: Duration) -> Result<Client, Failure> {
        let failure = match self.connect_as_named(deadline).await {
            Err(failure) if self.may_ask_gateway(&failure) => failure,
            connected => return connected,
        };
        let Some(gateway) = running_gateway() else { return Err(failure) };
        let options = gateway.add_to(self.options(deadline)?, self.credentials.key()?.is_some());
        // One that is about to end does not answer.
        let Ok(client) = Client::connect(&gateway.plane, options).await else {
            return Err(failure);
        };
        output::note(format_args!("asking the plane of the gateway that runs, {}", gateway.plane));
        Ok(client)
    }

    /// Connects to the server, to change something: the catalog that is meant, and no other. `deadline` applies if the user
    /// gives none.
    pub(super) async fn connect_to_change(&self, deadline: Duration) -> Result<Client, Failure> {
        let failure = match self.connect_as_named(deadline).await {
            Err(failure) if self.may_ask_gateway(&failure) => failure,
            connected => return connected,
        };
        if running_gateway().is_none() {
            return Err(failure);
        }
        Err(Failure::unreachable(format!(
            "no service answers at {DEFAULT_ENDPOINT}; a gateway runs here: --endpoint {GATEWAY}"
        )))
    }

    async fn connect_as_named(&self, deadline: Duration) -> Result<Client, Failure> {
        let options = self.options(deadline)?;
        if self.endpoint.as_deref() == Some(GATEWAY) {
            let none = || Failure::unreachable("no gateway runs in the usual data directory");
            let gateway = running_gateway().ok_or_else(none)?;
            let options = gateway.add_to(options, self.credentials.key()?.is_some());
            return Ok(Client::connect(&gateway.plane, options).await?);
        }
        let endpoint = self.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT);
        Ok(Client::connect(endpoint, options).await?)
    }

    /// Returns true if nobody answers where no endpoint was named.
    fn may_ask_gateway(&self, failure: &Failure) -> bool {
        self.endpoint.is_none() && failure.exit() == Exit::Unreachable
    }

    fn options(&self, deadline: Duration) -> Result<ClientOptions, Failure> {
        self.credentials.add_to(ClientOptions {
            deadline: self.deadline.unwrap_or(deadline),
            tenant: self.tenant.clone(),
            ..Default::default()
        })
    }
}

/// Returns the data directory of a gateway that commands look for; `None` if the configuration makes no sense.
pub(super) fn usual_gateway_folder() -> Option<PathBuf> {
    let file = std::env::var_os("TOOLGATE_CONFIG").map(PathBuf::from);
    let file = file.filter(|path| !path.as_os_str().is_empty());
    let usual = load(file.as_deref(), Vec::new()).ok()?.config.store.path;
    Some(usual.join(super::gateway::DATA_FOLDER))
}

/// Returns the gateway that runs in the usual data directory.
fn running_gateway() -> Option<RunningGateway> {
    RunningGateway::read(&usual_gateway_folder()?)
}

/// The server's own configuration.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub(super) struct ConfigArguments {
    /// The configuration file (TOML). Without it, toolgate/toolgate.toml in the user's configuration
    /// directory is read if it is there.
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Set one key, such as --set router.top_k=5. May be given more than once.
    #[arg(long = "set", value_parser = parse_setting, value_name = "KEY=VALUE")]
    pub(super) settings: Vec<(String, String)>,
}

impl ConfigArguments {
    /// Loads the configuration with `named` flags over `--set`, and prints each of its warnings once in this process.
    pub(super) fn load(&self, named: Vec<FlagValue>) -> Result<Parsed, Failure> {
        let file = self.config.as_deref().filter(|path| !path.as_os_str().is_empty());
        let parsed = load(file, self.flags().chain(named).collect())?;
        let warnings = parsed.warnings.iter().map(ToString::to_string);
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        untold(&mut told, warnings).iter().for_each(output::warn);
        drop(told);
        Ok(parsed)
    }

    /// Returns the settings of these keys that a file, the environment or `--set` names; none if these make no configuration by
    /// themselves. Prints no warnings.
    pub(super) fn named(&self, keys: &[&str]) -> Vec<Setting> {
        let file = self.config.as_deref().filter(|path| !path.as_os_str().is_empty());
        let Ok(parsed) = load(file, self.flags().collect()) else { return Vec::new() };
        let is_named = |setting: &&Setting| {
            !matches!(setting.source, Source::Default) && keys.contains(&setting.key.name)
        };
        parsed.settings.iter().filter(is_named).cloned().collect()
    }

    /// Loads the configuration, with the encoder's model in `model_dir` if that is given.
    pub(super) fn load_for_model(&self, model_dir: Option<&Path>) -> Result<Config, Failure> {
        Ok(self.load(model_flag(model_dir))?.config)
    }

    fn flags(&self) -> impl Iterator<Item = FlagValue> {
        self.settings.iter().map(|(key, value)| FlagValue {
            flag: format!("--set {key}"),
            key: key.clone(),
            value: value.clone(),
        })
    }
}

/// Warnings that were printed. Some commands load a configuration more than once.
static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Returns the warnings that were not told yet.
fn untold(told: &mut BTreeSet<String>, warnings: impl Iterator<Item = String>) -> Vec<String> {
    warnings.filter(|warning| told.insert(warning.clone())).collect()
}

/// Returns the flag `--model-dir` as the configuration key that it sets.
pub(super) fn model_flag(model_dir: Option<&Path>) -> Vec<FlagValue> {
    let flag = model_dir.map(|directory| FlagValue {
        flag: "--model-dir".into(),
        key: keys::ENCODER_MODEL_DIR.to_string(),
        value: directory.to_string_lossy().into_owned(),
    });
    flag.into_iter().collect()
}

pub(super) fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
        None => Err("write KEY=VALUE, such as router.top_k=5".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use toolgate_model_hub::KnownModel;

    #[test]
    fn a_warning_is_told_once() {
        let mut told = BTreeSet::new();
        let mut told_of =
            |warnings: [&str; 2]| untold(&mut told, warnings.into_iter().map(str::to_owned));
        assert_eq!(told_of(["a", "b"]), ["a", "b"]);
        assert_eq!(told_of(["b", "c"]), ["c"]);
    }

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_grammar_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_subcommand_has_words_and_examples() {
        let hidden = |command: &&clap::Command| command.is_hide_set();
        for command in Arguments::command().get_subcommands().filter(|one| !hidden(one)) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string);
            assert!(help.is_some_and(|help| help.contains("Example")), "{}", command.get_name());
        }
    }

    #[test]
    fn only_commands_that_name_no_endpoint_may_ask_the_gateway() {
        #[derive(Parser)]
        struct Asking {
            #[command(flatten)]
            client: ClientArguments,
        }
        let may_ask = |line: &str, failure: &Failure| {
            let asking = Asking::try_parse_from(line.split(' ')).expect("arguments");
            asking.client.may_ask_gateway(failure)
        };
        let unanswered = Failure::unreachable("nobody answers");
        assert!(may_ask("toolgate", &unanswered));
        assert!(!may_ask("toolgate", &Failure::new("refused")));
        assert!(!may_ask("toolgate --endpoint http://127.0.0.1:7070", &unanswered));
    }

    #[test]
    fn help_names_every_model() {
        for line in ["toolgate model fetch --help", "toolgate model path --help"] {
            let help = parse(line).expect_err("help is no command").to_string();
            assert!(KnownModel::NAMES.iter().all(|name| help.contains(name)), "{help}");
        }
    }

    #[test]
    fn good_lines_are_taken() {
        for line in [
            "toolgate serve --listen 0.0.0.0:1 --set router.top_k=5 --set log.level=debug",
            "toolgate register a.json b.json --mode merge --tenant acme --all-or-nothing",
            "toolgate register git.json --server git --settings git.toml --json",
            "toolgate register --pending a --pending b --json",
            "toolgate route one two --top-k 3 --threshold -0.5 --explain --state s.json --json",
            "toolgate gate --handle h --call a --arguments {} --call b --arguments {}",
            "toolgate search slack --max-results 3 --detail names --state s.json --json",
            "toolgate tools --server git --json",
            "toolgate usage",
            "toolgate usage --since 2026-11-01 --until 2026-11-02T10:00:00Z --json --tenant acme",
            "toolgate usage --since 7d",
            "toolgate policy set p.yaml --etag p3",
            "toolgate policy get --json --tenant acme",
            "toolgate policy check p.yaml --state s.json",
            "toolgate policy schema",
            "toolgate model fetch --from dir",
            "toolgate model fetch --model multilingual-e5-small --model-dir dir",
            "toolgate model fetch --model ALL-minilm-l6-v2",
            "toolgate model path --model multilingual-e5-small",
            "toolgate doctor --json",
            "toolgate eval --catalog d --queries q.jsonl --ranked r.jsonl --json j.json --baseline",
            "toolgate eval --queries q.json --format bfcl --answers a.json --no-tool n.jsonl --seed 2",
            "toolgate eval --queries q.json --json j.json --per-query --markdown m.md --plots p --resamples 0",
            "toolgate eval --queries q.json --against c.toml --against-set router.top_k=3 --compare j.json",
            "toolgate calibrate --catalog d --queries q --no-tool n --rule threshold --learn --out p.yaml --json",
            "toolgate calibrate --catalog d --queries q --kept 0.9 --false-rejects 0",
            "toolgate tokens a.json b --json",
            "toolgate bench tax --tasks 20 --seed 7 --markdown t.md --json t.json",
            "toolgate bench tax --catalog d --queries q.jsonl",
            "toolgate lint a.json b --suggest --fail-on warning --show note --json",
            "toolgate summarize a.json --endpoint http://h/v1 --model m --api-key-env K --out o --json",
            "toolgate summarize a.json b --out o --queries q.jsonl --keep-better --again",
            "toolgate config check f.toml",
            "toolgate config example",
            "toolgate config show --json",
            "toolgate completions zsh",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
    }

    #[test]
    fn lines_about_credentials_are_told_apart() {
        for line in [
            "toolgate usage --api-key-file k --ca-file c --client-cert c --client-key k",
            "toolgate key create --tenant acme --role agent --role admin --expires 90d --label x --json",
            "toolgate key list --all --tenant acme --json",
            "toolgate key rotate 0123456789ab --overlap 0s --set store.path=d",
            "toolgate key revoke 0123456789ab",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
        for line in [
            "toolgate usage --client-cert c",
            "toolgate key create --tenant acme",
            "toolgate key create --role root",
            "toolgate key rotate x --overlap 5",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn lines_about_memory_are_told_apart() {
        for line in [
            "toolgate memory show --server git --json --tenant acme",
            "toolgate memory clear --server git --tool git_log",
            "toolgate bench memory --catalog d --queries q --no-tool n --seed 2 --rounds 1 --json j",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
        for line in [
            "toolgate memory",
            "toolgate memory clear --tool git_log",
            "toolgate bench memory --catalog d",
            "toolgate bench memory --queries q --weight 2",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn prices_are_of_an_api_and_a_model_together() {
        for line in [
            "toolgate bench prices --json",
            "toolgate bench prices --api anthropic --model claude-opus-4-8",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
        for line in [
            "toolgate bench prices --api anthropic",
            "toolgate bench prices --model claude-opus-4-8",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn lines_about_catalogs_are_told_apart() {
        for line in [
            "toolgate bench poison --catalog d --catalog e --attacks a.jsonl --rules r.yaml --markdown m --json",
            "toolgate catalog scan a.json b --tier untrusted --rules r.yaml --show low --json",
            "toolgate catalog diff a b --rules r.yaml --json",
            "toolgate catalog quarantine list --server s --rules r.yaml --definitions --json --tenant acme",
            "toolgate catalog approve s a@0123456789ab b@0123456789ab --json",
            "toolgate catalog approve s --all",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
        for line in [
            "toolgate catalog scan",
            "toolgate catalog diff a",
            "toolgate catalog quarantine",
            "toolgate catalog approve s",
            "toolgate catalog approve s a",
            "toolgate catalog approve s a@0123456789ab --all",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn bad_lines_are_refused() {
        for line in [
            "toolgate",
            "toolgate route",
            "toolgate register",
            "toolgate gate --call a",
            "toolgate gate --handle h",
            "toolgate route x --top-k 0",
            "toolgate route x --top-k 101",
            "toolgate route x --threshold 2",
            "toolgate route x --deadline 5",
            "toolgate register x --mode upsert",
            "toolgate policy",
            "toolgate policy set",
            "toolgate register x --pending a",
            "toolgate serve --set router.top_k",
            "toolgate usage --since yesterday",
            "toolgate usage --until 7",
            "toolgate completions",
            "toolgate eval --catalog d",
            "toolgate eval --queries q --format csv",
            "toolgate eval --queries q --per-query",
            "toolgate eval --queries q --resamples 100001",
            "toolgate eval --queries q --against-set router.top_k",
            "toolgate calibrate --catalog d",
            "toolgate calibrate --catalog d --queries q --kept 1.5",
            "toolgate bench",
            "toolgate bench tax --catalog d",
            "toolgate bench tax --tasks 3",
            "toolgate lint",
            "toolgate lint a.json --fail-on note",
            "toolgate summarize a.json",
            "toolgate summarize a.json --out o --endpoint http://h",
            "toolgate summarize a.json --out o --model m",
            "toolgate summarize a.json --out o --endpoint h --model m",
            "toolgate summarize a.json --out o --concurrency 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn lines_about_packs_are_taken_or_refused() {
        for line in [
            "toolgate pack build a.json b --endpoint http://h/v1 --model m --output o --languages de,fr --resume",
            "toolgate pack build a.json --endpoint http://h/v1 --model m --output o.yaml --per-tool 20 --json",
            "toolgate pack lint a.yaml b.yaml --catalog d --no-encoder --within 3 --margin 0.1 --json",
            "toolgate pack list --catalog d --directory p",
            "toolgate pack eval --catalog d --packs p --folds 0 --seed 2 --queries q.jsonl --json",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
        for line in [
            "toolgate pack",
            "toolgate pack build a.json",
            "toolgate pack build a.json --output o --per-tool 7",
            "toolgate pack build a.json --output o --languages english",
            "toolgate pack lint",
            "toolgate pack lint a.yaml --margin 2",
            "toolgate pack lint a.yaml --within 0",
            "toolgate pack eval",
            "toolgate pack eval --catalog d --folds 1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
