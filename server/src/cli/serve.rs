//! `toolgate serve`: parses the whole configuration, then runs the server until a signal ends it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::output;
use crate::serve::Reread;
use toolgate_config::{FlagValue, Parsed, keys};
pub(super) use toolgate_core::error::with_causes;

const EXAMPLES: &str = "\
Examples:
  toolgate serve
  toolgate serve --listen 127.0.0.1:8080 --data-dir ./data
  toolgate serve --gpu auto
  TOOLGATE_LOG_FORMAT=json toolgate serve --config toolgate.toml

`toolgate config example` prints every key. SIGHUP has the configuration read again: deferral, limits of calls and
sizes, and what is logged take effect at once, and the log names the keys that wait for the next start. It also
has certificates, issuers' keys and the admin key read again, and the audit file opened again. Ctrl-C (or SIGTERM) lets calls in progress finish; a second
one ends the server at once.";

/// Start a server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// Where to serve gRPC (server.listen).
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where to serve metrics and probes (server.admin_listen).
    #[arg(long, value_name = "ADDRESS:PORT")]
    admin_listen: Option<SocketAddr>,
    /// The data directory (store.path).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The encoder's model directory (encoder.model_dir).
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    /// Start an encoder worker on each GPU that works (auto), the same but not without one (require), on each of the
    /// first N, or on none (off) (encoder.gpus).
    #[arg(long, value_name = "auto|require|off|N")]
    gpu: Option<String>,
    /// Start an encoder worker on this device, such as cuda:1 or cpu; may be given more than once
    /// (encoder.local_workers).
    #[arg(long, value_name = "DEVICE")]
    worker: Vec<String>,
    /// The least important log records: error, warn, info, debug or trace (log.level).
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// The form of log records: text or json (log.format).
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) fn run(serve: &Serve) -> Result<Exit, Failure> {
    let parsed = serve.config.load(serve.flags())?;
    let runtime = output::runtime()?;
    let reread = || {
        let parsed = serve.config.load(serve.flags());
        parsed.map_err(|failure| failure.message().to_owned())
    };
    let outcome = runtime.block_on(start(parsed, &reread));
    // Calls are drained. Other tasks that still run are abandoned.
    runtime.shutdown_background();
    outcome.map(|()| Exit::Done)
}

impl Serve {
    fn flags(&self) -> Vec<FlagValue> {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let given = [
            ("--listen", &keys::SERVER_LISTEN.spec, self.listen.map(|address| address.to_string())),
            (
                "--admin-listen",
                &keys::SERVER_ADMIN_LISTEN.spec,
                self.admin_listen.map(|address| address.to_string()),
            ),
            ("--data-dir", &keys::STORE_PATH.spec, self.data_dir.as_ref().map(path)),
            ("--model-dir", &keys::ENCODER_MODEL_DIR.spec, self.model_dir.as_ref().map(path)),
            ("--gpu", &keys::ENCODER_GPUS.spec, self.gpu.clone()),
            (
                "--worker",
                &keys::ENCODER_LOCAL_WORKERS.spec,
                (!self.worker.is_empty()).then(|| self.worker.join(",")),
            ),
            ("--log-level", &keys::LOG_LEVEL.spec, self.log_level.clone()),
            ("--log-format", &keys::LOG_FORMAT.spec, self.log_format.clone()),
        ];
        let flags = given.into_iter().filter_map(|(flag, key, value)| {
            value.map(|value| FlagValue { flag: flag.into(), key: key.name.into(), value })
        });
        flags.collect()
    }
}

/// Runs the server.
async fn start(parsed: Parsed, reread: Reread<'_>) -> Result<(), Failure> {
    crate::serve::run(parsed, reread).await.map_err(|error| Failure::new(with_causes(&error)))
}

#[cfg(test)]
mod tests {
    use super::super::arguments::{Arguments, Command};
    use clap::Parser as _;

    #[test]
    fn flags_become_keys() {
        let line = "toolgate serve --listen [::1]:5 --data-dir d --log-level debug --gpu 2 \
                    --worker cpu --worker cuda:5";
        let parsed = Arguments::try_parse_from(line.split(' ')).expect("a good line");
        let Command::Serve(serve) = parsed.command else {
            panic!("{:?}", parsed.command);
        };
        let flags: Vec<_> = serve.flags().into_iter().map(|flag| (flag.key, flag.value)).collect();
        let want = [
            ("server.listen", "[::1]:5"),
            ("store.path", "d"),
            ("encoder.gpus", "2"),
            ("encoder.local_workers", "cpu,cuda:5"),
            ("log.level", "debug"),
        ];
        assert_eq!(flags, want.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
