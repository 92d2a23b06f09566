use super::*;

/// Interactive call without a deadline.
const ANY: AdmissionRequest =
    AdmissionRequest { kind: Kind::Interactive, left: Duration::MAX, waited: Duration::ZERO };

fn admission(max_calls: usize) -> Admission {
    Admission::new(config(max_calls, None))
}

fn config(max_calls: usize, max_wait: Option<Duration>) -> AdmissionConfig {
    AdmissionConfig {
        max_calls,
        max_calls_per_tenant: None,
        calls_per_second_per_tenant: None,
        max_wait,
    }
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

fn begin_all(admission: &Admission, name: &str) -> Vec<Permit> {
    std::iter::from_fn(|| admission.begin(&tenant(name), ANY).ok()).collect()
}

#[test]
fn one_tenant_gets_most_and_leaves_room_for_others() {
    let admission = admission(100);
    let of_busy = begin_all(&admission, "busy");
    assert_eq!(of_busy.len(), 80);
    let of_others: Vec<_> =
        (0..15).map(|i| admission.begin(&tenant(&format!("t{i}")), ANY).expect("room")).collect();
    assert_eq!(admission.begin(&tenant("busy"), ANY).err(), Some(Refusal::Busy));
    drop((of_busy, of_others));
    assert_eq!(begin_all(&admission, "other").len(), 80, "places come back");
}

#[test]
fn busy_tenants_come_to_equal_shares() {
    let admission = admission(99);
    let mut held: Vec<Vec<Permit>> = vec![begin_all(&admission, "t0"), Vec::new(), Vec::new()];
    // One call after another ends, whichever tenant's it is, and every tenant wants more.
    for step in 0..2_000_usize {
        let ends = step.wrapping_mul(7_919) % held.iter().map(Vec::len).sum::<usize>();
        let of = held.iter().scan(0, |seen, permits| {
            *seen += permits.len();
            Some(*seen)
        });
        let whose = of.take_while(|seen| *seen <= ends).count();
        drop(held[whose].pop());
        for (i, permits) in held.iter_mut().enumerate() {
            permits.extend(admission.begin(&tenant(&format!("t{i}")), ANY).ok());
        }
    }
    let counts: Vec<_> = held.iter().map(Vec::len).collect();
    let least = counts.iter().min();
    let most = counts.iter().max();
    assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 5), "{counts:?}");
    assert!(counts.iter().sum::<usize>() > 80, "{counts:?}");
}

#[test]
fn a_tenants_own_limits_hold_whatever_is_free() {
    let admission = admission(100);
    let of_tenant = |calls, rate| AdmissionConfig {
        max_calls_per_tenant: calls,
        calls_per_second_per_tenant: rate,
        ..config(100, None)
    };
    admission.reconfigure(of_tenant(Some(2), None));
    let held = begin_all(&admission, "a");
    assert_eq!(held.len(), 2);
    assert_eq!(admission.begin(&tenant("a"), ANY).err(), Some(Refusal::TenantBusy));
    assert!(admission.begin(&tenant("b"), ANY).is_ok());
    admission.reconfigure(of_tenant(None, Some(10)));
    let start = Instant::now();
    let begun = (0..50).filter(|_| admission.begin_at(&tenant("c"), ANY, start).is_ok()).count();
    assert_eq!(begun, 10);
    let refused = admission.begin_at(&tenant("c"), ANY, start).err();
    assert_eq!(refused, Some(Refusal::TenantTooOften(Duration::from_millis(100))));
    assert!(admission.begin_at(&tenant("c"), ANY, start + Duration::from_millis(100)).is_ok());
    assert!(admission.begin_at(&tenant("d"), ANY, start).is_ok());
}

#[test]
fn while_memory_is_short_a_few_calls_go_on() {
    let admission = admission(64);
    admission.memory_flag().set(true);
    let held = begin_all(&admission, "a");
    assert_eq!(held.len(), 4);
    assert_eq!(admission.begin(&tenant("b"), ANY).err(), Some(Refusal::MemoryShort));
    admission.memory_flag().set(false);
    assert!(admission.begin(&tenant("b"), ANY).is_ok());
}

