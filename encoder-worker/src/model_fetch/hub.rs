//! The model from the hub: plain HTTP GETs with `Range`, so that a cut download goes on where it
//! stopped, in this run or in the next. Every network call has a time limit.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::error::{FetchError, io_error};
use super::manifest::PinnedFile;
use super::{Fetch, Progress};

const DEFAULT_BASE_URL: &str = "https://huggingface.co";
/// Attempts in a row that bring no byte before a download is given up.
const FRUITLESS_ATTEMPTS: u32 = 4;

/// The model hub and how patient to be with it.
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
    /// The hub at another base URL (a mirror), with the usual limits.
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
        let agent = self.agent();
        let (mut before, total) = (0, fetch.total_bytes());
        for file in fetch.missing {
            let url = format!(
                "{}/{}/resolve/{}/{}",
                self.base_url,
                fetch.manifest.hub_repository,
                fetch.manifest.hub_revision,
                file.path
            );
            fetch.progress.stage(&format!("downloading {url}"));
            file.make_folder(fetch.target)?;
            let mut download = Download {
                hub: self,
                agent: &agent,
                url,
                file,
                part: &file.part_path(fetch.target),
                shown: Shown { progress: fetch.progress, before, total },
            };
            download.run()?;
            install(&mut download, fetch.target)?;
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

/// The progress of all files, seen from one of them.
struct Shown<'a> {
    progress: &'a mut dyn Progress,
    before: u64,
    total: u64,
}

impl Shown<'_> {
    fn bytes(&mut self, of_this_file: u64) {
        self.progress.bytes(self.before + of_this_file, self.total);
    }
}

/// One file on its way.
struct Download<'a> {
    hub: &'a Hub,
    agent: &'a Agent,
    url: String,
    file: &'a PinnedFile,
    part: &'a Path,
    shown: Shown<'a>,
}

/// Gives the file its final name. A file continued from an earlier run may have been another file's
/// beginning: then it is fetched once more from the start.
fn install(download: &mut Download<'_>, target: &Path) -> Result<(), FetchError> {
    let Err(first) = download.file.install(target) else {
        return Ok(());
    };
    download.discard()?;
    if !matches!(first, FetchError::WrongHash { .. }) {
        return Err(first);
    }
    download.run()?;
    let second = download.file.install(target);
    if second.is_err() {
        download.discard()?;
    }
    second
}

impl Download<'_> {
    /// Collects bytes until the partial file has its full length.
    fn run(&mut self) -> Result<(), FetchError> {
        let mut fruitless = 0;
        loop {
            let have = self.collected()?;
            if have == self.file.bytes {
                return Ok(());
            }
            let Err(error) = self.collect_from(have) else {
                continue;
            };
            fruitless = if self.collected()? > have { 0 } else { fruitless + 1 };
            if fruitless >= FRUITLESS_ATTEMPTS || !self.worth_retrying(&error)? {
                return Err(error);
            }
            thread::sleep(self.hub.retry_pause * (fruitless + 1));
        }
    }

    /// A hub that has never answered is left for the next source at once.
    fn worth_retrying(&self, error: &FetchError) -> Result<bool, FetchError> {
        Ok(match error {
            FetchError::Unreachable { .. } => self.shown.before > 0 || self.collected()? > 0,
            FetchError::HttpStatus { status, .. } => *status == 429 || *status >= 500,
            FetchError::WrongSize { .. } => true,
            _ => false,
        })
    }

    /// Bytes of the partial file; one that is too long to be right is thrown away.
    fn collected(&self) -> Result<u64, FetchError> {
        match fs::metadata(self.part) {
            Ok(found) if found.len() > self.file.bytes => self.discard().map(|()| 0),
            Ok(found) => Ok(found.len()),
            Err(_) => Ok(0),
        }
    }

    fn discard(&self) -> Result<(), FetchError> {
        match fs::remove_file(self.part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io_error(self.part)(error))
            }
            _ => Ok(()),
        }
    }

    fn collect_from(&mut self, have: u64) -> Result<(), FetchError> {
        let response = self.request(have)?;
        let continues = response.status() == 206 && starts_at(&response, have);
        match response.status().as_u16() {
            206 if continues => {}
            200 => {}
            // The partial file does not fit what the hub has: start again.
            206 | 416 => return self.discard().and(Err(self.wrong_size(have))),
            status => {
                return Err(FetchError::HttpStatus { url: self.url.clone(), status });
            }
        }
        let mut part = OpenOptions::new()
            .create(true)
            .write(true)
            .append(continues)
            .truncate(!continues)
            .open(self.part)
            .map_err(io_error(self.part))?;
        let start = if continues { have } else { 0 };
        self.write_body(response, &mut part, start)
    }

    fn request(&self, have: u64) -> Result<Response<Body>, FetchError> {
        let mut request = self
            .agent
            .get(&self.url)
            // A compressed body would make byte ranges meaningless.
            .header(header::ACCEPT_ENCODING, "identity");
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
        }
        request.call().map_err(|error| self.unreachable(error))
    }

    fn write_body(
        &mut self,
        response: Response<Body>,
        part: &mut File,
        mut have: u64,
    ) -> Result<(), FetchError> {
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = body.read(&mut buffer).map_err(|error| self.unreachable(error))?;
            if read == 0 {
                break;
            }
            have += read as u64;
            if have > self.file.bytes {
                return self.discard().and(Err(self.wrong_size(have)));
            }
            part.write_all(&buffer[..read]).map_err(io_error(self.part))?;
            self.shown.bytes(have);
        }
        if have < self.file.bytes {
            return Err(self.wrong_size(have));
        }
        Ok(())
    }

    fn unreachable(&self, cause: impl std::fmt::Display) -> FetchError {
        FetchError::Unreachable { url: self.url.clone(), cause: cause.to_string() }
    }

    fn wrong_size(&self, actual: u64) -> FetchError {
        FetchError::WrongSize { file: self.url.clone(), expected: self.file.bytes, actual }
    }
}

fn starts_at(response: &Response<Body>, have: u64) -> bool {
    response
        .headers()
        .get(header::CONTENT_RANGE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with(&format!("bytes {have}-")))
}
