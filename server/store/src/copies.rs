//! Local copies of the catalogs that this replica serves, on its disk, for times when the shared store can't be
//! reached. Each copy is one file, written to a draft beside it and then renamed. A copy is never served if it is
//! incomplete, belongs to another tenant or has another format version.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::content::{from_bytes, to_bytes};
use super::{ContentHash, Revision, Sequence, StoredCatalog};
use toolgate_core::identity::TenantId;

mod mark;

pub use mark::FollowedMark;

/// First bytes of a copy: the file type and the format version.
const MAGIC: &[u8; 8] = b"TGCOPY\x00\x02";

/// Name of the folder in the data directory.
const FOLDER: &str = "snapshots";

/// File extension of a copy. The file name is the hash of the tenant.
const ENDING: &str = "copy";

/// Number of bytes before the content: magic, content hash, length of the JSON.
const HEAD: usize = 8 + 32 + 8;

/// Embeddings by the hash of their text.
pub type Embeddings = HashMap<ContentHash, Vec<f32>>;

/// Content of a copy apart from the vectors.
#[derive(Serialize, Deserialize)]
struct Described<C> {
    tenant: String,
    fingerprint: String,
    dimensions: usize,
    catalog: C,
}

/// Copies that one replica keeps.
#[derive(Debug)]
pub struct Copies {
    data_directory: PathBuf,
    folder: PathBuf,
    /// Mark that the previous process left.
    mark: Option<FollowedMark>,
    /// Maximum size of all copies together, in bytes.
    budget: u64,
    kept: Mutex<HashMap<String, Kept>>,
}

/// Copy on the disk.
#[derive(Debug, Clone, Copy)]
struct Kept {
    bytes: u64,
    used: SystemTime,
    /// Catalog revision of the copy as far as this process knows; 0 if the previous process wrote it.
    revision: Revision,
}

/// Copy in memory, ready to be written.
#[derive(Debug)]
pub struct Packed {
    name: String,
    bytes: Vec<u8>,
    revision: Revision,
}

impl Copies {
    /// Opens the copies in the data directory, and deletes unfinished drafts. Blocks on the file system.
    ///
    /// # Errors
    /// The folder can't be created or read.
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
                // This is a draft of a process that ended before it was renamed.
                fs::remove_file(&path)?;
            }
        }
        let mark = mark::read(data_directory);
        let data_directory = data_directory.to_owned();
        let copies = Self { data_directory, folder, mark, budget, kept: Mutex::new(kept) };
        copies.make_room();
        Ok(copies)
    }

    /// Packs a catalog and the embeddings that one encoder made for it. Returns `None` if the catalog can't be
    /// serialized.
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

    /// Writes a copy over an older one, and deletes the least recently used copies to stay within the budget. Skips a
    /// copy that exceeds the whole budget. Blocks on the file system.
    ///
    /// # Errors
    /// The disk can't be written. The previous copy is intact then.
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
        // Only one writer at a time, because all drafts of a copy have the same name.
        let mut kept = self.kept.lock();
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

    /// Returns true if there is a copy of the tenant's catalog, valid or not.
    #[must_use]
    pub fn has(&self, tenant: &TenantId) -> bool {
        self.kept.lock().contains_key(&name_of(tenant.as_str()))
    }

    /// Returns the copy of a tenant's catalog; `None` if there is no valid copy. The embeddings are included if this
    /// encoder made them. Blocks on the file system.
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
            if let Some(kept) = self.kept.lock().get_mut(&name) {
                kept.used = now;
            }
            // The next process orders copies by this time. A disk that can't be written must not keep a copy from
            // being read.
            drop(File::open(&path).and_then(|f| f.set_times(FileTimes::new().set_modified(now))));
        }
        unpacked
    }

    /// Returns the last change that the previous process had followed, and the time since then.
    #[must_use]
    pub fn followed_before(&self) -> Option<FollowedMark> {
        self.mark
    }

    /// Records that this replica has followed the store up to the change with number `sequence`. Blocks on the file
    /// system.
    ///
    /// # Errors
    /// The disk can't be written.
    pub fn note_followed(&self, sequence: Sequence) -> io::Result<()> {
        mark::write(&self.data_directory, sequence)
    }

    /// Deletes the copy of a tenant if it is older than the committed revision. Blocks on the file system.
    pub fn throw_away_older(&self, tenant: &TenantId, committed: Revision) {
        let name = name_of(tenant.as_str());
        let mut kept = self.kept.lock();
        if kept.get(&name).is_some_and(|copy| copy.revision < committed) {
            drop(fs::remove_file(self.folder.join(&name)));
            kept.remove(&name);
        }
    }

    /// Deletes all copies, because they no longer match the store.
    pub fn clear(&self) {
        for (name, _) in self.kept.lock().drain() {
            drop(fs::remove_file(self.folder.join(name)));
        }
    }

    fn make_room(&self) {
        let mut kept = self.kept.lock();
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
}

/// Returns the file name of a tenant's copy. It is a hash, so that a tenant's name can't form a path.
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
