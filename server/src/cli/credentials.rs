//! Credentials of the commands, and the certificates that they trust.

use std::path::{Path, PathBuf};

use clap::Args;
use toolgate_client::{ClientIdentity, ClientOptions, Credentials, TlsOptions};

use super::failure::Failure;

/// Environment variable with an API key or token. There is no flag for it, because other users of this machine can read
/// flags.
const API_KEY_ENV: &str = "TOOLGATE_API_KEY";

/// API key or token of a client, from a file or from the environment variable TOOLGATE_API_KEY.
#[derive(Debug, Args)]
struct KeyArgument {
    /// A file with an API key or token to call with; or set TOOLGATE_API_KEY to one.
    #[arg(long, env = "TOOLGATE_API_KEY_FILE", value_name = "FILE")]
    api_key_file: Option<PathBuf>,
}

impl KeyArgument {
    /// Returns the key or token; `None` if there is none.
    fn read(&self) -> Result<Option<String>, Failure> {
        let key = match &self.api_key_file {
            Some(path) => Some(String::from_utf8(read(path)?).map_err(|_| {
                Failure::usage(format!("--api-key-file: {} is no text", path.display()))
            })?),
            None => std::env::var(API_KEY_ENV).ok(),
        };
        Ok(key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()))
    }
}

/// Credentials of a client. An API key or token also comes from the environment variable TOOLGATE_API_KEY.
#[derive(Debug, Args)]
pub(super) struct CredentialArguments {
    #[command(flatten)]
    key: KeyArgument,
    /// Authorities (PEM) that an https server's certificate may be of. Default: the system's.
    #[arg(long, env = "TOOLGATE_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A client certificate (PEM) to show to an https server.
    #[arg(long, env = "TOOLGATE_CLIENT_CERT", value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// The client certificate's private key (PEM).
    #[arg(long, env = "TOOLGATE_CLIENT_KEY", value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
}

impl CredentialArguments {
    /// Adds these credentials to the options.
    pub(super) fn add_to(&self, options: ClientOptions) -> Result<ClientOptions, Failure> {
        Ok(ClientOptions { credentials: self.credentials()?, tls: self.tls()?, ..options })
    }

    /// Returns the key or token; `None` if there is none.
    pub(super) fn key(&self) -> Result<Option<String>, Failure> {
        self.key.read()
    }

    fn credentials(&self) -> Result<Credentials, Failure> {
        let key = self.key()?;
        Ok(key.map_or_else(Credentials::default, Credentials::api_key))
    }

    /// Returns the certificates that are trusted and shown; `None` if none are named.
    pub(super) fn tls(&self) -> Result<Option<TlsOptions>, Failure> {
        let ca_pem = self.ca_file.as_deref().map(read).transpose()?;
        let identity = match (&self.client_cert, &self.client_key) {
            (Some(certificate), Some(key)) => {
                Some(ClientIdentity { certificate_pem: read(certificate)?, key_pem: read(key)? })
            }
            _ => None,
        };
        let is_said = ca_pem.is_some() || identity.is_some();
        Ok(is_said.then_some(TlsOptions { ca_pem, identity, server_name: None }))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::usage(format!("{} can't be read: {error}", path.display())))
}
