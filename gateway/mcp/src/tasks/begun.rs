//! Tasks that principals began. By them each lists its own, since servers list everybody's, and their ends count once, as those of
//! the calls that began them.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::caller::Owner;

/// Most tasks of a principal that are kept. Of more, the oldest leave: of those that have ended, if any has.
const TASKS_MAX: usize = 64;

/// Most bytes of all tasks. The oldest leave of the principal that holds most, in the tenant that holds most.
const BYTES_MAX: usize = 16 << 20;

/// Bytes that a task counts besides its texts: its own place, and its principal's.
const OVERHEAD: usize = 512;

/// Longest ID of a server's that is kept, in bytes.
const ID_MAX: usize = 1 << 10;

/// Tasks that were begun.
#[derive(Default)]
pub(crate) struct BegunTasks(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    shares: HashMap<Owner, Share>,
    bytes: usize,
    /// Number of the next task.
    next: u64,
}

/// Tasks of a principal, oldest first.
#[derive(Default)]
struct Share {
    tasks: VecDeque<KeptTask>,
    bytes: usize,
}

struct KeptTask {
    task: BegunTask,
    /// Grows with each task of all principals.
    number: u64,
    has_ended: bool,
}

/// Task, as its server and the gateway know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskId {
    /// ID that the server gave it.
    pub(crate) id: String,
    /// Process that runs it: another of the server may have given the same ID. `None` behind a URL.
    pub(crate) process: Option<u64>,
}

/// Task that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BegunTask {
    pub(crate) server: String,
    pub(crate) id: TaskId,
    /// ID by which hosts of 2025-11-25 list it; empty for a task of another revision.
    pub(crate) shown: String,
    /// Tool whose call began it, as its server names it.
    pub(crate) tool: String,
    /// SHA-256 of the tool's definition by then, in hexadecimal; empty if it was not known.
    pub(crate) definition: Arc<str>,
    pub(crate) since: Instant,
}

impl BegunTasks {
    /// Notes a task.
    pub(crate) fn note(&self, owner: &Owner, task: BegunTask) {
        if task.id.id.len() <= ID_MAX {
            let mut kept = self.0.lock();
            kept.note(owner, task);
            kept.shrink(BYTES_MAX);
        }
    }

    /// Returns the tasks that a principal lists, oldest first.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<BegunTask> {
        let kept = self.0.lock();
        let tasks = kept.shares.get(owner).into_iter().flat_map(|share| &share.tasks);
        let listed = tasks.map(|kept| &kept.task).filter(|task| !task.shown.is_empty());
        listed.cloned().collect()
    }

    /// Returns a task whose end is seen for the first time.
    pub(crate) fn end(&self, owner: &Owner, server: &str, id: &TaskId) -> Option<BegunTask> {
        let mut kept = self.0.lock();
        let share = kept.shares.get_mut(owner)?;
        let is_it = |kept: &&mut KeptTask| kept.task.server == server && kept.task.id == *id;
        let ended = share.tasks.iter_mut().find(is_it).filter(|kept| !kept.has_ended)?;
        ended.has_ended = true;
        let task = ended.task.clone();
        if task.shown.is_empty() {
            // Nobody lists it.
            kept.remove(owner, |kept| *kept == task);
        }
        Some(task)
    }

    /// Forgets a task that its server does not know any more.
    pub(crate) fn forget(&self, owner: &Owner, task: &BegunTask) {
        self.0.lock().remove(owner, |kept| kept == task);
    }
}

impl BegunTask {
    fn bytes(&self) -> usize {
        let texts = [&*self.server, &*self.id.id, &*self.shown, &*self.tool, &*self.definition];
        OVERHEAD + texts.iter().map(|text| text.len()).sum::<usize>()
    }
}

impl Share {
    /// Returns a measure by which a share gives way before another: of two that hold as much, the one with the older task.
    fn weight(&self) -> (usize, Reverse<Option<u64>>) {
        (self.bytes, Reverse(self.tasks.front().map(|kept| kept.number)))
    }
}

impl Kept {
    fn note(&mut self, owner: &Owner, task: BegunTask) {
        // A server behind a URL that was started again may count its tasks from the first on.
        self.remove(owner, |kept| kept.server == task.server && kept.id == task.id);
        let number = self.next;
        self.next += 1;
        self.bytes += task.bytes();
        let share = self.shares.entry(owner.clone()).or_default();
        share.bytes += task.bytes();
        share.tasks.push_back(KeptTask { task, number, has_ended: false });
        if share.tasks.len() > TASKS_MAX {
            self.make_place(owner);
        }
    }

