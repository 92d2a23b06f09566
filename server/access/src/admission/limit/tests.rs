//! Tests of the limit in front of a simulated server with a clock of its own.

use std::collections::VecDeque;

use super::*;

const MILLI: Duration = Duration::from_millis(1);

const BOUNDS: Bounds = Bounds { least: 8, calm: 2, most: 256, wait: Duration::from_millis(20) };

/// Server that works on `cores` calls at a time in arrival order. Each call takes `service`.
struct Server {
    limit: Limit,
    cores: usize,
    service: Duration,
    now: Instant,
    /// Times at which each core is free again.
    free: Vec<Instant>,
    /// Calls in progress: start time, true if few others were in progress then, and end time.
    calls: VecDeque<(Instant, bool, Instant)>,
    answered: u32,
    refused: u32,
    slowest: Duration,
}

impl Server {
    fn new(cores: usize, service: Duration) -> Self {
        let now = Instant::now();
        Self {
            limit: Limit::new(BOUNDS, now),
            cores,
            service,
            now,
            free: vec![now; cores],
            calls: VecDeque::new(),
            answered: 0,
            refused: 0,
            slowest: Duration::ZERO,
        }
    }

    /// Returns the number of calls that the server can answer per second.
    fn ceiling(&self) -> f64 {
        self.cores as f64 / self.service.as_secs_f64()
    }

    /// Offers `rate` calls per second, evenly, for `time`. Resets the counts first.
    fn offer(&mut self, rate: f64, time: Duration) {
        (self.answered, self.refused, self.slowest) = (0, 0, Duration::ZERO);
        let until = self.now + time;
        while self.now < until {
            self.now += Duration::from_secs_f64(1.0 / rate);
            self.end_calls();
            self.begin_call();
        }
    }

    fn end_calls(&mut self) {
        while let Some((at, calm, end)) = self.calls.front().copied().filter(|c| c.2 <= self.now) {
            self.calls.pop_front();
            self.slowest = self.slowest.max(end - at);
            self.limit.answered(Measured::Route, end - at, calm, end);
            self.answered += 1;
        }
    }

    fn begin_call(&mut self) {
        let under_way = self.calls.len();
        self.limit.observe_demand(under_way, self.now);
        if under_way >= self.limit.now() {
            self.limit.refused();
            self.refused += 1;
            return;
        }
        let calm = self.limit.is_calm(under_way);
        let core = self.free.iter_mut().min().expect("a core");
        let end = (*core).max(self.now) + self.service;
        *core = end;
        self.calls.push_back((self.now, calm, end));
    }

    /// Returns the answers per second of the last offer, as a share of the ceiling.
    fn goodput(&self, time: Duration) -> f64 {
        f64::from(self.answered) / time.as_secs_f64() / self.ceiling()
    }
}

const WHILE: Duration = Duration::from_secs(10);

#[test]
fn it_settles_where_all_is_served_and_nobody_waits_long() {
    for (cores, service) in
        [(1, MILLI), (1, 4 * MILLI), (4, 2 * MILLI), (2, 25 * MILLI), (16, 3 * MILLI)]
    {
        let mut server = Server::new(cores, service);
        for times in [2.0, 5.0, 10.0] {
            server.offer(server.ceiling() * times, WHILE);
            server.offer(server.ceiling() * times, WHILE);
            let what = format!("{cores} cores, {service:?}, {times}x");
            assert!(server.goodput(WHILE) > 0.97, "{what}: {}", server.goodput(WHILE));
            let least = service * u32::try_from(8_usize.div_ceil(cores)).expect("few");
            let most = (BOUNDS.wait + service * 3).mul_f64(1.5).max(least * 2);
            assert!(server.slowest <= most, "{what}: {:?} over {most:?}", server.slowest);
        }
    }
}

#[test]
fn it_stays_there_however_long_the_overload_lasts() {
    let mut server = Server::new(1, 2 * MILLI);
    server.offer(1_500.0, WHILE);
    let at_first = server.limit.now();
    // Long enough to measure the best durations again ten times.
    server.offer(1_500.0, 10 * BEST_FOR);
    let limit = server.limit.now();
    assert!(limit.abs_diff(at_first) <= at_first / 2, "{at_first}, then {limit}");
    assert!(server.goodput(10 * BEST_FOR) > 0.97, "{}", server.goodput(10 * BEST_FOR));
}

#[test]
fn who_can_be_served_is_never_refused() {
    let mut server = Server::new(2, 4 * MILLI);
    server.offer(server.ceiling() * 0.9, 20 * WHILE);
    assert_eq!((server.refused, server.limit.now()), (0, BOUNDS.most));
}

#[test]
fn it_recovers_from_a_slow_spell() {
    let mut server = Server::new(2, 2 * MILLI);
    let rate = server.ceiling() * 0.8;
    server.offer(rate, WHILE);
    server.service = 20 * MILLI;
    server.offer(rate, WHILE);
    assert!(server.refused > 0 && server.limit.now() < 32, "{}", server.limit.now());
    server.service = 2 * MILLI;
    server.offer(rate, Duration::from_secs(5));
    server.offer(rate, WHILE);
    assert_eq!((server.refused, server.limit.now()), (0, BOUNDS.most));
}

