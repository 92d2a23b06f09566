//! Sessions that their hosts ended. The ID of a session stays good for longer, so it is refused by name.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use super::KEPT;

/// Time for which a session is believed not to have been ended at another replica.
const BELIEVED: Duration = Duration::from_secs(5);

/// Most sessions that are remembered as ended, or as looked up, in memory.
const REMEMBERED_MAX: usize = 100_000;

/// Memory of sessions that their hosts ended, which all replicas share.
pub trait EndedSessions: Send + Sync {
    /// Notes that a session was ended. It may be forgotten at `until`.
    fn end<'a>(&'a self, session: &'a str, until: SystemTime) -> BoxFuture<'a, Result<(), String>>;

    /// Returns whether a session was ended.
    fn is_ended<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<bool, String>>;
}

/// Sessions that were ended, as this replica knows it.
pub(crate) struct Ended {
    own: Mutex<HashMap<String, SystemTime>>,
    shared: Option<Arc<dyn EndedSessions>>,
    /// Sessions that others did not end, and when that was looked up.
    asked: Mutex<HashMap<String, Instant>>,
}

impl Ended {
    pub(crate) fn new(shared: Option<Arc<dyn EndedSessions>>) -> Self {
        Self { own: Mutex::default(), shared, asked: Mutex::default() }
    }

    /// Notes that a host ended its session.
    pub(crate) async fn end(&self, session: &str) {
        let until = SystemTime::now() + KEPT;
        {
            let mut own = self.own.lock();
            if own.len() >= REMEMBERED_MAX {
                let now = SystemTime::now();
                own.retain(|_, until| *until > now);
            }
            own.insert(session.to_owned(), until);
        }
        let Some(shared) = &self.shared else { return };
        if let Err(error) = shared.end(session, until).await {
            tracing::warn!(error, "other replicas were not told that a session was ended");
        }
    }

    /// Returns whether a session was ended, at another replica up to five seconds late. While the others can't be asked, it
    /// was not.
    pub(crate) async fn has(&self, session: &str) -> bool {
        if self.own.lock().contains_key(session) {
            return true;
        }
        let Some(shared) = &self.shared else { return false };
        let now = Instant::now();
        let asked = self.asked.lock().get(session).copied();
        if asked.is_some_and(|asked| now < asked + BELIEVED) {
            return false;
        }
        let is_ended = shared.is_ended(session).await.unwrap_or_else(|error| {
            tracing::warn!(error, "it can't be looked up which sessions were ended");
            false
        });
        if is_ended {
            self.own.lock().insert(session.to_owned(), SystemTime::now() + KEPT);
            return true;
        }
        let mut asked = self.asked.lock();
        if asked.len() >= REMEMBERED_MAX {
            asked.retain(|_, asked| now < *asked + BELIEVED);
        }
        asked.insert(session.to_owned(), now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that counts how often it is asked, and may be out of reach.
    #[derive(Default)]
    struct Shared {
        ended: Mutex<Vec<String>>,
        asked: Mutex<usize>,
        is_lost: Mutex<bool>,
    }

    impl EndedSessions for Shared {
        fn end<'a>(
            &'a self,
            session: &'a str,
            _until: SystemTime,
        ) -> BoxFuture<'a, Result<(), String>> {
            self.ended.lock().push(session.to_owned());
            Box::pin(std::future::ready(Ok(())))
        }

        fn is_ended<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<bool, String>> {
            *self.asked.lock() += 1;
            let is_ended = self.ended.lock().iter().any(|ended| ended == session);
            let answer = if *self.is_lost.lock() { Err("lost".to_owned()) } else { Ok(is_ended) };
            Box::pin(std::future::ready(answer))
        }
    }

    #[tokio::test]
    async fn a_session_that_was_ended_stays_so_without_a_store() {
        let ended = Ended::new(None);
        assert!(!ended.has("a").await);
        ended.end("a").await;
        assert!(ended.has("a").await);
        assert!(!ended.has("b").await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_at_another_replica_is_seen_within_seconds() {
        let shared = Arc::new(Shared::default());
        let near = Ended::new(Some(shared.clone()));
        let far = Ended::new(Some(shared.clone()));
        assert!(!far.has("a").await);
        assert!(!far.has("a").await);
        assert_eq!(*shared.asked.lock(), 1, "it is not looked up at each request");
        near.end("a").await;
        tokio::time::sleep(BELIEVED).await;
        assert!(far.has("a").await);
        *shared.is_lost.lock() = true;
        assert!(far.has("a").await, "what is known is remembered");
        assert!(!far.has("b").await, "a store that is out of reach refuses nobody");
    }
}
