//! Download of one file over plain HTTP GETs with `Range`, so that an interrupted download resumes where it stopped, in
//! this run or in the next.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::super::Progress;
use super::super::error::{FetchError, io_error};
use super::super::manifest::PinnedFile;

/// Attempts in a row without any byte after which a download is given up.
const FRUITLESS_ATTEMPTS: u32 = 4;

/// Progress over all files, as seen from one of them.
pub(super) struct Shown<'a> {
    pub(super) progress: &'a mut dyn Progress,
    pub(super) before: u64,
    pub(super) total: u64,
}

impl Shown<'_> {
    fn bytes(&mut self, of_this_file: u64) {
        self.progress.bytes(self.before + of_this_file, self.total);
    }
}

/// Download of one file.
pub(super) struct Download<'a> {
    pub(super) retry_pause: Duration,
    pub(super) agent: &'a Agent,
    pub(super) url: String,
    pub(super) file: &'a PinnedFile,
    pub(super) part: &'a Path,
    pub(super) shown: Shown<'a>,
}

impl Download<'_> {
    /// Downloads the file and gives it its final name. If the hash is wrong after a resumed download, the partial file
    /// may have belonged to another version, so the file is fetched once more from the start.
    pub(super) fn run_and_install(&mut self, target: &Path) -> Result<(), FetchError> {
        self.run()?;
        let Err(first) = self.file.install(target) else {
            return Ok(());
        };
        self.discard()?;
        if !matches!(first, FetchError::WrongHash { .. }) {
            return Err(first);
        }
        self.run()?;
        let second = self.file.install(target);
        if second.is_err() {
            self.discard()?;
        }
        second
    }

    /// Downloads bytes until the partial file has its full length.
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
            thread::sleep(self.retry_pause * (fruitless + 1));
        }
    }

    /// Returns true if another attempt is useful. A hub that has never answered is not retried; the next source follows
    /// at once.
    fn worth_retrying(&self, error: &FetchError) -> Result<bool, FetchError> {
        Ok(match error {
            FetchError::Unreachable { .. } => self.shown.before > 0 || self.collected()? > 0,
            FetchError::HttpStatus { status, .. } => *status == 429 || *status >= 500,
            FetchError::WrongSize { .. } => true,
            _ => false,
        })
    }

    /// Returns the bytes of the partial file; deletes one that is too long.
    fn collected(&self) -> Result<u64, FetchError> {
        match fs::metadata(self.part) {
            Ok(found) if found.len() > self.file.bytes => self.discard().map(|()| 0),
            Ok(found) => Ok(found.len()),
            Err(_) => Ok(0),
        }
    }

    fn discard(&self) -> Result<(), FetchError> {
        match fs::remove_file(self.part) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error(self.part)(error)),
            _ => Ok(()),
        }
    }

    fn collect_from(&mut self, have: u64) -> Result<(), FetchError> {
        let response = self.request(have)?;
        let continues = response.status() == 206 && starts_at(&response, have);
        match response.status().as_u16() {
            206 if continues => {}
            200 => {}
            // The partial file does not match the hub's file: start again.
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
