//! Numbers of calls of each tool, kept from start to start. By them a gateway chooses its always-on set, at its start alone: a list
//! of tools is not to change with calls, and hosts keep what they read of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use toolgate_upstream::replace_private;

/// Fewest calls of a tool that is chosen: one that was called once may never be again.
const CALLS_MIN: u64 = 2;

/// Most tools that are chosen of a tenant. Those that do not fit into what a host starts with are left out of them.
const CHOSEN_MAX: usize = 32;

/// Most tools whose calls are counted. Names that a server does not list may come too.
const TOOLS_MAX: usize = 4_096;

/// Seconds after which earlier calls count for half as much.
const HALF_LIFE: u64 = 30 * 24 * 60 * 60;

/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(10);

/// Calls of tools by tenant and name, which is `server__tool`.
type Calls = BTreeMap<String, BTreeMap<String, u64>>;

/// Tools that were called, and those that were chosen of them.
#[derive(Debug)]
pub(crate) struct CalledTools {
    path: PathBuf,
    chosen: BTreeMap<String, Vec<String>>,
    new: Mutex<New>,
}

/// Calls since the last write.
#[derive(Debug)]
struct New {
    calls: Calls,
    written: Instant,
}

/// Content of the file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// Seconds since 1970 at which numbers were halved last.
    halved: u64,
    calls: Calls,
}

impl CalledTools {
    /// Reads what is kept in a file, and chooses by it. One that can't be read is as if it were not there.
    pub(crate) fn at(path: &Path) -> Self {
        let chosen = Kept::read(path, now()).chosen();
        let new = Mutex::new(New { calls: Calls::new(), written: Instant::now() });
        Self { path: path.to_owned(), chosen, new }
    }

    /// Returns the tools that a tenant called most before the start, the first first.
    pub(crate) fn chosen(&self, tenant: &str) -> &[String] {
        self.chosen.get(tenant).map_or(&[], Vec::as_slice)
    }

    /// Notes a call.
    pub(crate) fn note(&self, tenant: &str, tool: &str) {
        let mut new = self.new.lock();
        add(&mut new.calls, tenant, tool, 1);
        if new.written.elapsed() >= PAUSE {
            self.write(&mut new);
        }
    }

    /// Writes down what was noted.
    pub(crate) fn keep(&self) {
        self.write(&mut self.new.lock());
    }

    /// Adds the new calls to the file, to which other gateways with the same folder may have added theirs.
    fn write(&self, new: &mut New) {
        if new.calls.is_empty() {
            return;
        }
        new.written = Instant::now();
        let mut kept = Kept::read(&self.path, now());
        for (tenant, tools) in &new.calls {
            for (tool, calls) in tools {
                add(&mut kept.calls, tenant, tool, *calls);
            }
        }
        match replace_private(&self.path, &kept) {
            Ok(()) => new.calls.clear(),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "which tools are called can't be written down");
            }
        }
    }
}

impl Kept {
    fn read(path: &Path, now: u64) -> Self {
        let text = fs::read(path).ok();
        let kept = text.and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        let mut kept = kept.unwrap_or_else(|| Self { halved: now, calls: Calls::new() });
        kept.halve(now);
        kept
    }

    fn halve(&mut self, now: u64) {
        let times = now.saturating_sub(self.halved) / HALF_LIFE;
        if times == 0 {
            return;
        }
        self.halved += times * HALF_LIFE;
        let by = u32::try_from(times).unwrap_or(u32::MAX);
        for tools in self.calls.values_mut() {
            tools.retain(|_, calls| {
                *calls = calls.checked_shr(by).unwrap_or(0);
                *calls > 0
            });
        }
        self.calls.retain(|_, tools| !tools.is_empty());
    }

    fn chosen(&self) -> BTreeMap<String, Vec<String>> {
        let chosen = self.calls.iter().map(|(tenant, tools)| {
            let often = tools.iter().filter(|(_, calls)| **calls >= CALLS_MIN);
            let mut often: Vec<(&String, &u64)> = often.collect();
            often.sort_by_key(|(tool, calls)| (Reverse(**calls), *tool));
            let names = often.into_iter().take(CHOSEN_MAX).map(|(tool, _)| tool.clone());
            (tenant.clone(), names.collect())
        });
        chosen.collect()
    }
}

/// Adds calls of a tool, if it is counted or there is room for one more.
fn add(calls: &mut Calls, tenant: &str, tool: &str, more: u64) {
    let known = calls.get_mut(tenant).and_then(|tools| tools.get_mut(tool));
    if let Some(known) = known {
        *known = known.saturating_add(more);
    } else if calls.values().map(BTreeMap::len).sum::<usize>() < TOOLS_MAX {
        calls.entry(tenant.to_owned()).or_default().insert(tool.to_owned(), more);
    }
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(called: &CalledTools, tenant: &str, tool: &str, times: usize) {
        for _ in 0..times {
            called.note(tenant, tool);
        }
    }

    #[test]
    fn what_was_called_most_before_the_start_is_chosen_until_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("calls.json");
        let first = CalledTools::at(&path);
        let second = CalledTools::at(&path);
        call(&first, "acme", "git__log", 2);
        call(&first, "acme", "git__diff", 3);
        call(&first, "acme", "git__once", 1);
        call(&first, "other", "sea__tides", 9);
        call(&second, "acme", "git__add", 2);
        call(&second, "acme", "git__log", 2);
        first.keep();
        second.keep();
        first.keep();
        assert!(first.chosen("acme").is_empty(), "it is chosen at the start alone");
        let next = CalledTools::at(&path);
        assert_eq!(next.chosen("acme"), ["git__log", "git__diff", "git__add"]);
        assert_eq!(next.chosen("other"), ["sea__tides"]);
        assert!(next.chosen("nobody").is_empty());
        call(&next, "acme", "git__once", 100);
        next.keep();
        assert_eq!(next.chosen("acme"), ["git__log", "git__diff", "git__add"]);
        fs::write(&path, "no JSON").expect("a file");
        assert!(CalledTools::at(&path).chosen("acme").is_empty());
    }

    #[test]
    fn what_was_called_long_ago_counts_for_less_and_in_the_end_for_nothing() {
        let of = |often: u64, seldom: u64| {
            let tools = [("git__log", often), ("git__diff", seldom)].into_iter();
            let tools = tools.filter(|(_, calls)| *calls > 0);
            let tools: BTreeMap<_, _> =
                tools.map(|(tool, calls)| (tool.to_owned(), calls)).collect();
            Calls::from_iter([("acme".to_owned(), tools)])
        };
        let mut kept = Kept { halved: 1_000, calls: of(9, 1) };
        kept.halve(1_000 + HALF_LIFE - 1);
        assert_eq!(kept, Kept { halved: 1_000, calls: of(9, 1) });
        kept.halve(1_000 + HALF_LIFE);
        assert_eq!(kept, Kept { halved: 1_000 + HALF_LIFE, calls: of(4, 0) });
        kept.halve(1_000 + 90 * HALF_LIFE);
        assert!(kept.calls.is_empty());
    }

    #[test]
    fn tools_and_the_chosen_are_bounded() {
        let mut calls = Calls::new();
        for number in 0..2 * TOOLS_MAX {
            add(&mut calls, "acme", &format!("a__{number:05}"), CALLS_MIN);
        }
        assert_eq!(calls["acme"].len(), TOOLS_MAX);
        let chosen = Kept { halved: 0, calls }.chosen();
        assert_eq!(chosen["acme"].len(), CHOSEN_MAX);
        assert_eq!(chosen["acme"][0], "a__00000");
    }
}
