//! Whether memory is short: what the process holds, looked at now and then, against what it may hold.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing::{info, warn};

/// How often it is looked at. An answer of the largest kind takes longer to make.
const EVERY: Duration = Duration::from_millis(100);

/// Short from here on, of what may be held; and no longer short below that.
const SHORT_FROM: f64 = 0.9;
const ENOUGH_BELOW: f64 = 0.85;

/// Set while memory is short.
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

/// Keeps `flag` for ever, by what `configured` bytes allow: 0 for what the machine allows this process (its cgroup),
/// if it allows less than all. Returns at once where that can't be known.
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

/// Bytes that the process holds.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Bytes that the process's cgroup may hold, of version 2 or 1.
fn allowed() -> Option<u64> {
    const FILES: [&str; 2] =
        ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let read = |file: &&str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    // Version 1 says "no limit" with a number beyond any machine's.
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
