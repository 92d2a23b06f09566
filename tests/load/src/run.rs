//! The run. Every stream and every call has a task of its own. SIGINT ends the run early, with a report.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::arguments::{Arguments, Stream, seconds};
use crate::arrivals::Arrivals;
use crate::caller::{Manner, call};
use crate::intents::{self, Intents};
use crate::outcome::Outcome;
use crate::record::{Record, Report};
use crate::targets::Targets;

/// Pause after a refusal in a closed loop, as the server recommends it.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// State that all streams share.
struct Ground {
    /// Connections of each stream. Streams may share them.
    targets: Vec<Arc<Targets>>,
    manner: Manner,
    record: Record,
    room: Arc<Semaphore>,
    /// Start of the warm-up.
    start: Instant,
    warmup: f64,
    length: f64,
}

/// Runs the load of the command line.
pub(crate) async fn run(arguments: &Arguments) -> Result<Report, String> {
    let intents = intents::Source::read(arguments.intents.as_deref(), arguments.repeated)?;
    let tenants = arguments.streams.iter().map(|stream| stream.tenant.clone()).collect();
    let ground = Arc::new(Ground {
        targets: connections(arguments)?,
        manner: Manner { deadline: arguments.deadline(), retry: arguments.retry },
        record: Record::new(tenants, arguments.seconds),
        room: Arc::new(Semaphore::new(arguments.max_under_way.min(Semaphore::MAX_PERMITS))),
        start: Instant::now(),
        warmup: arguments.warmup,
        length: arguments.seconds,
    });
    let stopped = stopped_by_signal();
    let mut rng = Rng::with_seed(arguments.seed);
    let mut tasks = JoinSet::new();
    for (index, stream) in arguments.streams.iter().enumerate() {
        let from = Source { index, stream: stream.clone(), intents: intents.clone() };
        match arguments.callers {
            None => drop(tasks.spawn(open(Arc::clone(&ground), from, rng.fork(), stopped.clone()))),
            Some(callers) => {
                for _ in 0..callers {
                    tasks.spawn(closed(
                        Arc::clone(&ground),
                        from.clone(),
                        rng.fork(),
                        stopped.clone(),
                    ));
                }
            }
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| format!("a stream failed: {error}"))?;
    }
    let ran = ground.start.elapsed().as_secs_f64() - arguments.warmup;
    Ok(ground.record.report(if *stopped.borrow() { ran.max(1.0) } else { arguments.seconds }))
}

fn connections(arguments: &Arguments) -> Result<Vec<Arc<Targets>>, String> {
    let connect = || Targets::new(&arguments.targets, arguments.connections).map(Arc::new);
    if arguments.own_connections {
        return arguments.streams.iter().map(|_| connect()).collect();
    }
    Ok(vec![connect()?; arguments.streams.len()])
}

/// Returns a receiver that holds true after the first SIGINT.
fn stopped_by_signal() -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.send_replace(true);
        }
        // The sender is kept, because receivers would take its drop for a signal.
        stop.closed().await;
    });
    stopped
}

/// Stream and intents of a sender of calls.
#[derive(Clone)]
struct Source {
    index: usize,
    stream: Stream,
    intents: intents::Source,
}

/// Sends each call at its planned time, without waiting for other calls.
async fn open(ground: Arc<Ground>, from: Source, mut rng: Rng, mut stopped: watch::Receiver<bool>) {
    let mut intents = Intents::new(rng.fork(), &from.intents);
    let mut calls = JoinSet::new();
    for moment in Arrivals::new(&from.stream, ground.warmup, ground.length, rng) {
        let due = ground.start + moment.after_start(ground.warmup);
        tokio::select! {
            () = sleep_until(due) => {}
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
        while calls.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&ground.room).try_acquire_owned() else {
            ground.record.add(from.index, moment.0, None, Duration::ZERO);
            continue;
        };
        let ground = Arc::clone(&ground);
        let tenant = from.stream.tenant.clone();
        let index = from.index;
        let intent = intents.next();
        calls.spawn(async move {
            let outcome = call(&ground.targets[index], &ground.manner, &tenant, intent).await;
            ground.record.add(index, moment.0, Some(&outcome), due.elapsed());
            drop(place);
        });
    }
    calls.join_all().await;
}

/// Sends each call after the answer to the one before.
async fn closed(ground: Arc<Ground>, from: Source, rng: Rng, stopped: watch::Receiver<bool>) {
    let mut intents = Intents::new(rng, &from.intents);
    let begin = ground.start;
    let end = ground.start + seconds(ground.warmup + ground.length);
    loop {
        let sent = Instant::now();
        if sent >= end || *stopped.borrow() {
            return;
        }
        let at = (sent - begin).as_secs_f64() - ground.warmup;
        let tenant = &from.stream.tenant;
        let outcome =
            call(&ground.targets[from.index], &ground.manner, tenant, intents.next()).await;
        ground.record.add(from.index, at, Some(&outcome), sent.elapsed());
        // Retrying at once would only measure refusals.
        if outcome == Outcome::Refused {
            sleep(AFTER_REFUSAL).await;
        }
    }
}
