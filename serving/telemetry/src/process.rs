//! Metrics of this process that the kernel reports in /proc. They are absent where there is no /proc.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Indices of user and system ticks among the fields of /proc/self/stat, counted after the program's name, which may
/// contain anything.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;

/// Returns the start time of the process, in seconds since 1970. It is the current time, because this is called at the
/// start.
pub(super) fn started() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Snapshot of the process's resources.
pub(super) struct Reading {
    pub(super) resident_bytes: Option<u64>,
    pub(super) virtual_bytes: Option<u64>,
    pub(super) open_fds: Option<u64>,
    pub(super) max_fds: Option<u64>,
    pub(super) cpu_seconds: Option<f64>,
}

impl Reading {
    pub(super) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            resident_bytes: kib(&status, "VmRSS:"),
            virtual_bytes: kib(&status, "VmSize:"),
            // The directory handle in use is one of them.
            open_fds: fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as u64 - 1),
            max_fds: max_fds(),
            cpu_seconds: fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu(&stat)),
        }
    }
}

/// Returns the value of a line such as `VmRSS:      5308 kB`, in bytes.
fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number << 10)
}

fn cpu(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    #[expect(clippy::cast_precision_loss, reason = "a process lives for far less than 2^52 ticks")]
    let ticks = (ticks(USER_TICKS)? + ticks(SYSTEM_TICKS)?) as f64;
    Some(ticks / ticks_per_second()?)
}

#[cfg(target_os = "linux")]
fn ticks_per_second() -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "it is 100")]
    Some(rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(not(target_os = "linux"))]
fn ticks_per_second() -> Option<f64> {
    None
}

#[cfg(unix)]
fn max_fds() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn max_fds() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let status = "Name:\tx\nVmSize:\t   20 kB\nVmRSS:\t   10 kB\n";
        assert_eq!((kib(status, "VmRSS:"), kib(status, "VmSize:")), (Some(10_240), Some(20_480)));
        assert_eq!(kib(status, "VmSwap:"), None);
        assert_eq!(cpu("1 (a) b) S 1 2"), None);
        if cfg!(target_os = "linux") {
            let fields = "S 1 1 1 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 1 0";
            assert_eq!(cpu(&format!("1 (a) b) {fields}")), Some(2.0));
        }
    }
}
