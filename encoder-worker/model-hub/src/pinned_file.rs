//! Verification and installation of one pinned file. The hash comes first and the rename last, so a file under its
//! final name is always complete and correct.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::error::{FetchError, io_error};
use super::manifest::PinnedFile;

impl PinnedFile {
    /// Returns true if `path` holds exactly this file.
    pub(crate) fn is_at(&self, path: &Path) -> Result<bool, FetchError> {
        match fs::metadata(path) {
            Ok(found) if found.is_file() && found.len() == self.bytes => {
                Ok(sha256_of(path)? == self.sha256)
            }
            Ok(_) => Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io_error(path)(error)),
        }
    }

    /// Reads `path` completely and compares it with the pin.
    ///
    /// # Errors
    /// The file cannot be read, or has another size or hash.
    pub fn verify(&self, path: &Path) -> Result<(), FetchError> {
        let found = fs::metadata(path).map_err(io_error(path))?.len();
        if found != self.bytes {
            return Err(FetchError::WrongSize {
                file: path.display().to_string(),
                expected: self.bytes,
                actual: found,
            });
        }
        let actual = sha256_of(path)?;
        if actual == self.sha256 {
            return Ok(());
        }
        Err(FetchError::WrongHash {
            file: path.display().to_string(),
            expected: self.sha256.clone(),
            actual,
        })
    }

    /// Returns the path of the partial file.
    pub(crate) fn part_path(&self, directory: &Path) -> PathBuf {
        let mut name = OsString::from(directory.join(&self.path));
        name.push(".part");
        PathBuf::from(name)
    }

    /// Verifies the partial file and gives it its final name.
    pub(crate) fn install(&self, directory: &Path) -> Result<(), FetchError> {
        let part = self.part_path(directory);
        self.verify(&part)?;
        File::open(&part).and_then(|file| file.sync_all()).map_err(io_error(&part))?;
        let place = directory.join(&self.path);
        fs::rename(&part, &place).map_err(io_error(&place))
    }

    /// Creates the folder of [`Self::part_path`].
    pub(crate) fn make_folder(&self, directory: &Path) -> Result<(), FetchError> {
        match directory.join(&self.path).parent() {
            Some(folder) => fs::create_dir_all(folder).map_err(io_error(folder)),
            None => Ok(()),
        }
    }
}

fn sha256_of(path: &Path) -> Result<String, FetchError> {
    let mut file = File::open(path).map_err(io_error(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer).map_err(io_error(path))? {
            0 => return Ok(hex::encode(hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}
