//! Calls that principals made through the gateway, by which preconditions are judged, and searches that led to them, by which the
//! routing plane's memory learns.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolgate_client::v1;

use crate::caller::Owner;
use crate::discovering::shown_name;

/// Time for which a call counts.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// Most calls that are kept of a principal, and most principals.
const CALLS_MAX: usize = 256;
const PRINCIPALS_MAX: usize = 4_096;

/// Calls behind a search among which one of a tool that it showed makes it a hit. The rule is that of the routing plane's usage.
const HIT_WITHIN: u32 = 5;

/// Time after which a search without such a call is a miss.
const OPEN_FOR: Duration = Duration::from_secs(60 * 60);

/// Calls and open searches of all principals.
#[derive(Default)]
pub(crate) struct History(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    principals: HashMap<Owner, Past>,
}

#[derive(Default)]
struct Past {
    calls: VecDeque<PastCall>,
    searches: VecDeque<OpenSearch>,
    intents: VecDeque<Intent>,
}

/// Search in a model's own words, with what the routing plane knows its intent by. No words are kept.
struct Intent {
    at: Instant,
    tools: Vec<String>,
    handle: String,
    calls: u32,
}

struct PastCall {
    at: Instant,
    /// Name of the tool that the model sees.
    tool: String,
    is_success: bool,
}

/// Search of which no tool was called yet.
struct OpenSearch {
    at: Instant,
    tools: Vec<String>,
    calls: u32,
}

/// Searches that a call or a later search decides. One that may yet be a hit is in neither number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Searches of which a tool was called within the five calls behind them.
    pub(crate) hits: u64,
    /// Searches of which none was, that showed nothing, that six later searches followed, or that an hour passed over.
    pub(crate) misses: u64,
}

impl History {
    /// Notes a search that showed these tools.
    pub(crate) fn searched(&self, owner: &Owner, tools: Vec<String>) -> Decided {
        if tools.is_empty() {
            return Decided { hits: 0, misses: 1 };
        }
        let mut kept = self.0.lock();
        let past = kept.past(owner);
        let misses = past.searches.len().saturating_sub(HIT_WITHIN as usize);
        past.searches.truncate(HIT_WITHIN as usize);
        past.searches.push_front(OpenSearch { at: Instant::now(), tools, calls: 0 });
        Decided { hits: 0, misses: misses as u64 }
    }

    /// Notes a search in a model's own words that showed these tools, and the plane's handle of it.
    pub(crate) fn wanted(&self, owner: &Owner, tools: Vec<String>, handle: String) {
        if tools.is_empty() || handle.is_empty() {
            return;
        }
        let mut kept = self.0.lock();
        let intents = &mut kept.past(owner).intents;
        intents.push_front(Intent { at: Instant::now(), tools, handle, calls: 0 });
        intents.truncate(HIT_WITHIN as usize);
    }

    /// Returns the handle of the principal's last search that showed a tool, by the name that a model calls it by, within the calls
    /// and the time in which a search may be a hit; empty if there is none.
    pub(crate) fn intent_of(&self, owner: &Owner, called: &str) -> String {
        let kept = self.0.lock();
        let intents = kept.principals.get(owner).map(|past| &past.intents);
        let is_for = |intent: &&Intent| {
            intent.at.elapsed() < OPEN_FOR
                && intent.tools.iter().any(|tool| tool == called || shown_name(tool) == called)
        };
        let found = intents.and_then(|intents| intents.iter().find(is_for));
        found.map_or_else(String::new, |intent| intent.handle.clone())
    }

    /// Notes a call.
    pub(crate) fn called(&self, owner: &Owner, tool: &str, is_success: bool) -> Decided {
        let mut kept = self.0.lock();
        let past = kept.past(owner);
        past.calls.push_back(PastCall { at: Instant::now(), tool: tool.to_owned(), is_success });
        if past.calls.len() > CALLS_MAX {
            past.calls.pop_front();
        }
        past.intents.iter_mut().for_each(|intent| intent.calls += 1);
        past.intents.retain(|intent| intent.calls < HIT_WITHIN);
        let before = past.searches.len();
        past.searches.retain(|search| !search.tools.iter().any(|shown| shown == tool));
        let hits = before - past.searches.len();
        past.searches.iter_mut().for_each(|search| search.calls += 1);
        let open = past.searches.len();
        past.searches.retain(|search| search.calls < HIT_WITHIN);
        let misses = open - past.searches.len();
        Decided { hits: hits as u64, misses: misses as u64 }
    }

    /// Decides the searches that were open for too long. Returns the misses of each owner.
    pub(crate) fn expired(&self, now: Instant) -> Vec<(Owner, Decided)> {
        let mut kept = self.0.lock();
        let missed = kept.principals.iter_mut().filter_map(|(owner, past)| {
            let open = past.searches.len();
            past.searches.retain(|search| now.duration_since(search.at) < OPEN_FOR);
            let misses = (open - past.searches.len()) as u64;
            (misses > 0).then(|| (owner.clone(), Decided { hits: 0, misses }))
        });
        missed.collect()
    }

    /// Returns the principal's calls of the last hour, oldest first.
    pub(crate) fn calls(&self, owner: &Owner) -> Vec<v1::PriorCall> {
        let kept = self.0.lock();
        let Some(past) = kept.principals.get(owner) else { return Vec::new() };
        let recent = past.calls.iter().filter(|call| call.at.elapsed() < KEPT);
        let prior = |call: &PastCall| {
            let status =
                if call.is_success { v1::CallStatus::Succeeded } else { v1::CallStatus::Failed };
            v1::PriorCall { tool: call.tool.clone(), status: status as i32, turn: 0 }
        };
        recent.map(prior).collect()
    }
}