    /// Forgets tasks until they have so many bytes at most.
    fn shrink(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            let Some(owner) = self.largest() else { return };
            self.make_place(&owner);
        }
    }

    /// Returns the principal that holds most, of the tenant that holds most.
    fn largest(&self) -> Option<Owner> {
        let mut tenants: HashMap<&str, usize> = HashMap::new();
        for (owner, share) in &self.shares {
            *tenants.entry(owner.tenant()).or_default() += share.bytes;
        }
        let tenant = tenants.into_iter().max_by_key(|(_, bytes)| *bytes)?.0;
        let shares = self.shares.iter().filter(|(owner, _)| owner.tenant() == tenant);
        shares.max_by_key(|(_, share)| share.weight()).map(|(owner, _)| owner.clone())
    }

    /// Forgets the oldest task of a principal that has ended, or the oldest if all run.
    fn make_place(&mut self, owner: &Owner) {
        let Some(share) = self.shares.get(owner) else { return };
        let ended = share.tasks.iter().find(|kept| kept.has_ended);
        let Some(leaving) = ended.or_else(|| share.tasks.front()) else { return };
        if !leaving.has_ended {
            let BegunTask { server, tool, .. } = &leaving.task;
            tracing::warn!(
                server,
                tool,
                "too many tasks run: one is forgotten, and its end will neither be audited nor open a precondition"
            );
        }
        let number = leaving.number;
        self.remove_where(owner, |kept| kept.number == number);
    }

    fn remove(&mut self, owner: &Owner, is_it: impl Fn(&BegunTask) -> bool) {
        self.remove_where(owner, |kept| is_it(&kept.task));
    }

    fn remove_where(&mut self, owner: &Owner, is_it: impl Fn(&KeptTask) -> bool) {
        let Some(share) = self.shares.get_mut(owner) else { return };
        share.tasks.retain(|kept| !is_it(kept));
        let left = share.tasks.iter().map(|kept| kept.task.bytes()).sum();
        self.bytes -= share.bytes - left;
        share.bytes = left;
        if share.tasks.is_empty() {
            self.shares.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;

    fn owner(principal: &str) -> Owner {
        owner_of("t", principal)
    }

    fn owner_of(tenant: &str, principal: &str) -> Owner {
        Caller { tenant: tenant.into(), principal: principal.into(), ..Caller::default() }.owner()
    }

    fn task(id: &str) -> BegunTask {
        BegunTask {
            server: "s".to_owned(),
            id: task_id(id),
            shown: format!("sealed {id}"),
            tool: "dig".to_owned(),
            definition: "00ff".into(),
            since: Instant::now(),
        }
    }

    fn task_id(id: &str) -> TaskId {
        TaskId { id: id.to_owned(), process: None }
    }

    fn ids(begun: &BegunTasks, owner: &Owner) -> Vec<String> {
        begun.of(owner).into_iter().map(|task| task.id.id).collect()
    }

    #[test]
    fn tasks_of_one_id_in_two_processes_are_two() {
        let begun = BegunTasks::default();
        let of = |process| TaskId { process: Some(process), ..task_id("1") };
        begun.note(&owner("p"), BegunTask { id: of(7), ..task("1") });
        begun.note(&owner("p"), BegunTask { id: of(8), tool: "drill".to_owned(), ..task("1") });
        let tools = [7, 8].map(|process| begun.end(&owner("p"), "s", &of(process)));
        let tools = tools.map(|task| task.expect("a task").tool);
        assert_eq!(tools, ["dig", "drill"]);
    }

    #[test]
    fn tasks_are_of_their_principal() {
        let begun = BegunTasks::default();
        let first = task("1");
        begun.note(&owner("p"), first.clone());
        begun.note(&owner("p"), task("2"));
        let other = task("1");
        begun.note(&owner("q"), other.clone());
        begun.forget(&owner("p"), &first);
        assert_eq!(ids(&begun, &owner("p")), ["2"]);
        assert_eq!(ids(&begun, &owner("q")), ["1"]);
        begun.forget(&owner("q"), &other);
        assert!(begun.of(&owner("q")).is_empty());
        assert_eq!(begun.0.lock().shares.len(), 1);
    }

    #[test]
    fn an_end_counts_once() {
        let begun = BegunTasks::default();
        begun.note(&owner("p"), task("1"));
        begun.note(&owner("p"), BegunTask { shown: String::new(), ..task("2") });
        assert_eq!(ids(&begun, &owner("p")), ["1"], "the other one is not listed");
        assert!(begun.end(&owner("q"), "s", &task_id("1")).is_none());
        assert!(begun.end(&owner("p"), "other", &task_id("1")).is_none());
        for id in ["1", "2"] {
            let ended = begun.end(&owner("p"), "s", &task_id(id)).expect("a task");
            assert_eq!(ended.tool, "dig");
            assert!(begun.end(&owner("p"), "s", &task_id(id)).is_none());
        }
        assert_eq!(ids(&begun, &owner("p")), ["1"], "it is listed as long as its server knows it");
        begun.forget(&owner("p"), &begun.of(&owner("p"))[0]);
        assert_eq!(begun.0.lock().bytes, 0);
    }

    #[test]
    fn an_id_that_comes_again_is_the_latest_tasks() {
        let begun = BegunTasks::default();
        begun.note(&owner("p"), task("1"));
        begun.note(&owner("p"), BegunTask { server: "other".to_owned(), ..task("1") });
        assert!(begun.end(&owner("p"), "s", &task_id("1")).is_some());
        begun.note(&owner("p"), BegunTask { tool: "drill".to_owned(), ..task("1") });
        let ended = begun.end(&owner("p"), "s", &task_id("1")).expect("the second one");
        assert_eq!(ended.tool, "drill");
        let servers: Vec<String> =
            begun.of(&owner("p")).into_iter().map(|task| task.server).collect();
        assert_eq!(servers, ["other", "s"]);
        begun.0.lock().shrink(0);
        assert_eq!(begun.0.lock().bytes, 0);
    }

    #[test]
    fn tasks_of_a_principal_are_bounded() {
        let begun = BegunTasks::default();
        begun.note(&owner("p"), task(&"x".repeat(ID_MAX + 1)));
        assert!(begun.of(&owner("p")).is_empty());
        for number in 0..=TASKS_MAX {
            begun.note(&owner("p"), task(&number.to_string()));
        }
        assert_eq!(begun.of(&owner("p")).len(), TASKS_MAX);
        assert_eq!(begun.of(&owner("p"))[0].id.id, "1");
        assert!(begun.end(&owner("p"), "s", &task_id("5")).is_some());
        begun.note(&owner("p"), task("next"));
        let left = ids(&begun, &owner("p"));
        assert_eq!(left.len(), TASKS_MAX);
        assert_eq!(left[0], "1", "it runs");
        assert!(!left.contains(&"5".to_owned()));
    }

    #[test]
    fn tasks_are_bounded_by_bytes_and_who_holds_most_gives_way() {
        let begun = BegunTasks::default();
        begun.note(&owner_of("small", "one"), task("1"));
        for principal in 0..400 {
            for number in 0..20 {
                let id = format!("{number:0ID_MAX$}");
                begun.note(&owner_of("large", &principal.to_string()), task(&id));
            }
            assert!(begun.0.lock().bytes <= BYTES_MAX);
        }
        assert_eq!(ids(&begun, &owner_of("small", "one")), ["1"]);
        assert!(!begun.of(&owner_of("large", "399")).is_empty(), "the newest is there");
        let kept = begun.0.lock();
        assert!(kept.bytes > BYTES_MAX / 2);
        assert_eq!(kept.bytes, kept.shares.values().map(|share| share.bytes).sum::<usize>());
    }

    #[test]
    fn of_principals_with_as_much_the_one_with_the_oldest_task_gives_way() {
        let mut kept = Kept::default();
        for principal in ["a", "b", "c"] {
            kept.note(&owner(principal), task("1"));
        }
        kept.note(&owner("b"), task("2"));
        let most = |kept: &Kept| kept.largest().expect("a principal");
        assert_eq!(most(&kept), owner("b"));
        kept.shrink(3 * task("1").bytes());
        assert_eq!(most(&kept), owner("a"));
        kept.shrink(0);
        assert!(kept.shares.is_empty());
        assert_eq!(kept.bytes, 0);
    }
}
