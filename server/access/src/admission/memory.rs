//! Watch on memory: periodically compares the memory that the process holds with the memory that it may hold.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing::{info, warn};

/// Interval between checks. An answer of the largest kind takes longer to build.
const EVERY: Duration = Duration::from_millis(100);

/// Share of the allowed memory from which memory is short, and share below which it no longer is.
const SHORT_FROM: f64 = 0.9;
const ENOUGH_BELOW: f64 = 0.85;

/// Flag that is set while memory is short.
#[derive(Debug, Clone, Default)]
pub struct Flag(Arc<AtomicBool>);

impl Flag {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, short: bool) {
        self.0.store(short, Ordering::Relaxed);
    }
}

/// Updates `flag` forever. The limit is `configured` bytes, or for 0 the limit of the process's cgroup, if there is
/// one. Returns at once if the limit or the memory in use can't be determined.
pub async fn watch_memory(flag: Flag, configured: u64) {
    let most = if configured > 0 { Some(configured) } else { allowed() };
    let (Some(most), Some(_)) = (most, resident()) else { return };
    info!(bytes = most, "memory is watched: calls are shed before it is used up");
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        let Some(resident) = resident() else { continue };
        let short = judge(flag.is_set(), resident, most);
        if short != flag.is_set() {
            flag.set(short);
            match short {
                true => warn!(resident, most, "memory is short: calls are shed"),
                false => info!(resident, most, "memory is no longer short"),
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
fn judge(is_short: bool, resident: u64, most: u64) -> bool {
    let share = resident as f64 / most as f64;
    if is_short { share >= ENOUGH_BELOW } else { share >= SHORT_FROM }
}

/// Returns the number of bytes that the process holds in memory.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Returns the memory limit of the process's cgroup (version 2 or 1) in bytes; `None` if there is none.
fn allowed() -> Option<u64> {
    const FILES: [&str; 2] =
        ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let read = |file: &&str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    // Version 1 expresses "no limit" as a number larger than any machine's memory.
    FILES.iter().find_map(read).filter(|bytes| *bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_short_near_the_end_and_until_well_below() {
        assert!(!judge(false, 89, 100));
        assert!(judge(false, 90, 100));
        assert!(judge(true, 86, 100));
        assert!(!judge(true, 84, 100));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_holds_something() {
        assert!(resident().is_some_and(|bytes| bytes > 1 << 20));
    }
}
