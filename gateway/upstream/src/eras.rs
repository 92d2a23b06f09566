//! Memory of which era of MCP a server speaks, so that it is asked once and not at each start: a server that is silent about
//! `server/discover` takes ten seconds to be asked, and some have to be started twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::connection::ServerIdentity;
use crate::private_files::replace_private;
use crate::target::Upstream;

/// Most servers that are remembered.
const SERVERS_MAX: usize = 1_024;

/// Era of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    /// 2026-07-28 or later: `server/discover`.
    Modern,
    /// Before it: `initialize`.
    Older,
}

/// Eras of servers, by their commands and URLs. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Eras(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// `None` if they are remembered by this process alone.
    path: Option<PathBuf>,
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    era: Era,
    /// Name and version that the server told.
    server: String,
}

/// Era by which a connection is opened. It is forgotten unless the connection proves it.
pub(crate) struct Recalled {
    eras: Eras,
    server: String,
    era: Option<Era>,
}

impl Eras {
    /// Reads what is remembered in a file, which is written with each change. One that can't be read is as if it were not there.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        let known = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let known = Mutex::new(known.unwrap_or_default());
        Self(Arc::new(Shared { path: Some(path.to_owned()), known }))
    }

    /// Returns the era of a server, if it is known.
    pub(crate) fn recall(&self, upstream: &Upstream) -> Recalled {
        let server = key(upstream);
        let era = self.0.known.lock().get(&server).map(|known| known.era);
        Recalled { eras: self.clone(), server, era }
    }

    fn change(&self, server: &str, new: Option<Known>) {
        let mut known = self.0.known.lock();
        if known.get(server) == new.as_ref() {
            return;
        }
        if known.len() >= SERVERS_MAX {
            known.clear();
        }
        match new {
            Some(new) => known.insert(server.to_owned(), new),
            None => known.remove(server),
        };
        let Some(path) = &self.0.path else { return };
        if let Err(error) = replace_private(path, &*known) {
            let path = path.display();
            tracing::debug!(%path, %error, "the eras of servers can't be written down");
        }
    }
}

impl Recalled {
    pub(crate) fn era(&self) -> Option<Era> {
        self.era
    }

    /// Forgets the era, since the server does not speak it.
    pub(crate) fn forget(&mut self) {
        self.eras.change(&self.server, None);
        self.era = None;
    }

    /// Leaves the era as it was known.
    pub(crate) fn keep(mut self) {
        self.era = None;
    }

    /// Notes the era of a connection. An older server that tells another version than before is asked anew at its next start.
    pub(crate) fn confirm(mut self, era: Era, identity: &ServerIdentity) {
        let recalled = self.era.take();
        let server = format!("{} {}", identity.name, identity.version);
        let is_other = {
            let known = self.eras.0.known.lock();
            known.get(&self.server).is_some_and(|known| known.server != server)
        };
        let is_asked_anew = recalled == Some(Era::Older) && is_other;
        let known = (!is_asked_anew).then_some(Known { era, server });
        self.eras.change(&self.server, known);
    }
}

impl Drop for Recalled {
    fn drop(&mut self) {
        if self.era.is_some() {
            self.forget();
        }
    }
}

/// Returns a name for a server's command or URL that says nothing of it.
fn key(upstream: &Upstream) -> String {
    let place = match upstream {
        Upstream::Process(launch) => {
            serde_json::json!([launch.program, launch.arguments, launch.folder])
        }
        Upstream::Http(endpoint) => serde_json::json!([endpoint.url.as_str()]),
    };
    hex::encode(&digest(&SHA256, place.to_string().as_bytes()).as_ref()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(version: &str) -> ServerIdentity {
        let protocol = "2025-11-25".to_owned();
        ServerIdentity { name: "s".to_owned(), version: version.to_owned(), protocol }
    }

    #[test]
    fn an_era_is_remembered_until_it_is_not_proven() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data").join("eras.json");
        let upstream = Upstream::parse("npx -y server").expect("a command");
        let other = Upstream::parse("https://tools.example/mcp").expect("a URL");
        let recall = || Eras::at(&path).recall(&upstream);
        let eras = Eras::at(&path);
        eras.recall(&upstream).confirm(Era::Older, &told("1"));
        eras.recall(&other).confirm(Era::Modern, &told("1"));
        recall().keep();
        assert_eq!(recall().era(), Some(Era::Older));
        // The one before was dropped without a proof.
        assert_eq!(recall().era(), None);
        assert_eq!(Eras::at(&path).recall(&other).era(), Some(Era::Modern));
        recall().confirm(Era::Older, &told("1"));
        // A new version may speak the newer era.
        recall().confirm(Era::Older, &told("2"));
        assert_eq!(recall().era(), None);
        recall().confirm(Era::Older, &told("2"));
        recall().confirm(Era::Older, &told("2"));
        assert_eq!(recall().era(), Some(Era::Older));
        fs::write(&path, "[").expect("a file");
        assert_eq!(recall().era(), None);
    }
}
