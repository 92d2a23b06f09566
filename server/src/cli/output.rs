//! Where words go: results to stdout, everything else to stderr, colours and progress bars only where a
//! person looks at them (NO_COLOR is honoured).

use std::fmt;
use std::io::{self, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::runtime::{Builder, Runtime};

use super::failure::Failure;

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const ODD: Style = AnsiColor::Yellow.on_default();
pub(super) const STRONG: Style = Style::new().bold();

/// Prints a result, as it is. Colours are taken out unless stdout is a terminal that wants them.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints a result for machines.
pub(super) fn print_json(value: &serde_json::Value) -> io::Result<()> {
    print(&format!("{value:#}\n"))
}

/// Says something beside the result.
pub(super) fn note(text: impl fmt::Display) {
    // Nobody is left to tell when stderr is closed.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Says what went wrong.
pub(super) fn print_error(text: &str) {
    note(format_args!("{BAD}error:{BAD:#} {text}"));
}

/// Says what is odd.
pub(super) fn warn(text: impl fmt::Display) {
    note(format_args!("{ODD}warning:{ODD:#} {text}"));
}

/// A progress bar over `total` things; invisible unless stderr is a terminal.
pub(super) fn progress_over(total: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {prefix} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total as u64).with_style(style).with_prefix(what)
}

/// A progress bar over texts, and what an embedding tells how far it is.
pub(super) fn progress_of_texts() -> (ProgressBar, impl Fn(usize, usize) + Send + Sync) {
    let bar = progress_over(0, "texts embedded");
    let shown = bar.clone();
    let progress = move |done: usize, all: usize| {
        shown.set_length(all as u64);
        shown.set_position(done as u64);
    };
    (bar, progress)
}

/// A progress bar over bytes; invisible unless stderr is a terminal.
pub(super) fn progress_in_bytes() -> ProgressBar {
    let template = "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {msg}";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::no_length().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Tasks after which a busy thread asks for what has come over the network. With the runtime's own 61, bytes lie unseen for
/// milliseconds, and the wait of their calls is not counted.
const EVENT_INTERVAL: u32 = 8;

/// What a command's asynchronous work runs on.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    let built = builder.enable_all().event_interval(EVENT_INTERVAL).build();
    built.map_err(|error| Failure::new(format!("threads cannot be started: {error}")))
}
