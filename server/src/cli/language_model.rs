//! Flags of the commands that use a language model: its endpoint, its name, the API key and the limits.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::failure::Failure;
use super::output;
use toolgate_config::units::parse_duration;
use toolgate_lab::language_model::{ApiKey, Endpoint, EndpointAddress};

/// An endpoint and its model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Language model")]
pub(super) struct ModelArguments {
    /// An OpenAI-compatible endpoint: its base, or the whole address of its chat completions.
    #[arg(long, value_name = "URL", requires = "model", value_parser = EndpointAddress::parse)]
    endpoint: Option<EndpointAddress>,
    /// The model to ask for.
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    model: Option<String>,
    /// The environment variable that holds the endpoint's key.
    #[arg(long, value_name = "VARIABLE", requires = "endpoint")]
    api_key_env: Option<String>,
    /// The file that holds the endpoint's key.
    #[arg(long, value_name = "FILE", requires = "endpoint", conflicts_with = "api_key_env")]
    api_key_file: Option<PathBuf>,
    /// Calls that are under way at once, at most.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    concurrency: u8,
    /// How long one call may take.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    timeout: Duration,
}

impl ModelArguments {
    /// Returns the endpoint of the model, or `None` if no endpoint or no model is named.
    pub(super) fn endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        let (Some(address), Some(model)) = (&self.endpoint, &self.model) else { return Ok(None) };
        let key = match (&self.api_key_env, &self.api_key_file) {
            (Some(name), _) => Some(ApiKey::from_variable(name)),
            (None, Some(path)) => Some(ApiKey::from_file(path)),
            (None, None) => None,
        };
        let key = key.transpose().map_err(Failure::new)?;
        if key.is_some() && address.is_in_the_open() {
            output::warn(format_args!("{address}: the key travels unencrypted; use https://"));
        }
        Ok(Some(Endpoint::new(address.clone(), model.clone(), key, self.timeout)))
    }

    /// Returns the maximum number of concurrent calls.
    pub(super) fn workers(&self) -> usize {
        usize::from(self.concurrency)
    }
}
