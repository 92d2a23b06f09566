//! Log lines, which name their trace if they have one. Lines that calls cause by the thousand wait in a bounded queue
//! for a thread that writes them, so no call waits for the reader of the log. Warnings, errors, audit records and
//! messages about the process itself are written at once and never lost.

use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, Write};
use std::sync::OnceLock;

use tracing::{Event, Level, Metadata, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::writer::EitherWriter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

use super::context::sampled_ids;
use super::{AnyLayer, DECISIONS, INTENTS, LogOptions};

/// Most lines that may wait, about half a KiB each at level info: some seconds of a busy service.
pub(super) const ROOM: usize = 8_192;

/// Counter of this process's lines that did not fit into the queue.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Returns the number of lines that did not fit so far.
pub(super) fn dropped_lines() -> u64 {
    DROPPED.get().map_or(0, |dropped| dropped.dropped_lines() as u64)
}

/// Builds the layer that writes lines; they carry `trace_id` and `span_id` when calls are `traced`.
pub(super) fn layer(options: &LogOptions, writers: Writers, traced: bool) -> (AnyLayer, LogFilter) {
    let (filter, handle) = reload::Layer::new(EnvFilter::new(&options.filter));
    (with(filter, writers, options, traced), LogFilter(handle))
}

/// Writers for queued lines and for lines that are written at once.
pub(super) struct Writers {
    queue: NonBlocking,
}

/// Guard of the waiting lines. Dropping it writes them, for at most a second.
pub(super) struct WaitingLines {
    _writer: WorkerGuard,
    dropped: ErrorCounter,
}

impl WaitingLines {
    /// Has the metrics count the lines that do not fit.
    pub(super) fn show_dropped(&self) {
        // Only the first telemetry of a process is counted.
        drop(DROPPED.set(self.dropped.clone()));
    }
}

/// Starts the thread that writes to `to`; at most `room` lines wait for it.
pub(super) fn writers(to: impl Write + Send + 'static, room: usize) -> (Writers, WaitingLines) {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(room).lossy(true);
    let batches = Unfailing(BufWriter::with_capacity(BATCH, to));
    let (queue, writer) = builder.thread_name("log").finish(batches);
    let dropped = queue.error_counter();
    (Writers { queue }, WaitingLines { _writer: writer, dropped })
}

/// Size in bytes of the writer's buffer: lines are written in batches of this size.
const BATCH: usize = 64 << 10;

/// Writer that never fails: a standard error that is closed, or on a full disk, costs lines and nothing else.
struct Unfailing<W: Write>(BufWriter<W>);

impl<W: Write> Write for Unfailing<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        drop(self.0.write_all(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        drop(self.0.flush());
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Writers {
    type Writer = EitherWriter<NonBlocking, io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        EitherWriter::B(io::stderr())
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        if may_wait(metadata) { EitherWriter::A(self.queue.clone()) } else { self.make_writer() }
    }
}

/// Returns true if a record is one of those that each call makes.
fn may_wait(metadata: &Metadata<'_>) -> bool {
    match *metadata.level() {
        Level::ERROR | Level::WARN => false,
        Level::INFO => [DECISIONS, INTENTS].contains(&metadata.target()),
        _ => true,
    }
}

/// Handle that changes the log filter while the process runs.
#[derive(Clone)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// Replaces targets and levels, in the syntax of `tracing_subscriber::EnvFilter`, from now on.
    pub fn replace(&self, filter: &str) {
        // This fails only when logging has ended.
        drop(self.0.reload(EnvFilter::new(filter)));
    }
}

fn with(
    filter: reload::Layer<EnvFilter, Registry>,
    writers: Writers,
    options: &LogOptions,
    traced: bool,
) -> AnyLayer {
    let lines = tracing_subscriber::fmt::layer().with_writer(writers).with_ansi(false);
    // Otherwise it would report on standard error that standard error is closed, and panic.
    let lines = lines.log_internal_errors(false);
    let json = options.json;
    if json {
        let lines = lines.json().flatten_event(true);
        if traced {
            let format = |inner| WithTrace { inner, json };
            return lines.map_event_format(format).with_filter(filter).boxed();
        }
        return lines.with_filter(filter).boxed();
    }
    if traced {
        let format = |inner| WithTrace { inner, json };
        return lines.map_event_format(format).with_filter(filter).boxed();
    }
    lines.with_filter(filter).boxed()
}

/// Format that adds the trace to the end of each line of a sampled call.
struct WithTrace<F> {
    inner: F,
    json: bool,
}

impl<S, N, F> FormatEvent<S, N> for WithTrace<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(ids) = sampled_ids() else {
            return self.inner.format_event(context, writer, event);
        };
        let mut line = String::with_capacity(512);
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        add(&mut line, ids, self.json)?;
        writer.write_str(&line)
    }
}

