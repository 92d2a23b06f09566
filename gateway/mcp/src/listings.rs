//! The tools that a caller may see, as the routing plane lists them. Who asks the same while an answer is on its way shares
//! it: all hosts list at once when a list has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use toolgate_client::v1;

/// Tools by server and name, or why they can't be listed.
pub(crate) type Listed = Result<Arc<[v1::Tool]>, String>;

/// Listings that are under way.
#[derive(Default)]
pub(crate) struct Listings {
    running: Arc<Mutex<HashMap<Asked, Running>>>,
    next: AtomicU64,
}

/// Caller who asks, and the servers asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) tenant: String,
    pub(crate) principal: String,
    /// Server whose tools are asked for; `None` for those of all.
    pub(crate) server: Option<String>,
    /// Parts of each tool that a list has.
    pub(crate) view: v1::ToolView,
}

struct Running {
    number: u64,
    state: v1::AgentState,
    answer: Shared<BoxFuture<'static, Listed>>,
}

impl Listings {
    /// Returns the tools that a caller in this state may see. `list` asks for them, unless the same caller in the same state
    /// is asking already.
    ///
    /// # Errors
    /// The problem, if they can't be listed.
    pub(crate) async fn get<F>(
        &self,
        asked: Asked,
        state: v1::AgentState,
        list: impl FnOnce(v1::AgentState) -> F,
    ) -> Listed
    where
        F: Future<Output = Listed> + Send + 'static,
    {
        let answer = {
            let mut running = self.running.lock();
            match running.get(&asked).filter(|running| running.state == state) {
                Some(running) => running.answer.clone(),
                None => {
                    let started = self.start(&asked, state.clone(), list(state));
                    let answer = started.answer.clone();
                    running.insert(asked, started);
                    answer
                }
            }
        };
        answer.await
    }

    /// Starts a listing, which goes on whoever leaves.
    fn start(
        &self,
        asked: &Asked,
        state: v1::AgentState,
        listed: impl Future<Output = Listed> + Send + 'static,
    ) -> Running {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = Place { running: Arc::clone(&self.running), asked: asked.clone(), number };
        let listing = tokio::spawn(async move {
            let _place = place;
            listed.await
        });
        let answer = async move {
            listing.await.unwrap_or_else(|error| Err(format!("the catalog can't be read: {error}")))
        };
        Running { number, state, answer: answer.boxed().shared() }
    }
}

/// Place of a listing that is under way. It is free again however the listing ends.
struct Place {
    running: Arc<Mutex<HashMap<Asked, Running>>>,
    asked: Asked,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        if running.get(&self.asked).is_some_and(|running| running.number == self.number) {
            running.remove(&self.asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    fn asked(principal: &str) -> Asked {
        let view = v1::ToolView::Names;
        Asked { tenant: "acme".to_owned(), principal: principal.to_owned(), server: None, view }
    }

    fn state(scope: &str) -> v1::AgentState {
        v1::AgentState { scopes: vec![scope.to_owned()], ..Default::default() }
    }

    #[tokio::test]
    async fn who_asks_the_same_shares_an_answer_and_nobody_else_does() {
        let listings = Listings::default();
        let count = Arc::new(AtomicU64::new(0));
        let gate = Arc::new(Semaphore::new(0));
        let get = |principal: &str, scope: &str| {
            let count = Arc::clone(&count);
            let gate = Arc::clone(&gate);
            listings.get(asked(principal), state(scope), move |state| async move {
                count.fetch_add(1, Ordering::Relaxed);
                gate.acquire().await.expect("an open gate").forget();
                let tool = v1::Tool { name: state.scopes[0].clone(), ..Default::default() };
                Ok(Arc::from([tool]))
            })
        };
        let open = async {
            // Whoever is to ask has asked by now: `join!` polls them first.
            gate.add_permits(3);
        };
        let (one, same, wider, other, ()) =
            tokio::join!(get("ann", "a"), get("ann", "a"), get("ann", "b"), get("bob", "a"), open);
        let name = |listed: Listed| listed.expect("a listing")[0].name.clone();
        assert_eq!([one, same, wider, other].map(name), ["a", "a", "b", "a"]);
        assert_eq!(count.load(Ordering::Relaxed), 3);
        gate.add_permits(1);
        get("ann", "a").await.expect("a listing");
        assert_eq!(count.load(Ordering::Relaxed), 4, "an answer is for those who waited");
        assert!(listings.running.lock().is_empty());
    }
    #[tokio::test]
    async fn a_listing_that_fails_tells_everybody_and_the_next_one_works() {
        let listings = Listings::default();
        for ends_badly in [false, true] {
            let gate = Arc::new(Semaphore::new(0));
            let get = || {
                let gate = Arc::clone(&gate);
                listings.get(asked("ann"), state("a"), move |_| async move {
                    gate.acquire().await.expect("an open gate").forget();
                    assert!(!ends_badly, "the listing ends badly");
                    Err("no plane".to_owned())
                })
            };
            let open = async { gate.add_permits(1) };
            let (one, other, third, ()) = tokio::join!(get(), get(), get(), open);
            for listed in [one, other, third] {
                let problem = listed.expect_err("no listing");
                let told = if ends_badly { "the catalog can't be read" } else { "no plane" };
                assert!(problem.starts_with(told), "{problem}");
            }
            let next = listings.get(asked("ann"), state("a"), |_| async { Ok(Arc::from([])) });
            assert!(next.await.is_ok_and(|tools| tools.is_empty()));
        }
    }
}
