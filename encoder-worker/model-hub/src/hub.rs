//! Source for models: the model hub, with its addresses and time limits. Every network call has a time limit. The
//! download itself is in `hub/download.rs`.

mod download;

use std::time::Duration;

use ureq::Agent;

use super::Fetch;
use super::error::FetchError;
use download::{Download, Shown};

const DEFAULT_BASE_URL: &str = "https://huggingface.co";

/// Address of the model hub, with time limits.
#[derive(Debug, Clone)]
pub struct Hub {
    /// Base URL; files are at `BASE/OWNER/NAME/resolve/REVISION/PATH`.
    pub base_url: String,
    /// Limit for resolving the name, and again for connecting.
    pub connect_timeout: Duration,
    /// Limit for one answer's head and for each read of a body.
    pub read_timeout: Duration,
    /// Pause after a connection that broke; grows with each fruitless attempt.
    pub retry_pause: Duration,
}

impl Default for Hub {
    fn default() -> Self {
        Self::at(DEFAULT_BASE_URL)
    }
}

impl Hub {
    /// Returns the hub at another base URL (a mirror), with the usual limits.
    #[must_use]
    pub fn at(base_url: &str) -> Self {
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            connect_timeout: Duration::from_secs(4),
            read_timeout: Duration::from_secs(20),
            retry_pause: Duration::from_millis(500),
        }
    }

    pub(super) fn fetch(&self, fetch: &mut Fetch<'_>) -> Result<(), FetchError> {
        let Some(pin) = &fetch.manifest.hub else {
            return Err(FetchError::NotOnHub { model: fetch.manifest.name.clone() });
        };
        let agent = self.agent();
        let mut before = 0;
        let total = fetch.total_bytes();
        for file in fetch.missing {
            let url = format!(
                "{}/{}/resolve/{}/{}",
                self.base_url, pin.repository, pin.revision, file.path
            );
            fetch.progress.stage(&format!("downloading {url}"));
            file.make_folder(fetch.target)?;
            let mut download = Download {
                retry_pause: self.retry_pause,
                agent: &agent,
                url,
                file,
                part: &file.part_path(fetch.target),
                shown: Shown { progress: fetch.progress, before, total },
            };
            download.run_and_install(fetch.target)?;
            before += file.bytes;
        }
        Ok(())
    }

    fn agent(&self) -> Agent {
        Agent::config_builder()
            .http_status_as_error(false)
            .timeout_resolve(Some(self.connect_timeout))
            .timeout_connect(Some(self.connect_timeout))
            .timeout_send_request(Some(self.read_timeout))
            .timeout_recv_response(Some(self.read_timeout))
            .timeout_per_read(Some(self.read_timeout))
            .build()
            .into()
    }
}