#[test]
fn tenants_who_are_gone_are_forgotten() {
    let admission = admission(8);
    for i in 0..20_000 {
        drop(admission.begin(&tenant(&format!("t{i}")), ANY));
    }
    assert_eq!(admission.inner.state.lock().tenants.len(), 0);
    let start = Instant::now();
    let rated = AdmissionConfig { calls_per_second_per_tenant: Some(1_000), ..config(8, None) };
    admission.reconfigure(rated);
    for i in 0..20_000 {
        let now = start + Duration::from_millis(i);
        drop(admission.begin_at(&tenant(&format!("t{i}")), ANY, now));
    }
    assert!(admission.inner.state.lock().tenants.len() <= REMEMBERED + 1);
}

/// Call of Route with one second left.
const ROUTE: AdmissionRequest = AdmissionRequest {
    kind: Kind::Measured(Measured::Route),
    left: Duration::from_secs(1),
    waited: Duration::ZERO,
};

/// Makes the limit fall to its lower bound, as in a slow process.
fn slow_down(admission: &Admission, now: Instant) -> Instant {
    let mut state = admission.inner.state.lock();
    let mut now = now;
    for _ in 0..100 {
        for _ in 0..10 {
            state.limit.answered(Measured::Route, Duration::from_millis(400), false, now);
        }
        now += Duration::from_millis(100);
        let all = state.limit.now();
        state.limit.observe_demand(all, now);
    }
    now
}

fn slow_admission() -> (Admission, Instant, usize) {
    let admission = Admission::new(config(256, Some(Duration::from_millis(20))));
    let now = slow_down(&admission, Instant::now());
    let limit = admission.reading().limit;
    assert!((LEAST..128).contains(&limit), "{limit}");
    (admission, now, limit)
}

#[test]
fn interactive_calls_beyond_the_limit_are_refused_and_background_ones_are_not() {
    let (admission, now, limit) = slow_admission();
    let begin = |name: &str, wish| admission.begin_at(&tenant(name), wish, now);
    let background =
        AdmissionRequest { kind: Kind::Background, left: Duration::MAX, waited: Duration::ZERO };
    // Registrations neither use the limit nor are held by it.
    let background: Vec<_> = (0..100).map(|_| begin("a", background).expect("a place")).collect();
    let held: Vec<_> = std::iter::from_fn(|| begin("a", ROUTE).ok()).collect();
    assert!((limit * 4 / 5..=limit).contains(&held.len()), "{} of {limit}", held.len());
    assert_eq!(begin("a", ROUTE).err(), Some(Refusal::Slow));
    let reading = admission.reading();
    assert_eq!((reading.under_way, reading.interactive), (100 + held.len(), held.len()));
    drop((background, held));
    assert_eq!(admission.reading(), Reading { under_way: 0, interactive: 0, limit });
}

#[test]
fn who_has_little_in_progress_finds_a_place_under_the_limit_too() {
    let (admission, now, limit) = slow_admission();
    let begin = |name: &str| admission.begin_at(&tenant(name), ROUTE, now);
    let _held: Vec<_> = std::iter::from_fn(|| begin("busy").ok()).collect();
    // Three tenants beside the busy one get their equal shares.
    let few = |i: usize| begin(&format!("few{}", i % 3)).expect("a place");
    let few: Vec<_> = (0..limit / 4 * 3).map(few).collect();
    assert_eq!(begin("busy").err(), Some(Refusal::Slow));
    drop(few);
    let first: Vec<_> = (0..limit).map(|i| begin(&format!("t{i}")).expect("a place")).collect();
    assert_eq!(begin("t0").err(), Some(Refusal::Slow), "but no second one");
    // A caller may name any number of tenants.
    let more: Vec<_> = (0..1_000).filter_map(|i| begin(&format!("u{i}")).ok()).collect();
    assert!(first.len() + more.len() <= FOR_MODEST * limit);
}

/// Makes one tenant ask for ten calls and another for one while calls are slow and some are refused. Returns the time
/// 100 ms later.
fn busy_interval(admission: &Admission, now: Instant) -> Instant {
    for name in ["quiet"].iter().chain(&["busy"; 10]) {
        drop(admission.begin_at(&tenant(name), ANY, now));
    }
    let mut state = admission.inner.state.lock();
    state.limit.refused();
    for _ in 0..10 {
        state.limit.answered(Measured::Route, Duration::from_millis(400), false, now);
    }
    now + Duration::from_millis(100)
}

