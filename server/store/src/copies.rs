//! This replica's own copies of the catalogs that it serves, on its disk, for when the shared store can't be
//! reached. Each is one file, written whole beside its name and then renamed. A copy that is not whole, not of
//! the tenant, or of another version is never served.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::content::{from_bytes, to_bytes};
use super::{ContentHash, Revision, Sequence, StoredCatalog};
use toolgate_core::identity::TenantId;

mod mark;

pub use mark::FollowedMark;

/// What a copy begins with: what it is, and the version of its form.
const MAGIC: &[u8; 8] = b"TGCOPY\x00\x02";

/// Of the folder below the data directory.
const FOLDER: &str = "snapshots";

/// What a copy is named by, after the hash of its tenant.
const ENDING: &str = "copy";

/// Bytes before the content: the magic, its hash, the length of its JSON.
const HEAD: usize = 8 + 32 + 8;

/// Embeddings by the hash of their text.
pub type Embeddings = HashMap<ContentHash, Vec<f32>>;

/// What a copy holds beside vectors.
#[derive(Serialize, Deserialize)]
struct Described<C> {
    tenant: String,
    fingerprint: String,
    dimensions: usize,
    catalog: C,
}

/// The copies of one replica.
#[derive(Debug)]
pub struct Copies {
    data_directory: PathBuf,
    folder: PathBuf,
    /// What the process before this one left.
    mark: Option<FollowedMark>,
    /// The most bytes of all together.
    budget: u64,
    kept: Mutex<HashMap<String, Kept>>,
}

/// A copy as it lies there.
#[derive(Debug, Clone, Copy)]
struct Kept {
    bytes: u64,
    used: SystemTime,
    /// As far as this process knows.
    revision: Revision,
}

/// A copy in memory, ready to be written.
#[derive(Debug)]
pub struct Packed {
    name: String,
    bytes: Vec<u8>,
    revision: Revision,
}

