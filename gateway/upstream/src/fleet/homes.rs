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
    let home = home(homes, owner.map(|owner| &*owner.principal));
    let home = home.map_err(|source| UpstreamError::Home { folder: homes.clone(), source })?;
    let mut launch = launch.clone();
    launch.environment.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    launch.folder.get_or_insert(home);
    Ok(Cow::Owned(Upstream::Process(launch)))
}

/// Makes the home folder of a principal, for the gateway's user alone. Its name is a hash, so that no principal's name leads out
/// of the folder or is another's on a file system that ignores case.
fn home(homes: &Path, principal: Option<&str>) -> io::Result<PathBuf> {
    let name = match principal {
        Some(principal) => {
            hex::encode(&digest(&SHA256, principal.as_bytes()).as_ref()[..NAME_BYTES])
        }
        None => NOBODY.to_owned(),
    };
    let home = std::path::absolute(homes)?.join(name);
    let mut private = fs::DirBuilder::new();
    private.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
    private.create(&home)?;
    Ok(home)
}

#[cfg(test)]
mod tests {
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
        {
            let metadata = fs::metadata(&made[0]).expect("a folder");
            let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
            assert_eq!(mode & 0o777, 0o700);
        }
    }
}
