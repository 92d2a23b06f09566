//! Log lines, which name the trace that they belong to where there is one.

use std::fmt::{self, Write as _};
use std::io;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

use super::context::sampled_ids;
use super::{AnyLayer, LogOptions};

/// The layer that writes; lines have `trace_id` and `span_id` when calls are `traced`.
pub(super) fn layer(options: &LogOptions, traced: bool) -> (AnyLayer, LogFilter) {
    let (filter, handle) = reload::Layer::new(EnvFilter::new(&options.filter));
    (with(filter, options, traced), LogFilter(handle))
}

/// What is logged, which may change while the process runs.
#[derive(Clone)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// Takes other targets and levels, as `tracing_subscriber::EnvFilter` reads them, from now on.
    pub fn replace(&self, filter: &str) {
        // It fails only where nobody logs any more.
        drop(self.0.reload(EnvFilter::new(filter)));
    }
}

fn with(
    filter: reload::Layer<EnvFilter, Registry>,
    options: &LogOptions,
    traced: bool,
) -> AnyLayer {
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
    // It would say on standard error that standard error is closed, and panic.
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

/// A format with the trace added at the end of each line of a sampled call.
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
    use super::*;

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
