//! Threads that embed give way to those that answer: a batch takes milliseconds, a refusal or a sign of life microseconds,
//! which must not wait for it where there are more threads than cores.

/// Such a thread counts for a third of another. Given way for good, calls that are refused in great number
/// would leave nothing for those that are served.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Has the calling thread give way to others.
pub fn give_way() {
    // Of one thread on Linux alone: elsewhere it would be of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "a thread that embeds does not give way");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn one_thread_gives_way_and_no_other() {
        let before = getpriority_process(None).expect("its own");
        let there = thread::spawn(|| {
            give_way();
            getpriority_process(None).expect("its own")
        });
        assert_eq!(there.join().expect("no panic"), (before + NICE).min(19));
        assert_eq!(getpriority_process(None).expect("its own"), before);
    }
}
