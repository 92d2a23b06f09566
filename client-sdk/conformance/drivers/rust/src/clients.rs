//! One client for each distinct `client` object.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use toolgate_client::{
    Client, ClientIdentity, ClientOptions, Credentials, DEFAULT_TARGET, TlsOptions,
};

use crate::failure::Failure;

/// The clients that were made, by what they were made of.
#[derive(Default)]
pub struct Clients(HashMap<String, Client>);

impl Clients {
    /// The client of these settings.
    pub fn get(&mut self, settings: &Value) -> Result<Client, Failure> {
        let key = settings.to_string();
        if let Some(client) = self.0.get(&key) {
            return Ok(client.clone());
        }
        let client = open(settings)?;
        self.0.insert(key, client.clone());
        Ok(client)
    }
}

/// A new client of these settings.
pub fn open(settings: &Value) -> Result<Client, Failure> {
    let target = settings["target"].as_str().unwrap_or(DEFAULT_TARGET);
    let mut options = ClientOptions {
        tenant: settings["tenant"].as_str().unwrap_or_default().to_owned(),
        credentials: credentials(settings)?,
        allow_insecure_credentials: settings["allow_insecure_credentials"] == true,
        tls: settings.get("tls").filter(|tls| !tls.is_null()).map(tls).transpose()?,
        ..Default::default()
    };
    if let Some(deadline) = timeout(settings)? {
        options.deadline = deadline;
    }
    Ok(Client::lazy(target, options)?)
}

/// The `timeout`, in seconds, of a `client` or of `args`.
pub fn timeout(settings: &Value) -> Result<Option<Duration>, Failure> {
    let Some(seconds) = settings["timeout"].as_f64() else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map(Some).map_err(|error| Failure::usage(format!("timeout: {error}")))
}

fn credentials(settings: &Value) -> Result<Credentials, Failure> {
    match (settings["api_key"].as_str(), settings["token"].as_str()) {
        // Nobody could write it: there is one place for either.
        (Some(_), Some(_)) => Err(Failure::usage("an API key or a token source, not both")),
        (Some(key), None) => Ok(Credentials::api_key(key)),
        (None, Some(token)) => {
            let token = token.to_owned();
            Ok(Credentials::token_source(move || std::future::ready(Ok(token.clone()))))
        }
        (None, None) => Ok(Credentials::default()),
    }
}

fn tls(settings: &Value) -> Result<TlsOptions, Failure> {
    let identity = match (file(settings, "cert")?, file(settings, "key")?) {
        (Some(certificate_pem), Some(key_pem)) => Some(ClientIdentity { certificate_pem, key_pem }),
        (None, None) => None,
        _ => return Err(Failure::usage("a client certificate goes with its key")),
    };
    Ok(TlsOptions {
        ca_pem: file(settings, "ca")?,
        identity,
        server_name: settings["server_name"].as_str().map(str::to_owned),
    })
}

fn file(settings: &Value, key: &str) -> Result<Option<Vec<u8>>, Failure> {
    let Some(path) = settings[key].as_str() else { return Ok(None) };
    let unreadable = |error| Failure::usage(format!("{path}: {error}"));
    std::fs::read(path).map(Some).map_err(unreadable)
}
