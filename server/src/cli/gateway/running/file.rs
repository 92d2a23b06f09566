//! The gateway's file, followed while the gateway runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use toolgate_mcp::{Config, ConfigError, Gateway, WatchedFile};

use crate::cli::output;
use crate::serve::Hangups;

/// File of the gateway, which is read again while it runs.
pub(super) struct GatewayFile {
    pub(super) path: PathBuf,
    /// Address of the command line, in place of the file's.
    pub(super) listen: Option<SocketAddr>,
}

impl GatewayFile {
    /// Takes the servers of the file anew on SIGHUP, and when it changes. A file that makes no sense is told, and changes
    /// nothing. Runs until it is aborted.
    pub(super) async fn follow(self, gateway: Gateway) {
        let mut file = WatchedFile::new(&self.path);
        let mut hangups = match Hangups::listen() {
            Ok(hangups) => hangups,
            Err(error) => {
                output::warn(format_args!("SIGHUP can't be waited for: {error}"));
                return;
            }
        };
        loop {
            tokio::select! {
                () = hangups.next() => file.take(),
                () = file.changed() => {}
            }
            let path = self.path.display();
            match self.apply(&gateway) {
                Ok(false) => output::note(format_args!("{path} was read again")),
                Ok(true) => output::note(format_args!(
                    "{path} was read again; its [gateway] section is taken at the next start"
                )),
                Err(error) => {
                    output::warn(format_args!("{error}; the servers stay as they were"));
                }
            }
        }
    }

    /// Returns whether the `[gateway]` section is another than at the start.
    fn apply(&self, gateway: &Gateway) -> Result<bool, ConfigError> {
        let mut config = Config::read(&self.path)?;
        if let Some(listen) = self.listen {
            config.gateway.listen = listen;
        }
        gateway.apply(&config)
    }
}
