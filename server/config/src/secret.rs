//! The key that signs active-set handles. It is decoded, read from a file, or generated and kept when none is
//! configured. Never printed.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{
    STANDARD, STANDARD_PAD_INDIFFERENT, URL_SAFE_PAD_INDIFFERENT,
};
use thiserror::Error;

/// Minimum length of a key in bytes: the output length of the hash that it keys.
const MIN_BYTES: usize = 32;

/// Secret of at least 32 bytes. `Debug` does not show them.
#[derive(Clone)]
pub struct SecretKey(Vec<u8>);

/// Source of the key for active-set handles.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// Key in the configuration itself.
    Given(SecretKey),
    /// File in which the operator keeps the key in base64.
    File(PathBuf),
    /// File in which the key is kept after the first start generated it.
    Kept(PathBuf),
}

/// Failure to obtain the key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// Text that is not base64.
    #[error("not base64")]
    Encoding,
    /// Key with too few bytes; the number is its length.
    #[error("only {0} bytes after decoding, at least {MIN_BYTES} are needed")]
    TooShort(usize),
    /// File without a valid key.
    #[error("{}: {problem}; write one with `openssl rand -base64 32`", path.display())]
    BadFile {
        /// Path of the file.
        path: PathBuf,
        /// Problem with the file's content.
        problem: Box<KeyError>,
    },
    /// File that cannot be read or written.
    #[error("{}: the handle key cannot be read or written", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl SecretKey {
    /// Decodes standard or URL-safe base64, with or without padding.
    ///
    /// # Errors
    /// Returns an error if the text is not base64 or holds fewer than 32 bytes.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let bytes = STANDARD_PAD_INDIFFERENT
            .decode(text)
            .or_else(|_| URL_SAFE_PAD_INDIFFERENT.decode(text))
            .map_err(|_| KeyError::Encoding)?;
        if bytes.len() < MIN_BYTES {
            return Err(KeyError::TooShort(bytes.len()));
        }
        Ok(Self(bytes))
    }

    /// Returns the secret bytes, for the MAC only.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretKey(..)")
    }
}

impl KeySource {
    /// Returns the key. Generates and keeps one if the source is [`KeySource::Kept`] and there is none yet. Blocks on
    /// the file system.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written, or holds no valid key.
    pub fn load(&self) -> Result<SecretKey, KeyError> {
        match self {
            Self::Given(key) => Ok(key.clone()),
            Self::File(path) => read(path),
            Self::Kept(path) => match read(path) {
                Err(KeyError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    create(path).map_err(|source| io_error(path, source))?;
                    // Another process may have been first. Its key is the one that counts.
                    read(path)
                }
                found => found,
            },
        }
    }
}

fn read(path: &Path) -> Result<SecretKey, KeyError> {
    let text = fs::read_to_string(path).map_err(|source| io_error(path, source))?;
    SecretKey::from_base64(&text).map_err(|problem| KeyError::BadFile {
        path: path.to_path_buf(),
        problem: Box::new(problem),
    })
}

/// Writes a new random key to a draft beside `path` and links it to `path`. The key file is therefore complete from the
/// first moment and never replaces another process's key.
fn create(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut bytes = [0; MIN_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let draft = path.with_extension(format!("{}.tmp", std::process::id()));
    let outcome =
        write_private(&draft, &STANDARD.encode(bytes)).and_then(|()| {
            match fs::hard_link(&draft, path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        });
    // A draft left behind is harmless: the next process with this id truncates it.
    let _ = fs::remove_file(&draft);
    outcome?;
    fs::File::open(folder)?.sync_all()
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn io_error(path: &Path, source: io::Error) -> KeyError {
    KeyError::Io { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_and_measured() {
        let text = STANDARD.encode([0xfb; 32]);
        for form in [text.clone(), text.replace('+', "-").replace('/', "_"), text.replace('=', "")]
        {
            let key = SecretKey::from_base64(&format!(" {form}\n")).expect("a good key");
            assert_eq!(key.as_bytes(), [0xfb; 32]);
        }
        let short = SecretKey::from_base64(&STANDARD.encode([1; 31]));
        assert!(matches!(short, Err(KeyError::TooShort(31))));
        assert!(matches!(SecretKey::from_base64("not base64!"), Err(KeyError::Encoding)));
    }

    #[test]
    fn a_kept_key_is_made_once_and_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("data/handle.key");
        let source = KeySource::Kept(path.clone());
        let first = source.load().expect("a new key");
        let second = source.load().expect("the same key");
        assert_eq!(first.as_bytes(), second.as_bytes());
        let left: Vec<_> = fs::read_dir(directory.path().join("data")).expect("listing").collect();
        assert_eq!(left.len(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).expect("the file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn processes_that_start_together_agree() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("handle.key");
        create(&path).expect("the first");
        let first = read(&path).expect("a key");
        create(&path).expect("the second keeps the first's");
        assert_eq!(read(&path).expect("a key").as_bytes(), first.as_bytes());
    }

    #[test]
    fn a_bad_file_is_named_and_not_repeated() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        fs::write(&path, "tooshort").expect("written");
        let text = KeySource::File(path.clone()).load().expect_err("too short").to_string();
        assert!(text.contains(&path.display().to_string()) && !text.contains("tooshort"), "{text}");
        let absent = KeySource::File(directory.path().join("absent")).load();
        assert!(matches!(absent, Err(KeyError::Io { .. })));
    }
}
