//! Endless tasks: the checks of each worker, and the lookups of names whose addresses change.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::Notify;
use tracing::warn;

use super::attempt::usual_time;
use super::member::Member;
use super::reference::Reference;
use super::roster::Roster;

/// Interval between two lookups of a name.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum time of a lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// Minimum and maximum time for a check of one text.
const CANARY_MIN: Duration = Duration::from_millis(500);
const CANARY_MAX: Duration = Duration::from_secs(1);

/// Maximum interval of the checks of a worker that servers share. A worker counts a server for three times as long.
const SHARED_MAX: Duration = Duration::from_secs(10);

/// Time until a worker's next check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    /// Time for which no check is sent.
    pub(super) min: Duration,
    /// Time after which the check is sent, even if nothing speaks against the worker.
    pub(super) max: Duration,
}

impl Pause {
    /// Waits until the check is due. A `doubt` makes it due after [`Self::min`].
    async fn wait(self, doubt: &Notify) {
        tokio::time::sleep(self.min).await;
        let rest = self.max.saturating_sub(self.min);
        // Either way the check is due.
        let _doubted = tokio::time::timeout(rest, doubt.notified()).await;
    }
}

/// Returns the interval of the checks of a worker that `servers` servers share. Together they check it as often as one
/// would alone, and each at least every ten seconds.
pub(super) fn shared(interval: Duration, servers: u32) -> Duration {
    interval.saturating_mul(servers).min(SHARED_MAX).max(interval)
}

/// Interval and time limits of the checks of workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    interval: Duration,
    timeout: Duration,
    /// Time that a worker has for a request of traffic.
    attempt_timeout: Duration,
}

impl Rounds {
    pub(super) fn every(interval: Duration, attempt_timeout: Duration) -> Self {
        Self { interval, timeout: interval.clamp(CANARY_MIN, CANARY_MAX), attempt_timeout }
    }

    /// Returns the time that the pool waits for a check of `texts` texts: the time for one text, and as much again for
    /// every eight. That is enough for a slow worker. A worker that hangs is found by small checks, which are the most
    /// frequent.
    pub(super) fn timeout_for(&self, texts: usize) -> Duration {
        self.timeout.mul_f64(1.0 + texts as f64 / 8.0)
    }

    /// Returns the time limit that the worker is told for `texts` texts. It is that of traffic, so that the worker
    /// can't tell a check from traffic.
    pub(super) fn deadline_for(&self, texts: usize) -> Duration {
        usual_time(self.attempt_timeout, texts).max(self.timeout_for(texts))
    }
}

/// Checks a worker again and again, without end.
pub(super) async fn check_again_and_again(
    member: Arc<Member>,
    reference: Arc<Reference>,
    rounds: Rounds,
) {
    loop {
        member.check(&reference, &rounds).await;
        member.next_check(rounds.interval).wait(&member.doubt).await;
    }
}

/// Updates `roster` with the addresses of a name, without end. While lookups fail, the known addresses stay.
pub(super) async fn follow_name(roster: Arc<Roster>, source: usize, name: String, port: u16) {
    let mut known = true;
    loop {
        match addresses(&name, port).await {
            Ok(addresses) => {
                roster.replace(source, &addresses);
                known = true;
            }
            Err(error) => {
                // Logged once, not every five seconds.
                if std::mem::take(&mut known) {
                    warn!(name, error, "the name of the encoder workers can't be looked up");
                }
            }
        }
        tokio::time::sleep(LOOKUP_INTERVAL).await;
    }
}

async fn addresses(name: &str, port: u16) -> Result<Vec<String>, String> {
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, lookup_host((name, port))).await;
    let found = found.map_err(|_| "no answer in time".to_owned())?;
    let found = found.map_err(|error| error.to_string())?;
    let mut addresses: Vec<_> = found.map(|address| address.to_string()).collect();
    addresses.sort();
    addresses.dedup();
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_takes_half_a_second_to_a_second() {
        for (interval, want) in [(50, 500), (800, 800), (60_000, 1_000)] {
            let rounds = Rounds::every(Duration::from_millis(interval), Duration::ZERO);
            assert_eq!(rounds.timeout, Duration::from_millis(want));
        }
    }

    #[test]
    fn a_worker_is_told_the_time_of_traffic_and_waited_for_less() {
        let millis = Duration::from_millis;
        let rounds = Rounds::every(millis(400), millis(1_000));
        for (texts, told, timeout) in [
            (1, 1_000, 562),
            (4, 1_000, 750),
            (8, 1_000, 1_000),
            (32, 4_000, 2_500),
            (64, 8_000, 4_500),
        ] {
            assert_eq!(rounds.deadline_for(texts), millis(told));
            assert_eq!(rounds.timeout_for(texts).as_millis(), timeout, "{texts} texts");
        }
        let hasty = Rounds::every(millis(400), millis(10));
        assert_eq!(hasty.deadline_for(64), millis(4_500), "no check ends before it is waited for");
    }

    #[test]
    fn servers_share_checks_up_to_ten_seconds() {
        let millis = Duration::from_millis;
        for (interval, servers, each) in [
            (400, 0, 400),
            (400, 1, 400),
            (400, 20, 8_000),
            (400, 1_000, 10_000),
            (60_000, 1, 60_000),
            (60_000, 20, 60_000),
        ] {
            let found = shared(millis(interval), servers);
            assert_eq!(found, millis(each), "{interval} ms, {servers} servers");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_doubt_makes_the_next_check_due_once_the_shortest_pause_is_over() {
        let second = Duration::from_secs(1);
        let pause = Pause { min: second, max: 8 * second };
        let doubt = Notify::new();
        let waited = async |pause: Pause| {
            let began = tokio::time::Instant::now();
            pause.wait(&doubt).await;
            began.elapsed().as_secs()
        };
        assert_eq!(waited(pause).await, 8);
        doubt.notify_one();
        assert_eq!(waited(pause).await, 1);
        let in_three = async {
            tokio::time::sleep(3 * second).await;
            doubt.notify_one();
        };
        assert_eq!(tokio::join!(waited(pause), in_three).0, 3);
        doubt.notify_one();
        assert_eq!(waited(Pause { min: second, max: second }).await, 1, "as one server would");
    }

    #[tokio::test]
    async fn a_name_has_addresses_once_each() {
        let found = addresses("127.0.0.1", 7).await.expect("no lookup needed");
        assert_eq!(found, ["127.0.0.1:7"]);
    }
}