fn add(line: &mut String, (trace, span): (String, String), json: bool) -> fmt::Result {
    let end = line.trim_end().len();
    line.truncate(end);
    if json && line.ends_with('}') {
        line.pop();
        let comma = if line.ends_with('{') { "" } else { "," };
        return writeln!(line, "{comma}\"trace_id\":\"{trace}\",\"span_id\":\"{span}\"}}");
    }
    writeln!(line, " trace_id={trace} span_id={span}")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Writer that blocks until the other end lets it continue, and reports how many lines were written.
    struct Gate {
        go: mpsc::Receiver<()>,
        written: mpsc::Sender<usize>,
    }

    impl Write for Gate {
        fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
            // On an error, the gate stays open.
            let _ = self.go.recv();
            let count = lines.iter().filter(|byte| **byte == b'\n').count();
            let _ = self.written.send(count);
            Ok(lines.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_logs_never_waits_and_what_found_room_is_written() {
        const LINES: usize = 10_000;
        let (open, go) = mpsc::channel();
        let (told, written) = mpsc::channel();
        let (writers, waiting) = writers(Gate { go, written: told }, 16);
        let line = format!("{}\n", "x".repeat(99));
        let mut queue = writers.queue.clone();
        for _ in 0..LINES {
            queue.write_all(line.as_bytes()).expect("never an error");
        }
        let dropped = waiting.dropped.dropped_lines();
        // Lines that do not wait are with the writer.
        assert!(dropped > LINES - 16 - 2 * BATCH / line.len(), "{dropped}");
        drop(open);
        drop((queue, writers, waiting));
        assert_eq!(written.iter().sum::<usize>(), LINES - dropped, "each that found room");
    }

    #[test]
    fn only_what_each_call_says_may_wait() {
        use tracing::level_filters::LevelFilter;
        use tracing::{debug, error, info, subscriber, warn};

        struct Asked(mpsc::Sender<bool>);
        impl<S: Subscriber> tracing_subscriber::Layer<S> for Asked {
            fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
                let _ = self.0.send(may_wait(event.metadata()));
            }
        }
        let (told, answers) = mpsc::channel();
        let layer = Asked(told).with_filter(LevelFilter::TRACE);
        let subscriber = tracing_subscriber::layer::SubscriberExt::with(Registry::default(), layer);
        subscriber::with_default(subscriber, || {
            info!(target: DECISIONS, "route");
            info!(target: INTENTS, "asked");
            debug!("a connection");
            info!("serving");
            info!(target: "toolgate::audit", "changed");
            warn!("odd");
            error!(target: DECISIONS, "wrong");
        });
        let answers: Vec<bool> = answers.iter().collect();
        assert_eq!(answers, [true, true, true, false, false, false, false]);
    }

    #[test]
    fn a_line_stays_one_line_and_json_stays_json() {
        let ids = || ("t".to_owned(), "s".to_owned());
        for (line, json, want) in [
            ("{\"a\":{}}\n", true, "{\"a\":{},\"trace_id\":\"t\",\"span_id\":\"s\"}\n"),
            ("{}\n", true, "{\"trace_id\":\"t\",\"span_id\":\"s\"}\n"),
            ("INFO words\n", false, "INFO words trace_id=t span_id=s\n"),
        ] {
            let mut line = line.to_owned();
            add(&mut line, ids(), json).expect("writing to a String does not fail");
            assert_eq!(line, want);
        }
    }
}