impl Copies {
    /// The copies below the data directory; those of other versions are thrown away. Blocks on the file system.
    ///
    /// # Errors
    /// A folder that can't be made or read.
    pub fn open(data_directory: &Path, budget: u64) -> io::Result<Self> {
        let folder = data_directory.join(FOLDER);
        let mut private = DirBuilder::new();
        private.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        private.create(&folder)?;
        let mut kept = HashMap::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let found = entry.metadata()?;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if found.is_file() && path.extension().is_some_and(|ending| ending == ENDING) {
                let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                kept.insert(name.to_owned(), Kept { bytes: found.len(), used, revision: 0 });
            } else if found.is_file() {
                // A draft of a process that was ended.
                fs::remove_file(&path)?;
            }
        }
        let mark = mark::read(data_directory);
        let data_directory = data_directory.to_owned();
        let copies = Self { data_directory, folder, mark, budget, kept: Mutex::new(kept) };
        copies.make_room();
        Ok(copies)
    }

    /// A copy of a catalog and the embeddings that one encoder made of it.
    #[must_use]
    pub fn pack(
        tenant: &TenantId,
        fingerprint: &str,
        catalog: &StoredCatalog,
        embeddings: &Embeddings,
    ) -> Option<Packed> {
        let dimensions = embeddings.values().next().map_or(0, Vec::len);
        let tenant = tenant.as_str().to_owned();
        let fingerprint = fingerprint.to_owned();
        let name = name_of(&tenant);
        let described = Described { tenant, fingerprint, dimensions, catalog };
        let json = serde_json::to_vec(&described).ok()?;
        let mut content = Vec::with_capacity(json.len() + embeddings.len() * (32 + 4 * dimensions));
        content.extend_from_slice(&json);
        for (hash, vector) in embeddings.iter().filter(|(_, vector)| vector.len() == dimensions) {
            content.extend_from_slice(hash);
            content.extend(to_bytes(vector));
        }
        let length = (json.len() as u64).to_le_bytes();
        let mut bytes = Vec::with_capacity(HEAD + content.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&digest(&length, &content));
        bytes.extend_from_slice(&length);
        bytes.extend(content);
        Some(Packed { name, bytes, revision: catalog.revision })
    }

    /// Keeps a copy in the place of an older one, and makes room by throwing away those used longest ago.
    /// Blocks on the file system.
    ///
    /// # Errors
    /// A disk that can't be written. The copy before it is whole then.
    pub fn keep(&self, packed: &Packed) -> io::Result<()> {
        let bytes = packed.bytes.len() as u64;
        if bytes > self.budget {
            return Ok(());
        }
        let path = self.folder.join(&packed.name);
        let draft = path.with_extension("draft");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // One writer at a time, for the draft has one name.
        let mut kept = self.kept();
        if kept.get(&packed.name).is_some_and(|copy| copy.revision > packed.revision) {
            return Ok(());
        }
        let written = options.open(&draft).and_then(|mut file| {
            file.write_all(&packed.bytes)?;
            file.sync_all()
        });
        if let Err(error) = written.and_then(|()| fs::rename(&draft, &path)) {
            drop(fs::remove_file(&draft));
            return Err(error);
        }
        let copy = Kept { bytes, used: SystemTime::now(), revision: packed.revision };
        kept.insert(packed.name.clone(), copy);
        drop(kept);
        File::open(&self.folder)?.sync_all()?;
        self.make_room();
        Ok(())
    }

    /// Whether there is a copy of the tenant's catalog, good or not.
    #[must_use]
    pub fn has(&self, tenant: &TenantId) -> bool {
        self.kept().contains_key(&name_of(tenant.as_str()))
    }

    /// The copy of a tenant's catalog, with the embeddings if they are of this encoder; `None` when there is no good
    /// one. Blocks on the file system.
    #[must_use]
    pub fn read(
        &self,
        tenant: &TenantId,
        fingerprint: &str,
    ) -> Option<(StoredCatalog, Embeddings)> {
        let name = name_of(tenant.as_str());
        let path = self.folder.join(&name);
        let unpacked = fs::read(&path).ok().and_then(|bytes| unpack(tenant, fingerprint, &bytes));
        let now = SystemTime::now();
        if unpacked.is_some() {
            if let Some(kept) = self.kept().get_mut(&name) {
                kept.used = now;
            }
            // Only for the next process to know; a disk that takes no changes must not keep a copy from being read.
            drop(File::open(&path).and_then(|f| f.set_times(FileTimes::new().set_modified(now))));
        }
        unpacked
    }

    /// Returns how far the process before this one had followed the store, and how long ago.
    #[must_use]
    pub fn followed_before(&self) -> Option<FollowedMark> {
        self.mark
    }

    /// Notes that copies are worth what the store has at the change of number `sequence`. Blocks on the file system.
    ///
    /// # Errors
    /// A disk that can't be written.
    pub fn note_followed(&self, sequence: Sequence) -> io::Result<()> {
        mark::write(&self.data_directory, sequence)
    }

    /// Throws a copy away that is older than what is committed. Blocks on the file system.
    pub fn throw_away_older(&self, tenant: &TenantId, committed: Revision) {
        let name = name_of(tenant.as_str());
        let mut kept = self.kept();
        if kept.get(&name).is_some_and(|copy| copy.revision < committed) {
            drop(fs::remove_file(self.folder.join(&name)));
            kept.remove(&name);
        }
    }

    /// Throws all copies away: what they are of is no longer what the store has.
    pub fn clear(&self) {
        for (name, _) in self.kept().drain() {
            drop(fs::remove_file(self.folder.join(name)));
        }
    }

    fn make_room(&self) {
        let mut kept = self.kept();
        let mut bytes: u64 = kept.values().map(|copy| copy.bytes).sum();
        while bytes > self.budget {
            let oldest = kept.iter().min_by_key(|(_, copy)| copy.used);
            let Some((name, copy)) = oldest.map(|(name, copy)| (name.clone(), *copy)) else {
                return;
            };
            drop(fs::remove_file(self.folder.join(&name)));
            kept.remove(&name);
            bytes = bytes.saturating_sub(copy.bytes);
        }
    }

    /// Nothing panics while it holds the lock.
    fn kept(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By a hash, so that a tenant's name is no path.
fn name_of(tenant: &str) -> String {
    format!("{}.{ENDING}", hex::encode(Sha256::digest(tenant.as_bytes())))
}

fn digest(length: &[u8; 8], content: &[u8]) -> ContentHash {
    Sha256::new().chain_update(MAGIC).chain_update(length).chain_update(content).finalize().into()
}

fn unpack(
    tenant: &TenantId,
    fingerprint: &str,
    bytes: &[u8],
) -> Option<(StoredCatalog, Embeddings)> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (hash, rest) = rest.split_first_chunk::<32>()?;
    let (length, content) = rest.split_first_chunk::<8>()?;
    if magic != MAGIC || *hash != digest(length, content) {
        return None;
    }
    let json = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (json, vectors) = content.split_at_checked(json)?;
    let described: Described<StoredCatalog> = serde_json::from_slice(json).ok()?;
    if described.tenant != tenant.as_str() {
        return None;
    }
    let mut embeddings = Embeddings::new();
    if described.fingerprint == fingerprint && described.dimensions > 0 {
        for row in vectors.chunks_exact(described.dimensions.checked_mul(4)?.checked_add(32)?) {
            let (hash, vector) = row.split_first_chunk::<32>()?;
            embeddings.insert(*hash, from_bytes(vector)?);
        }
    }
    Some((described.catalog, embeddings))
}

#[cfg(test)]
mod tests;
