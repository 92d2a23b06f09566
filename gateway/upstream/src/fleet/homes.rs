//! Home folders of principals, each of whom has a process of a server alone.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ring::digest::{SHA256, digest};

use super::{Entry, PerUser, Start};
use crate::connection::ConnectionOwner;
use crate::error::UpstreamError;
use crate::target::Upstream;

/// Name of the folder of the process that lists what the server has.
const NOBODY: &str = "nobody";

/// Bytes of a hash that name a folder.
const NAME_BYTES: usize = 16;

/// Returns how the server is started for an owner: with a home folder of its own, which is made, where the entry has such.
pub(super) fn upstream_of<'e>(
    entry: &'e Entry,
    owner: Option<&ConnectionOwner>,
) -> Result<Cow<'e, Upstream>, UpstreamError> {
    let Start::PerUser(PerUser { homes: Some(homes), .. }) = &entry.limits.start else {
        return Ok(Cow::Borrowed(&entry.upstream));
    };
    let Upstream::Process(launch) = &entry.upstream else {
        return Ok(Cow::Borrowed(&entry.upstream));
    };
    let home = home(homes, owner.map(|owner| &*owner.principal))?;
    let mut launch = launch.clone();
    launch.environment.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    if let Some(sandbox) = &mut launch.sandbox {
        sandbox.write.push(home.clone());
    }
    launch.folder.get_or_insert(home);
    Ok(Cow::Owned(Upstream::Process(launch)))
}

/// Makes the home folder of a principal, for the gateway's user alone. Its name is a hash, so that no principal's name leads out
/// of the folder or is another's on a file system that ignores case.
fn home(homes: &Path, principal: Option<&str>) -> Result<PathBuf, UpstreamError> {
    let name = match principal {
        Some(principal) => {
            hex::encode(&digest(&SHA256, principal.as_bytes()).as_ref()[..NAME_BYTES])
        }
        None => NOBODY.to_owned(),
    };
    let home = homes.join(name);
    match made(&home) {
        Ok(home) => Ok(home),
        Err(source) => Err(UpstreamError::Home { folder: home, source }),
    }
}

/// Makes a folder for the gateway's user alone, if it is not there, and returns its absolute path.
fn made(home: &Path) -> io::Result<PathBuf> {
    let home = std::path::absolute(home)?;
    let mut private = fs::DirBuilder::new();
    private.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
    private.create(&home)?;
    #[cfg(unix)]
    keep_private(&home, rustix::process::geteuid().as_raw())?;
    Ok(home)
}

/// Sees to it that nobody but this user, the gateway's, may use a folder. The mode of one that others may use is mended: volumes may
/// come with such a mode.
#[cfg(unix)]
fn keep_private(home: &Path, user: u32) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let found = fs::symlink_metadata(home)?;
    if !found.is_dir() {
        return Err(io::Error::other("it is a link: it must be a folder"));
    }
    if found.uid() != user {
        let owner = found.uid();
        return Err(io::Error::other(format!(
            "it belongs to the user {owner}: it must belong to {user}, the user of the gateway, and have the mode 0700"
        )));
    }
    let is_private = |found: &fs::Metadata| found.mode() & 0o077 == 0;
    if is_private(&found) {
        return Ok(());
    }
    let mode = format!("{:04o}", found.mode() & 0o7777);
    let is_mended = fs::set_permissions(home, fs::Permissions::from_mode(0o700))
        .and_then(|()| fs::symlink_metadata(home))
        .is_ok_and(|found| is_private(&found));
    if !is_mended {
        return Err(io::Error::other(format!(
            "others may use it (mode {mode}), and the gateway can't change that: it must have the mode 0700"
        )));
    }
    tracing::warn!(folder = %home.display(), mode, "others could use a home folder: it has the mode 0700 now");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_principal_has_a_folder_within_the_one_that_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let homes = folder.path().join("homes");
        let made = |principal| home(&homes, principal).expect("a folder");
        let names = [Some("acme/ann"), Some("acme/Ann"), Some("../../x"), Some("nobody"), None];
        let made: Vec<PathBuf> = names.into_iter().map(made).collect();
        for (place, home) in made.iter().enumerate() {
            assert!(home.is_dir() && home.parent() == Some(&*homes), "{home:?}");
            assert!(!made[..place].contains(home), "{home:?}");
        }
        assert_eq!(home(&homes, Some("acme/ann")).expect("a folder"), made[0]);
        #[cfg(unix)]
        assert_eq!(mode_of(&made[0]), 0o700);
    }

    #[cfg(unix)]
    fn mode_of(folder: &Path) -> u32 {
        fs::metadata(folder).expect("a folder").permissions().mode() & 0o7777
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_use_is_made_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = home(folder.path(), Some("acme/ann")).expect("a folder");
        fs::write(made.join("kept"), "text").expect("a file");
        for mode in [0o2770, 0o755, 0o701, 0o500] {
            fs::set_permissions(&made, fs::Permissions::from_mode(mode)).expect("a mode");
            assert_eq!(home(folder.path(), Some("acme/ann")).expect("a folder"), made);
            assert_eq!(mode_of(&made) & 0o077, 0, "{:o}", mode_of(&made));
        }
        assert_eq!(mode_of(&made), 0o500, "it is nobody else's");
        assert!(made.join("kept").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_home_that_is_a_link_or_anothers_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let user = rustix::process::geteuid().as_raw();
        let refused =
            |home: &Path, user| keep_private(home, user).expect_err("an error").to_string();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).expect("a link");
        assert!(refused(&link, user).contains("must be a folder"));
        let told = refused(folder.path(), user + 1);
        assert!(told.contains(&format!("it must belong to {}", user + 1)), "{told}");
        assert!(told.contains("0700"), "{told}");
    }
}
