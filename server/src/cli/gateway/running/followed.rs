//! The gateway's files, followed while the gateway runs.

use std::net::SocketAddr;

use futures_util::future::select_all;
use toolgate_config::SafetyConfig;
use toolgate_mcp::{Gateway, WatchedFile};

use crate::cli::failure::Failure;
use crate::cli::gateway::files::GatewayFiles;
use crate::cli::output;
use crate::serve::{Hangups, scanner};

/// Files of the gateway, which are read again while it runs.
pub(super) struct FollowedFiles {
    pub(super) files: GatewayFiles,
    /// Address of the command line, in place of the file's.
    pub(super) listen: Option<SocketAddr>,
    /// Rules for texts of servers, whose file is read again on SIGHUP.
    pub(super) safety: SafetyConfig,
}

impl FollowedFiles {
    /// Takes the servers of the files anew on SIGHUP, and when one changes. A file that makes no sense is told, and changes
    /// nothing. Runs until it is aborted.
    pub(super) async fn follow(self, gateway: Gateway) {
        let paths = self.files.paths();
        let mut watched: Vec<WatchedFile> =
            paths.iter().map(|path| WatchedFile::new(path)).collect();
        let mut hangups = match Hangups::listen() {
            Ok(hangups) => hangups,
            Err(error) => {
                output::warn(format_args!("SIGHUP can't be waited for: {error}"));
                return;
            }
        };
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let names = names.join(" and ");
        loop {
            let changed = watched.iter_mut().map(|file| Box::pin(file.changed()));
            tokio::select! {
                () = hangups.next() => self.take_rules(&gateway).await,
                _changed = select_all(changed) => {}
            }
            for file in &mut watched {
                file.take();
            }
            let were_read = if watched.len() == 1 { "was read again" } else { "were read again" };
            match self.apply(&gateway) {
                Ok(false) => output::note(format_args!("{names} {were_read}")),
                Ok(true) => output::note(format_args!(
                    "{names} {were_read}; the [gateway] section is taken at the next start"
                )),
                Err(failure) => {
                    let problem = failure.message();
                    output::warn(format_args!("{problem}; the servers stay as they were"));
                }
            }
        }
    }

    /// Takes the operator's rules for texts of servers anew. A file with mistakes changes nothing; the routing plane says what they
    /// are where it is within this process.
    async fn take_rules(&self, gateway: &Gateway) {
        if self.safety.rules_file.is_none() {
            return;
        }
        let safety = self.safety.clone();
        // Compiling patterns keeps a core busy for a while.
        match tokio::task::spawn_blocking(move || scanner(&safety)).await {
            Ok(Ok(scanner)) => gateway.set_scanner(scanner),
            Ok(Err(problem)) => {
                output::warn(format_args!("safety.rules_file: {problem}; the rules before stay"));
            }
            Err(problem) => {
                output::warn(format_args!("safety.rules_file can't be read again: {problem}"));
            }
        }
    }

    /// Returns whether the `[gateway]` section is another than at the start.
    fn apply(&self, gateway: &Gateway) -> Result<bool, Failure> {
        let mut config = self.files.read()?.told();
        if let Some(listen) = self.listen {
            config.gateway.listen = listen;
        }
        gateway.apply(&config).map_err(|error| Failure::usage(error.to_string()))
    }
}
