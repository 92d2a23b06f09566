//! Checks that the encoder's files exist and match the pinned hashes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use toolgate_model_hub::PinnedFile;

use super::check::Check;
use toolgate_config::EncoderConfig;

/// Checks every file. Each is read completely to compare its hash.
pub(super) fn check(config: &EncoderConfig) -> Check {
    let files = config.model.manifest().files;
    check_files(&config.model_dir, &files, &config.model.fetch_command())
}

fn check_files(directory: &Path, files: &[PinnedFile], fetch: &str) -> Check {
    let place = directory.display();
    let advice = format!("run `{fetch}`, or `{fetch} --from DIR` without a network");
    if !directory.is_dir() {
        return Check::fail("model", format!("no model at {place}")).advice(advice);
    }
    let problems: Vec<String> = files.iter().filter_map(|file| problem(directory, file)).collect();
    if problems.is_empty() {
        return Check::ok("model", format!("{place}: {} files, every hash is right", files.len()));
    }
    Check::fail("model", format!("{place}: {}", problems.join("; "))).advice(advice)
}

fn problem(directory: &Path, file: &PinnedFile) -> Option<String> {
    let path = directory.join(&file.path);
    match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(format!("{} is missing", file.path));
        }
        Ok(found) if found.len() != file.bytes => {
            let wrong = format!("{} has {} bytes, not {}", file.path, found.len(), file.bytes);
            return Some(wrong);
        }
        Ok(_) | Err(_) => {}
    }
    match sha256_of(&path) {
        Ok(hash) if hash == file.sha256 => None,
        Ok(_) => Some(format!("{} is not the pinned file (SHA-256 differs)", file.path)),
        Err(error) => Some(format!("{} cannot be read: {error}", file.path)),
    }
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    #[test]
    fn every_way_to_be_wrong_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        // SHA-256 of "abc".
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let file = |name: &str| PinnedFile { path: name.into(), bytes: 3, sha256: sha256.into() };
        let files = [file("good"), file("other"), file("short"), file("absent")];
        for (name, content) in [("good", "abc"), ("other", "abd"), ("short", "ab")] {
            fs::write(directory.path().join(name), content).expect("written");
        }
        let fetch = "toolgate model fetch";
        let check = check_files(directory.path(), &files, fetch);
        assert_eq!(check.status, Status::Fail);
        for part in
            ["other is not the pinned file", "short has 2 bytes, not 3", "absent is missing"]
        {
            assert!(check.detail.contains(part), "{}", check.detail);
        }
        assert!(!check.detail.contains("good") && check.advice.contains("model fetch"));
        assert_eq!(check_files(directory.path(), &files[..1], fetch).status, Status::Ok);
        let nowhere = check_files(&directory.path().join("no"), &files, fetch);
        assert!(nowhere.status == Status::Fail && nowhere.detail.contains("no model at"));
    }
}
