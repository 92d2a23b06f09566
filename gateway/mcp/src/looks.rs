//! Looks at lists of servers, one of each list at a time: whoever comes during one waits for it, and has no other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::vetting::ListName;

/// Lists that are looked at.
#[derive(Default)]
pub(crate) struct Looks(Mutex<HashMap<ListName, Weak<Look>>>);

/// Look at a list, and those who wait for it.
#[derive(Default)]
struct Look {
    turn: tokio::sync::Mutex<()>,
    /// Number of looks that came to their end.
    ended: AtomicU64,
}

impl Looks {
    /// Looks at a list, or waits for whoever does so already. If that one leaves, the next who waits looks. Does nothing if the look
    /// is no longer needed when its turn comes.
    pub(crate) async fn look(
        &self,
        list: &ListName,
        is_needed: impl Fn() -> bool,
        look: impl Future<Output = ()>,
    ) {
        let shared = self.of(list);
        let before = shared.ended.load(Ordering::Acquire);
        let _turn = shared.turn.lock().await;
        if shared.ended.load(Ordering::Acquire) == before && is_needed() {
            look.await;
            shared.ended.fetch_add(1, Ordering::Release);
        }
    }

    fn of(&self, list: &ListName) -> Arc<Look> {
        let mut looks = self.0.lock();
        if let Some(look) = looks.get(list).and_then(Weak::upgrade) {
            return look;
        }
        looks.retain(|_, look| look.strong_count() > 0);
        let look = Arc::new(Look::default());
        looks.insert(list.clone(), Arc::downgrade(&look));
        look
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use futures_util::future::join_all;

    use super::*;
    use crate::gathered::Kind;

    fn list(server: &str) -> ListName {
        ListName { server: server.to_owned(), kind: Kind::Prompts, owner: None }
    }

    async fn look_at(looks: &Looks, server: &str, count: &AtomicUsize) {
        let look = async {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        };
        looks.look(&list(server), || true, look).await;
    }

    #[tokio::test]
    async fn many_at_once_look_once() {
        let looks = Looks::default();
        let count = AtomicUsize::new(0);
        let servers = ["sea", "sea", "sky", "sea"];
        join_all(servers.iter().map(|server| look_at(&looks, server, &count))).await;
        assert_eq!(count.load(Ordering::Relaxed), 2);
        look_at(&looks, "sea", &count).await;
        assert_eq!(count.load(Ordering::Relaxed), 3, "a later one looks anew");
        look_at(&looks, "moon", &count).await;
        assert_eq!(looks.0.lock().len(), 1, "nothing is kept of those that ended");
    }

    #[tokio::test]
    async fn who_comes_right_after_a_look_needs_no_other() {
        let looks = Looks::default();
        let is_seen = AtomicBool::new(false);
        let count = AtomicUsize::new(0);
        // Both found before that nobody has looked.
        for _ in 0..2 {
            let look = async {
                count.fetch_add(1, Ordering::Relaxed);
                is_seen.store(true, Ordering::Relaxed);
            };
            looks.look(&list("sea"), || !is_seen.load(Ordering::Relaxed), look).await;
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn who_waits_looks_when_the_first_leaves() {
        let looks = Looks::default();
        let count = AtomicUsize::new(0);
        let sea = list("sea");
        let first = looks.look(&sea, || true, std::future::pending());
        let counted = async {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let second = looks.look(&sea, || true, counted);
        let mut first = Box::pin(first);
        let mut second = Box::pin(second);
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        second.await;
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
