//! Threads that give way to others where there are more threads than cores: those that embed to those that answer, since
//! a batch takes milliseconds, and a refusal or a sign of life microseconds; and those whose work nobody waits for to both.

/// The threads that a thread gives way to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// Threads that answer: it counts for a third of one. Given way for good, calls that are refused in great number
    /// would leave nothing for those that are served.
    Answers,
    /// Threads that embed as well: it counts for a ninth of one.
    Embedding,
}

impl Behind {
    /// The niceness of such a thread, which Linux takes for a weight (sched(7)).
    #[cfg(target_os = "linux")]
    const fn niceness(self) -> i32 {
        match self {
            Self::Answers => 5,
            Self::Embedding => 15,
        }
    }
}

/// Has the calling thread give way.
pub fn give_way(behind: Behind) {
    // Of one thread on Linux alone: elsewhere it would be of the whole process.
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