#[test]
fn it_follows_a_server_that_is_another_for_good() {
    let mut server = Server::new(4, MILLI);
    server.offer(server.ceiling() * 2.0, WHILE);
    // Four times as slow, as without a GPU: the earlier best durations are impossible now.
    server.service = 60 * MILLI;
    server.offer(server.ceiling() * 2.0, 3 * BEST_FOR);
    server.offer(server.ceiling() * 2.0, WHILE);
    assert!(server.goodput(WHILE) > 0.95, "{}", server.goodput(WHILE));
    let best = server.limit.paces[Measured::Route as usize].target(Duration::ZERO) / 2;
    assert!(best >= 60 * MILLI, "{best:?}");
}

#[test]
fn it_never_falls_below_the_least() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    for second in 0..600 {
        for _ in 0..ENOUGH {
            limit.answered(Measured::Route, Duration::from_secs(30), false, start);
        }
        limit.observe_demand(limit.now(), start + Duration::from_secs(second));
    }
    assert_eq!(limit.now(), BOUNDS.least);
}

#[test]
fn a_few_calls_that_wait_for_something_else_change_little() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    // One call in ten waits for a revision. Many are in progress, because that takes long.
    for window in 1..1_000 {
        let now = start + WINDOW * window;
        (0..18).for_each(|_| limit.answered(Measured::Route, 2 * MILLI, true, now));
        (0..2).for_each(|_| limit.answered(Measured::Route, 2_000 * MILLI, false, now));
        limit.observe_demand(limit.now(), now);
    }
    assert_eq!(limit.now(), BOUNDS.most);
}

#[test]
fn what_is_not_asked_for_is_not_taken_away() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    // A worker hangs: all calls take long, and forty are in progress.
    for window in 1..50 {
        let now = start + WINDOW * window;
        (0..20).for_each(|_| limit.answered(Measured::Route, 500 * MILLI, false, now));
        limit.observe_demand(40, now);
    }
    assert_eq!(limit.now(), BOUNDS.most);
}

#[test]
fn the_slowest_kind_counts_and_mistakes_do_not() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    for window in 1..50 {
        let now = start + WINDOW * window;
        for _ in 0..100 {
            limit.answered(Measured::Gate, MILLI, true, now);
            limit.given_up(Measured::Route, MILLI);
        }
        (0..ENOUGH).for_each(|_| limit.given_up(Measured::Route, 100 * MILLI));
        limit.observe_demand(limit.now(), now);
    }
    assert_eq!(limit.now(), BOUNDS.least);
}

#[test]
fn the_best_is_that_of_calm_calls_and_is_seen_anew() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    let mut answered = |millis: u32, calm, after| {
        limit.answered(Measured::Route, MILLI * millis, calm, start + after);
        limit.best(Measured::Route)
    };
    assert_eq!(answered(3, false, MILLI), None);
    assert_eq!(answered(30, true, MILLI), Some(30 * MILLI));
    assert_eq!(answered(20, true, MILLI), Some(20 * MILLI));
    assert_eq!(answered(10, false, BEST_FOR), Some(20 * MILLI));
    assert_eq!(answered(40, true, BEST_FOR), Some(20 * MILLI));
    assert_eq!(answered(40, true, 2 * BEST_FOR), Some(40 * MILLI));
    assert_eq!(limit.best(Measured::Gate), None);
}

#[test]
fn a_calm_call_that_is_hardly_slower_confirms_the_best() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    let mut answered = |millis: u32, seconds: u64| {
        let now = start + Duration::from_secs(seconds);
        limit.answered(Measured::Route, MILLI * millis, true, now);
        let pace = &limit.paces[Measured::Route as usize];
        (pace.best(), pace.best_is_old(BEST_FOR, now + BEST_FOR))
    };
    assert_eq!(answered(20, 0), (Some(20 * MILLI), false));
    assert_eq!(answered(25, 30), (Some(20 * MILLI), false), "seen again");
    assert_eq!(answered(26, 60), (Some(20 * MILLI), true), "too slow for that");
    assert_eq!(answered(21, 600), (Some(20 * MILLI), false), "however old it is");
    assert_eq!(answered(26, 700), (Some(26 * MILLI), false), "it is another now");
}

/// Makes the limit measure the best durations again, and returns the time.
fn probe(limit: &mut Limit, start: Instant) -> Instant {
    limit.answered(Measured::Route, 2 * MILLI, true, start);
    let now = start + 2 * BEST_FOR;
    limit.answered(Measured::Route, 2 * MILLI, false, now);
    limit.refused();
    limit.observe_demand(limit.now(), now);
    assert_eq!(limit.now(), BOUNDS.calm);
    now
}

#[test]
fn a_probe_ends_with_its_first_calm_answer() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    let now = probe(&mut limit, start);
    limit.answered(Measured::Route, 2 * MILLI, false, now);
    assert_eq!(limit.now(), BOUNDS.calm, "it began among others");
    limit.answered(Measured::Route, 50 * MILLI, true, now + 50 * MILLI);
    assert!(limit.now() > BOUNDS.least, "{}", limit.now());
    assert_eq!(limit.best(Measured::Route), Some(50 * MILLI));
}

#[test]
fn a_probe_that_shows_nothing_is_short() {
    let start = Instant::now();
    let mut limit = Limit::new(BOUNDS, start);
    let now = probe(&mut limit, start);
    limit.observe_demand(1, now + 299 * MILLI);
    assert_eq!(limit.now(), BOUNDS.calm);
    limit.observe_demand(1, now + 300 * MILLI);
    assert!(limit.now() > BOUNDS.least, "{}", limit.now());
    // The best duration stays valid.
    limit.answered(Measured::Route, 2 * MILLI, false, now + BEST_FOR);
    limit.refused();
    limit.observe_demand(limit.now(), now + BEST_FOR);
    assert!(limit.now() > BOUNDS.least, "{}", limit.now());
}
