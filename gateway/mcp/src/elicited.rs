//! Pages that servers of revisions before 2026-07-28 sent persons to. Such a server tells when a person is through with one, on
//! whichever connection, and the host that opened the page hears of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::Peer;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolgate_upstream::Completion;

/// Notification that a person is through with a page.
const COMPLETE: &str = "notifications/elicitation/complete";

/// Most bytes of the ID of a page that is known.
const ID_MAX: usize = 1 << 10;

/// Time of a host to take what it is told.
const TAKEN: Duration = Duration::from_secs(10);

/// Most pages that are known. Of more, the oldest are forgotten.
const KEPT_MAX: usize = 1_024;

/// Pages that persons were sent to. Clones share them.
#[derive(Clone)]
pub(crate) struct Elicited<P = Peer<RoleServer>>(Arc<Mutex<VecDeque<Page<P>>>>);

struct Page<P> {
    server: String,
    /// ID of the question, as the server made it.
    elicitation: String,
    host: P,
}

impl<P> Default for Elicited<P> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P> Elicited<P> {
    /// Notes the page that a question of a server leads to, if it leads to one, and the host that is asked, if it hears of such.
    pub(crate) fn note(&self, server: &str, question: &Value, host: Option<P>) {
        let id = question["elicitationId"].as_str();
        let id = id.filter(|id| id.len() <= ID_MAX && question["mode"] == "url");
        let Some(id) = id else { return };
        let Some(host) = host else { return };
        let mut pages = self.0.lock();
        pages.push_back(Page { server: server.to_owned(), elicitation: id.to_owned(), host });
        if pages.len() > KEPT_MAX {
            pages.pop_front();
        }
    }

    /// Returns the hosts that were sent to a page, and forgets it.
    fn take(&self, completion: &Completion) -> Vec<P> {
        let mut pages = self.0.lock();
        let is_it = |page: &Page<P>| {
            *page.server == *completion.server && *page.elicitation == *completion.elicitation
        };
        let (taken, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut *pages).into_iter().partition(is_it);
        *pages = kept;
        taken.into_iter().map(|page| page.host).collect()
    }
}

/// Tells hosts of the pages that their persons are through with. Runs until it is aborted.
pub(crate) async fn follow(elicited: Elicited, completions: broadcast::Receiver<Completion>) {
    let tell = |host: Peer<RoleServer>, params: Value| async move {
        let told = CustomNotification::new(COMPLETE, Some(params));
        // The session may have ended.
        let _ended = host.send_notification(ServerNotification::CustomNotification(told)).await;
    };
    follow_by(elicited, completions, tell).await;
}

async fn follow_by<P, T: Future<Output = ()> + Send + 'static>(
    elicited: Elicited<P>,
    mut completions: broadcast::Receiver<Completion>,
    tell: impl Fn(P, Value) -> T,
) {
    loop {
        match completions.recv().await {
            Ok(completion) => {
                let params = json!({"elicitationId": &*completion.elicitation});
                for host in elicited.take(&completion) {
                    // A host that takes nothing keeps no other waiting.
                    tokio::spawn(tokio::time::timeout(TAKEN, tell(host, params.clone())));
                }
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(server: &str, elicitation: &str) -> Completion {
        Completion { server: server.into(), elicitation: elicitation.into() }
    }

    #[test]
    fn a_page_is_its_servers_and_told_once() {
        let elicited = Elicited::<&str>::default();
        let page = |id: &str| json!({"mode": "url", "elicitationId": id, "url": "https://x"});
        elicited.note("a", &page("1"), Some("ann"));
        elicited.note("b", &page("1"), Some("bob"));
        elicited.note("a", &page("2"), Some("eve"));
        elicited.note("a", &page("3"), None);
        elicited.note("a", &json!({"elicitationId": "4"}), Some("a form"));
        elicited.note("a", &json!({"mode": "url"}), Some("no name"));
        assert_eq!(elicited.take(&completion("a", "1")), ["ann"]);
        assert!(elicited.take(&completion("a", "1")).is_empty());
        assert!(elicited.take(&completion("a", "3")).is_empty());
        assert!(elicited.take(&completion("a", "4")).is_empty());
        assert_eq!(elicited.take(&completion("b", "1")), ["bob"]);
        assert_eq!(elicited.take(&completion("a", "2")), ["eve"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_takes_nothing_keeps_no_other_waiting() {
        let elicited = Elicited::<&str>::default();
        let page = |id: &str| json!({"mode": "url", "elicitationId": id});
        elicited.note("a", &page("1"), Some("stalled"));
        elicited.note("a", &page("2"), Some("ann"));
        let (completions, receiver) = broadcast::channel(2);
        for id in ["1", "2"] {
            completions.send(completion("a", id)).expect("a receiver");
        }
        drop(completions);
        let (told, mut hosts) = tokio::sync::mpsc::unbounded_channel();
        let tell = move |host: &'static str, _params: Value| {
            let told = told.clone();
            async move {
                if host == "stalled" {
                    std::future::pending::<()>().await;
                }
                told.send(host).expect("a receiver");
            }
        };
        let following = tokio::time::timeout(TAKEN * 2, follow_by(elicited, receiver, tell)).await;
        following.expect("both are told");
        assert_eq!(hosts.recv().await, Some("ann"));
    }

    #[test]
    fn pages_are_bounded() {
        let elicited = Elicited::<usize>::default();
        let long = json!({"mode": "url", "elicitationId": "x".repeat(ID_MAX + 1)});
        elicited.note("a", &long, Some(0));
        assert!(elicited.0.lock().is_empty());
        for number in 0..=KEPT_MAX {
            let page = json!({"mode": "url", "elicitationId": number.to_string()});
            elicited.note("a", &page, Some(number));
        }
        assert!(elicited.take(&completion("a", "0")).is_empty());
        assert_eq!(elicited.take(&completion("a", "1")), [1]);
    }
}
