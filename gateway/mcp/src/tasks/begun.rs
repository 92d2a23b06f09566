//! Tasks of 2025-11-25 that each principal began, by which it lists its own: servers list everybody's.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use crate::caller::Owner;

/// Most tasks of a principal that are listed. Of more, the oldest are left out.
const TASKS_MAX: usize = 64;

/// Most principals. With one more, all are forgotten.
const PRINCIPALS_MAX: usize = 4_096;

/// Longest ID of a server's that is listed, in bytes.
const ID_MAX: usize = 1 << 10;

/// Tasks that were begun, by principal.
#[derive(Default)]
pub(crate) struct BegunTasks(Mutex<HashMap<Owner, VecDeque<BegunTask>>>);

/// Task that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BegunTask {
    pub(crate) server: String,
    /// ID that the server gave it.
    pub(crate) id: String,
    /// ID that hosts have for it.
    pub(crate) shown: String,
}

impl BegunTasks {
    /// Notes a task.
    pub(crate) fn note(&self, owner: &Owner, task: BegunTask) {
        if task.id.len() > ID_MAX {
            return;
        }
        let mut all = self.0.lock();
        if all.len() >= PRINCIPALS_MAX && !all.contains_key(owner) {
            all.clear();
        }
        let tasks = all.entry(owner.clone()).or_default();
        tasks.push_back(task);
        if tasks.len() > TASKS_MAX {
            tasks.pop_front();
        }
    }

    /// Returns the tasks of a principal, oldest first.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<BegunTask> {
        self.0.lock().get(owner).into_iter().flatten().cloned().collect()
    }

    /// Forgets a task that its server does not know any more.
    pub(crate) fn forget(&self, owner: &Owner, task: &BegunTask) {
        let mut all = self.0.lock();
        if let Some(tasks) = all.get_mut(owner) {
            tasks.retain(|kept| kept != task);
            if tasks.is_empty() {
                all.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;

    fn owner(principal: &str) -> Owner {
        Caller { tenant: "t".into(), principal: principal.into(), ..Caller::default() }.owner()
    }

    fn task(id: &str) -> BegunTask {
        BegunTask { server: "s".to_owned(), id: id.to_owned(), shown: format!("sealed {id}") }
    }

    #[test]
    fn tasks_are_of_their_principal() {
        let begun = BegunTasks::default();
        begun.note(&owner("p"), task("1"));
        begun.note(&owner("p"), task("2"));
        begun.note(&owner("q"), task("1"));
        begun.forget(&owner("p"), &task("1"));
        assert_eq!(begun.of(&owner("p")), [task("2")]);
        assert_eq!(begun.of(&owner("q")), [task("1")]);
        begun.forget(&owner("q"), &task("1"));
        assert!(begun.of(&owner("q")).is_empty());
        assert_eq!(begun.0.lock().len(), 1);
    }

    #[test]
    fn tasks_and_principals_are_bounded() {
        let begun = BegunTasks::default();
        begun.note(&owner("p"), task(&"x".repeat(ID_MAX + 1)));
        assert!(begun.of(&owner("p")).is_empty());
        for number in 0..=TASKS_MAX {
            begun.note(&owner("p"), task(&number.to_string()));
        }
        assert_eq!(begun.of(&owner("p")).len(), TASKS_MAX);
        assert_eq!(begun.of(&owner("p"))[0], task("1"));
        for number in 0..PRINCIPALS_MAX + 10 {
            begun.note(&owner(&number.to_string()), task("1"));
        }
        assert!(begun.0.lock().len() <= PRINCIPALS_MAX);
    }
}
