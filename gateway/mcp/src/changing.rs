//! Changes of the lists that a face shows, for the hosts that follow them.

use std::collections::BTreeMap;
use std::ops::BitOrAssign;
use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};
use toolgate_upstream::{Change, ListChange, Listing, ServerState};

use crate::face::Exposure;
use crate::gateway::{Gateway, Seen};

/// Lists that changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChangedLists {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

/// Changes of the lists of one face to one tenant.
pub(crate) struct FaceChanges {
    gateway: Gateway,
    exposure: Exposure,
    tenant: Arc<str>,
    /// Servers that tell of a change.
    told: broadcast::Receiver<ListChange>,
    seen: Seen,
    lists: FaceLists,
}

/// Listings of servers that a list is made of: `None` for a server whose part is not there, or does not count.
type Parts = BTreeMap<String, Option<Arc<Listing>>>;

/// Lists of a face, as far as the gateway knows what they are made of.
#[derive(Default)]
struct FaceLists {
    tools: Parts,
    prompts: Parts,
    resources: Parts,
}

impl ChangedLists {
    const ALL: Self = Self { tools: true, prompts: true, resources: true };

    pub(crate) fn any(self) -> bool {
        self != Self::default()
    }
}

impl From<Change> for ChangedLists {
    fn from(change: Change) -> Self {
        Self {
            tools: change == Change::Tools,
            prompts: change == Change::Prompts,
            resources: change == Change::Resources,
        }
    }
}

impl BitOrAssign for ChangedLists {
    fn bitor_assign(&mut self, other: Self) {
        self.tools |= other.tools;
        self.prompts |= other.prompts;
        self.resources |= other.resources;
    }
}

impl FaceChanges {
    /// Follows the lists of a face from now on.
    pub(crate) fn new(gateway: &Gateway, exposure: &Exposure, tenant: &Arc<str>) -> Self {
        let told = gateway.fleet().list_changes();
        let seen = gateway.seen();
        let mut changes = Self {
            gateway: gateway.clone(),
            exposure: exposure.clone(),
            tenant: Arc::clone(tenant),
            told,
            seen,
            lists: FaceLists::default(),
        };
        changes.lists = changes.current();
        changes
    }

    /// Waits for the next change. Loses none when it is dropped halfway.
    pub(crate) async fn next(&mut self) -> ChangedLists {
        loop {
            let mut changed = tokio::select! {
                told = self.told.recv() => self.changed_by(told),
                _changed = self.gateway.changed(&mut self.seen) => ChangedLists::default(),
            };
            let current = self.current();
            changed |= self.lists.changed_to(&current, &self.exposure);
            self.lists = current;
            if changed.any() {
                return changed;
            }
        }
    }

    /// Returns the lists of the face that change with what a server tells.
    fn changed_by(&self, told: Result<ListChange, RecvError>) -> ChangedLists {
        let change = match told {
            Ok(change) => change,
            Err(RecvError::Lagged(_)) => return ChangedLists::ALL,
            // The fleet holds the sender.
            Err(RecvError::Closed) => return ChangedLists::default(),
        };
        let is_shown = match &self.exposure {
            Exposure::Server(server) => **server == *change.server,
            Exposure::Search | Exposure::All => self.gateway.sees(&self.tenant, &change.server),
        };
        // A host that lists tools at once finds those that are registered.
        let is_registered = || {
            let listing = self.gateway.fleet().listing(&change.server);
            let registered = self.gateway.registered(&self.tenant, &change.server);
            listing.zip(registered).is_some_and(|(listing, known)| Arc::ptr_eq(&listing, &known))
        };
        let counts = match (change.list, &self.exposure) {
            (Change::Tools, Exposure::Server(_)) => is_shown && is_registered(),
            // Those of several servers are known by their registrations.
            (Change::Tools, Exposure::Search | Exposure::All) => false,
            (Change::Prompts | Change::Resources, _) => is_shown,
        };
        if counts { change.list.into() } else { ChangedLists::default() }
    }

