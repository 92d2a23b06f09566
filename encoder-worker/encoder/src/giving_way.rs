//! Lower priority for threads when there are more threads than cores. Threads that embed yield to those that answer,
//! since a batch takes milliseconds, but a refusal or a health check microseconds. Threads whose work no caller waits
//! for yield to both.

/// Threads that a thread yields to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// Threads that answer: the thread counts for a third of one. If it yielded completely, a flood of refused calls
    /// would leave nothing for calls that are served.
    Answers,
    /// Threads that embed as well: the thread counts for a ninth of one.
    Embedding,
}

impl Behind {
    /// Returns the niceness of such a thread, from which Linux derives a weight (sched(7)).
    #[cfg(target_os = "linux")]
    const fn niceness(self) -> i32 {
        match self {
            Self::Answers => 5,
            Self::Embedding => 15,
        }
    }
}

/// Lowers the priority of the calling thread.
pub fn give_way(behind: Behind) {
    // Only Linux sets the niceness of one thread; elsewhere it would apply to the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(behind.niceness()) {
        tracing::debug!(%error, ?behind, "a thread does not give way");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = behind;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn one_thread_gives_way_and_no_other() {
        let before = getpriority_process(None).expect("its own");
        for (behind, nice) in [(Behind::Answers, 5), (Behind::Embedding, 15)] {
            let there = thread::spawn(move || {
                give_way(behind);
                getpriority_process(None).expect("its own")
            });
            assert_eq!(there.join().expect("no panic"), (before + nice).min(19));
        }
        assert_eq!(getpriority_process(None).expect("its own"), before);
    }
}