impl Kept {
    fn past(&mut self, owner: &Owner) -> &mut Past {
        if self.principals.len() >= PRINCIPALS_MAX && !self.principals.contains_key(owner) {
            let is_recent =
                |past: &Past| past.calls.back().is_some_and(|call| call.at.elapsed() < KEPT);
            self.principals.retain(|_, past| is_recent(past));
            if self.principals.len() >= PRINCIPALS_MAX {
                self.principals.clear();
            }
        }
        self.principals.entry(owner.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;

    fn owner(tenant: &str, principal: &str) -> Owner {
        Caller { tenant: tenant.into(), principal: principal.into(), ..Caller::default() }.owner()
    }

    #[test]
    fn a_search_is_a_hit_once_within_five_calls() {
        let history = History::default();
        let p = owner("t", "p");
        let q = owner("t", "q");
        history.searched(&p, vec!["a".into(), "b".into()]);
        assert_eq!(history.called(&p, "b", true).hits, 1);
        assert_eq!(history.called(&p, "b", true).hits, 0);
        history.searched(&p, vec!["c".into()]);
        for _ in 0..5 {
            assert_eq!(history.called(&p, "x", true).hits, 0);
        }
        assert_eq!(history.called(&p, "c", true).hits, 0);
        history.searched(&q, vec!["c".into()]);
        assert_eq!(history.called(&p, "c", true).hits, 0);
    }

    #[test]
    fn a_search_is_a_miss_once_five_calls_or_six_searches_passed_it_by() {
        let history = History::default();
        let p = owner("t", "p");
        history.searched(&p, vec!["a".into()]);
        for call in 0..4 {
            assert_eq!(history.called(&p, "x", true), Decided::default(), "{call}");
        }
        assert_eq!(history.called(&p, "x", true), Decided { hits: 0, misses: 1 });
        let missed: u64 = (0..8).map(|_| history.searched(&p, vec!["a".into()]).misses).sum();
        assert_eq!(missed, 2, "six are open");
        assert_eq!(history.called(&p, "a", true), Decided { hits: 6, misses: 0 });
    }

    #[test]
    fn what_shows_nothing_or_is_passed_by_for_an_hour_is_a_miss() {
        let history = History::default();
        let p = owner("t", "p");
        assert_eq!(history.searched(&p, Vec::new()), Decided { hits: 0, misses: 1 });
        history.searched(&p, vec!["a".into()]);
        let now = Instant::now();
        assert!(history.expired(now + OPEN_FOR / 2).is_empty());
        let expired = history.expired(now + OPEN_FOR);
        assert_eq!(expired, [(p.clone(), Decided { hits: 0, misses: 1 })]);
        assert_eq!(history.called(&p, "a", true), Decided::default());
    }

    #[test]
    fn a_call_is_for_the_last_search_that_showed_its_tool() {
        let history = History::default();
        let p = owner("t", "p");
        let tools = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        history.wanted(&p, tools(&["mcp__a__x", "mcp__a__y"]), "first".to_owned());
        history.wanted(&p, tools(&["mcp__a__x"]), "second".to_owned());
        history.wanted(&p, tools(&[]), "nothing was shown".to_owned());
        assert_eq!(history.intent_of(&p, "a__x"), "second");
        assert_eq!(history.intent_of(&p, "mcp__a__y"), "first");
        assert_eq!(history.intent_of(&p, "a__z"), "");
        for other in [owner("t", "q"), owner("u", "p")] {
            assert_eq!(history.intent_of(&other, "a__x"), "");
        }
        for _ in 0..4 {
            history.called(&p, "mcp__a__y", true);
            assert_eq!(history.intent_of(&p, "a__y"), "first", "another tool may be called too");
        }
        history.called(&p, "mcp__a__y", true);
        assert_eq!(history.intent_of(&p, "a__y"), "", "five calls are behind it");
    }

    #[test]
    fn searches_whose_intent_is_kept_are_bounded() {
        let history = History::default();
        let p = owner("t", "p");
        for place in 0..100 {
            history.wanted(&p, vec![format!("mcp__a__{place}")], "handle".to_owned());
        }
        assert_eq!(history.intent_of(&p, "a__99"), "handle");
        assert_eq!(history.intent_of(&p, "a__94"), "");
    }

    #[test]
    fn calls_are_of_their_principal_and_bounded() {
        let history = History::default();
        let p = owner("t", "p");
        for place in 0..1_000 {
            history.called(&p, &place.to_string(), place % 2 == 0);
        }
        let calls = history.calls(&p);
        assert_eq!(calls.len(), CALLS_MAX);
        assert_eq!(calls.last().map(|call| call.tool.as_str()), Some("999"));
        assert_eq!(calls.last().map(|call| call.status), Some(v1::CallStatus::Failed as i32));
        assert!(history.calls(&owner("t", "q")).is_empty());
        assert!(history.calls(&owner("u", "p")).is_empty(), "another tenant's principal");
    }

    #[test]
    fn principals_are_bounded() {
        let history = History::default();
        for principal in 0..PRINCIPALS_MAX + 10 {
            history.called(&owner("t", &principal.to_string()), "t", true);
        }
        assert!(history.0.lock().principals.len() <= PRINCIPALS_MAX);
    }
}
