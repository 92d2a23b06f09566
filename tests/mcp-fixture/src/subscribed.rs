//! Resources that clients follow one by one, and questions that are open: what tests look at from another connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer};

/// Followed resources and open questions of all connections to one server. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Subscribed(Arc<State>);

#[derive(Default)]
struct State {
    connections: AtomicUsize,
    questions: AtomicUsize,
    followers: Mutex<Vec<Follower>>,
}

struct Follower {
    connection: usize,
    uri: String,
    /// Client of an older revision, which is told directly; the newer ones have subscriptions.
    peer: Option<Peer<RoleServer>>,
}

/// Resources of one subscription of the newer era, until it is dropped.
pub(crate) struct Following {
    subscribed: Subscribed,
    connection: usize,
}

/// Question that is open until this is dropped.
pub(crate) struct OpenQuestion(Subscribed);

impl Subscribed {
    /// Returns a number for a connection.
    pub(crate) fn connection(&self) -> usize {
        self.0.connections.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn follow(&self, connection: usize, uri: &str, peer: Peer<RoleServer>) {
        self.unfollow(connection, uri);
        let uri = uri.to_owned();
        self.0.followers.lock().push(Follower { connection, uri, peer: Some(peer) });
    }

    pub(crate) fn unfollow(&self, connection: usize, uri: &str) {
        let is_kept = |one: &Follower| one.connection != connection || one.uri != uri;
        self.0.followers.lock().retain(is_kept);
    }

    /// Follows the resources of a subscription.
    pub(crate) fn listen(&self, uris: &[String]) -> Following {
        let connection = self.connection();
        let followers =
            uris.iter().map(|uri| Follower { connection, uri: uri.clone(), peer: None });
        self.0.followers.lock().extend(followers);
        Following { subscribed: self.clone(), connection }
    }

    /// Tells the clients of the older era that follow a resource.
    pub(crate) async fn updated(&self, uri: &str) {
        let peers: Vec<_> = {
            let mut followers = self.0.followers.lock();
            followers.retain(|one| !one.peer.as_ref().is_some_and(Peer::is_transport_closed));
            let following = followers.iter().filter(|one| one.uri == uri);
            following.filter_map(|one| one.peer.clone()).collect()
        };
        for peer in peers {
            // The client may have left.
            let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
        }
    }

    /// Returns the followed resources, each as often as it is followed.
    pub(crate) fn uris(&self) -> Vec<String> {
        let mut uris: Vec<_> = self.0.followers.lock().iter().map(|one| one.uri.clone()).collect();
        uris.sort();
        uris
    }

    /// Returns the number of open questions.
    pub(crate) fn questions(&self) -> usize {
        self.0.questions.load(Ordering::Relaxed)
    }

    pub(crate) fn open_question(&self) -> OpenQuestion {
        self.0.questions.fetch_add(1, Ordering::Relaxed);
        OpenQuestion(self.clone())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.subscribed.0.followers.lock().retain(|one| one.connection != self.connection);
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.0.questions.fetch_sub(1, Ordering::Relaxed);
    }
}