#[test]
fn a_burst_of_a_tenant_that_asks_for_little_is_let_in_beside_a_busy_one() {
    let (admission, start, limit) = slow_admission();
    let now = (0..100).fold(start, |now, _| busy_interval(&admission, now));
    let begin = |name: &str| admission.begin_at(&tenant(name), ANY, now);
    let busy: Vec<_> = std::iter::from_fn(|| begin("busy").ok()).collect();
    // More than the tenant's equal share.
    let burst: Vec<_> = (0..limit * 3 / 4).map(|_| begin("quiet").expect("a place")).collect();
    assert_eq!(begin("busy").err(), Some(Refusal::Slow));
    let more: Vec<_> = std::iter::from_fn(|| begin("another").ok()).collect();
    assert!(busy.len() + burst.len() + more.len() <= FOR_MODEST * limit, "but not without end");
}

#[test]
fn who_asks_for_little_goes_on_while_the_best_durations_are_looked_for() {
    let (admission, mut now, limit) = slow_admission();
    let cores = available_parallelism().map_or(1, usize::from);
    let is_looked_for = || admission.reading().limit == cores;
    // The best durations are valid for a minute.
    for _ in 0..1_000 {
        if !is_looked_for() {
            now = busy_interval(&admission, now);
        }
    }
    assert!(is_looked_for());
    let begin = |name: &str| admission.begin_at(&tenant(name), ANY, now);
    let quiet: Vec<_> = (0..limit).map(|_| begin("quiet").expect("a place")).collect();
    assert!(is_looked_for() && quiet.len() > FOR_MODEST * cores);
    assert_eq!(begin("busy").err(), Some(Refusal::Slow));
}

#[test]
fn a_call_whose_caller_would_be_gone_is_not_begun() {
    let admission = Admission::new(config(256, Some(Duration::from_millis(20))));
    let now = Instant::now();
    let best = Duration::from_millis(30);
    admission.inner.state.lock().limit.answered(Measured::Route, best, true, now);
    let left = |millis| AdmissionRequest { left: Duration::from_millis(millis), ..ROUTE };
    let cores = available_parallelism().map_or(1, usize::from);
    let held: Vec<_> = (0..cores)
        .map(|_| admission.begin_at(&tenant("b"), left(29), now).expect("calm"))
        .collect();
    let begin = |wish| admission.begin_at(&tenant("a"), wish, now).err();
    assert_eq!((begin(left(29)), begin(left(30))), (Some(Refusal::NoTime), None));
    assert_eq!(begin(AdmissionRequest { kind: Kind::Measured(Measured::Gate), ..left(1) }), None);
    drop(held);
    assert_eq!(begin(left(29)), None, "nobody else wants the time");
}

#[test]
fn a_first_call_that_was_slow_keeps_nobody_out() {
    let admission = Admission::new(config(256, Some(Duration::from_millis(20))));
    let tenant = tenant("a");
    let start = Instant::now();
    let slow = Duration::from_secs(3);
    admission.inner.state.lock().limit.answered(Measured::Route, slow, true, start);
    let soon = AdmissionRequest { left: Duration::from_secs(1), ..ROUTE };
    let first = admission.begin_at(&tenant, soon, start).expect("it may be quick");
    first.answered();
    let best = admission.inner.state.lock().limit.best(Measured::Route);
    assert!(best.is_some_and(|best| best < slow), "{best:?}");
}

#[test]
fn what_a_call_waited_before_it_began_counts() {
    let admission = Admission::new(config(256, Some(Duration::from_millis(20))));
    let start = Instant::now();
    let begin = |name: &str, wish, after| {
        admission.begin_at(&tenant(name), wish, start + after).expect("there is a place")
    };
    let _held: Vec<_> = (0..128).map(|_| begin("busy", ANY, Duration::ZERO)).collect();
    for _ in 0..20 {
        let late = AdmissionRequest { waited: Duration::from_millis(200), ..ROUTE };
        begin("a", late, Duration::ZERO).answered();
    }
    assert_eq!(admission.reading().limit, 256, "the window goes on");
    let _next = begin("a", ANY, Duration::from_secs(1));
    let limit = admission.reading().limit;
    assert!(limit < 256, "{limit}");
}

#[test]
fn without_a_bound_on_waiting_the_limit_does_not_move() {
    let admission = admission(256);
    slow_down(&admission, Instant::now());
    assert_eq!(admission.reading().limit, 256);
}
