//! Output of the commands. Results go to stdout, everything else to stderr. Colours and progress bars appear only on a
//! terminal (NO_COLOR is honoured).

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

/// Prints a result. Colours are removed unless stdout is a terminal that supports them.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints a result as JSON.
pub(super) fn print_json(value: &serde_json::Value) -> io::Result<()> {
    print(&format!("{value:#}\n"))
}

/// Prints a note to stderr.
pub(super) fn note(text: impl fmt::Display) {
    // If stderr is closed, the note can't be delivered.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints an error to stderr.
pub(super) fn print_error(text: &str) {
    note(format_args!("{BAD}error:{BAD:#} {text}"));
}

/// Prints a warning to stderr.
pub(super) fn warn(text: impl fmt::Display) {
    note(format_args!("{ODD}warning:{ODD:#} {text}"));
}

/// Creates a progress bar over `total` items. It is invisible unless stderr is a terminal.
pub(super) fn progress_over(total: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {prefix} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total as u64).with_style(style).with_prefix(what)
}

/// Creates a progress bar over texts, and the callback by which an embedding reports its progress.
pub(super) fn progress_of_texts() -> (ProgressBar, impl Fn(usize, usize) + Send + Sync) {
    let bar = progress_over(0, "texts embedded");
    let shown = bar.clone();
    let progress = move |done: usize, all: usize| {
        shown.set_length(all as u64);
        shown.set_position(done as u64);
    };
    (bar, progress)
}

/// Creates a progress bar over bytes. It is invisible unless stderr is a terminal.
pub(super) fn progress_in_bytes() -> ProgressBar {
    let template = "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {msg}";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::no_length().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Number of tasks after which a busy thread polls the network. With the runtime's default of 61, received bytes wait
/// for milliseconds, and latencies of calls do not include that wait.
const EVENT_INTERVAL: u32 = 8;

/// Creates the runtime of a command's asynchronous work.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    let built = builder.enable_all().event_interval(EVENT_INTERVAL).build();
    built.map_err(|error| Failure::new(format!("threads cannot be started: {error}")))
}