    /// Returns the lists as they are now.
    fn current(&self) -> FaceLists {
        let mut lists = FaceLists::default();
        for status in self.gateway.servers_of(&self.tenant) {
            let server = status.name;
            if matches!(&self.exposure, Exposure::Server(only) if *only != server) {
                continue;
            }
            let is_there = matches!(status.state, ServerState::Ready | ServerState::Idle);
            let listing = self.gateway.fleet().listing(&server);
            for (capability, parts) in
                [("prompts", &mut lists.prompts), ("resources", &mut lists.resources)]
            {
                let has = |listing: &&Arc<Listing>| listing.capabilities.get(capability).is_some();
                if let Some(listing) = listing.as_ref().filter(has) {
                    parts.insert(server.clone(), is_there.then(|| Arc::clone(listing)));
                }
            }
            let registered = self.gateway.registered(&self.tenant, &server);
            let tools = registered.filter(|_| self.shows_tools_of(&server));
            lists.tools.insert(server, tools);
        }
        lists
    }

    /// Returns true if the face may show tools of a server as they are.
    fn shows_tools_of(&self, server: &str) -> bool {
        let settings = &self.gateway.config().gateway;
        let is_of_server = |tool: &String| {
            tool.split_once("__").is_some_and(|(its_server, _tool)| its_server == server)
        };
        match self.exposure {
            Exposure::Server(_) | Exposure::All => true,
            Exposure::Search => {
                let always_on = self.gateway.always_on(&self.tenant);
                settings.load_all_up_to > 0 || always_on.iter().any(is_of_server)
            }
        }
    }
}

impl FaceLists {
    /// Returns which lists are others now.
    fn changed_to(&self, now: &Self, exposure: &Exposure) -> ChangedLists {
        // Texts of the tools that search name the servers.
        let is_renamed = *exposure == Exposure::Search && self.tools.keys().ne(now.tools.keys());
        ChangedLists {
            tools: is_renamed || is_changed(&self.tools, &now.tools, Arc::ptr_eq),
            prompts: is_changed(&self.prompts, &now.prompts, |_, _| true),
            resources: is_changed(&self.resources, &now.resources, |_, _| true),
        }
    }
}

/// Returns true if a part came or is another, or its server has left. A server that is away for a while changes nothing until it
/// is there again.
fn is_changed(
    before: &Parts,
    now: &Parts,
    is_same: fn(&Arc<Listing>, &Arc<Listing>) -> bool,
) -> bool {
    let has_left = before.keys().any(|server| !now.contains_key(server));
    let has_come = now.iter().any(|(server, part)| {
        let before = before.get(server).and_then(Option::as_ref);
        part.as_ref().is_some_and(|part| before.is_none_or(|before| !is_same(before, part)))
    });
    has_left || has_come
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolgate_upstream::ServerIdentity;

    use super::*;

    fn listing(server: &str) -> Arc<Listing> {
        let identity = ServerIdentity {
            name: server.to_owned(),
            version: String::new(),
            protocol: String::new(),
        };
        Arc::new(Listing {
            server: server.to_owned(),
            identity,
            instructions: None,
            capabilities: Value::Null,
            tools: Vec::new(),
            findings: Vec::new(),
        })
    }

    fn tools(parts: &[(&str, Option<&Arc<Listing>>)]) -> FaceLists {
        let parts = parts.iter().map(|(server, part)| ((*server).to_owned(), part.cloned()));
        FaceLists { tools: parts.collect(), ..FaceLists::default() }
    }

    #[test]
    fn tools_change_with_each_new_listing_and_not_while_a_server_is_away() {
        let old = listing("a");
        let new = listing("a");
        let face = Exposure::All;
        let changed = |before: &FaceLists, now: &FaceLists| before.changed_to(now, &face).tools;
        let with_old = tools(&[("a", Some(&old))]);
        let away = tools(&[("a", None)]);
        assert!(!changed(&with_old, &tools(&[("a", Some(&old))])));
        assert!(!changed(&with_old, &away));
        assert!(changed(&away, &with_old));
        assert!(changed(&with_old, &tools(&[("a", Some(&new))])));
        assert!(changed(&with_old, &tools(&[])));
        assert!(!changed(&with_old, &tools(&[("a", Some(&old)), ("b", None)])));
    }

    #[test]
    fn the_searching_face_changes_with_the_names_of_its_servers() {
        let one = tools(&[("a", None)]);
        let two = tools(&[("a", None), ("b", None)]);
        assert!(one.changed_to(&two, &Exposure::Search).tools);
        assert!(!one.changed_to(&one, &Exposure::Search).any());
        let of_one = Exposure::Server("a".to_owned());
        assert!(!one.changed_to(&two, &of_one).any());
    }
}
