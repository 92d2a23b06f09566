//! Metrics that every process has: about itself and about the spans that it exports. Also label values that processes
//! share.

use std::fmt::{self, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::calls::PACKAGE;
use super::exporting::{CROWDED_OUT, EXPORTED, SENT_IN_VAIN};
use super::lines::dropped_lines;
use super::process::Reading;

/// Label value `Service/Method`; the package is added when it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RpcMethod(pub &'static str);

impl EncodeLabelValue for RpcMethod {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        write!(encoder, "{PACKAGE}.{}", self.0)
    }
}

/// Label of an exemplar: the trace of a sampled call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TraceLabel {
    /// Trace identifier in hexadecimal.
    pub trace_id: String,
}

/// Registers metrics of the process itself, of its version, and of the spans that it exported or lost.
pub fn register_process(registry: &mut Registry) {
    registry.register_collector(Box::new(OfTheProcess { started: super::process::started() }));
}

#[derive(Debug)]
struct OfTheProcess {
    /// Start time in seconds since 1970 (UTC).
    started: f64,
}

impl Collector for OfTheProcess {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        let about = "The program's version";
        to.encode_descriptor("toolgate_build", about, None, MetricType::Info)?
            .encode_info(&version)?;
        spans(&mut to)?;
        let about = "Log lines of calls that were lost: no room to wait";
        to.encode_descriptor("toolgate_log_lines_dropped", about, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&dropped_lines(), None)?;
        let about = "When the process began, in seconds since 1970";
        let unit = Some(&Unit::Seconds);
        to.encode_descriptor("process_start_time", about, unit, MetricType::Gauge)?
            .encode_gauge(&self.started)?;
        let reading = Reading::now();
        cpu(&mut to, reading.cpu_seconds)?;
        for (name, about, unit, value) in [
            (
                "process_resident_memory",
                "Memory in use",
                Some(&Unit::Bytes),
                reading.resident_bytes,
            ),
            (
                "process_virtual_memory",
                "Addresses in use",
                Some(&Unit::Bytes),
                reading.virtual_bytes,
            ),
            ("process_open_fds", "Open file descriptors", None, reading.open_fds),
            ("process_max_fds", "File descriptors that may be open", None, reading.max_fds),
        ] {
            if let Some(value) = value {
                to.encode_descriptor(name, about, unit, MetricType::Gauge)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }
}

fn cpu(to: &mut DescriptorEncoder<'_>, seconds: Option<f64>) -> fmt::Result {
    let Some(seconds) = seconds else { return Ok(()) };
    let about = "Processor time, user's and system's";
    to.encode_descriptor("process_cpu", about, Some(&Unit::Seconds), MetricType::Counter)?
        .encode_counter::<NoLabelSet, _, u64>(&seconds, None)
}

fn spans(to: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let about = "Spans that the collector took";
    to.encode_descriptor("toolgate_trace_spans_exported", about, None, MetricType::Counter)?
        .encode_counter::<NoLabelSet, _, u64>(&EXPORTED.load(Relaxed), None)?;
    let about = "Spans that were lost: no room to wait, or not taken in time";
    let mut lost =
        to.encode_descriptor("toolgate_trace_spans_dropped", about, None, MetricType::Counter)?;
    for (reason, count) in [("queue_full", &CROWDED_OUT), ("export_failed", &SENT_IN_VAIN)] {
        lost.encode_family(&[("reason", reason)])?
            .encode_counter::<NoLabelSet, _, u64>(&count.load(Relaxed), None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_process_shows_itself() {
        let mut registry = Registry::default();
        register_process(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a String does not fail");
        let mut names = vec!["toolgate_build_info{version=", "process_start_time_seconds "];
        if cfg!(target_os = "linux") {
            names.extend(["process_resident_memory_bytes ", "process_open_fds "]);
            names.extend(["process_max_fds ", "process_cpu_seconds_total "]);
        }
        names.push("toolgate_log_lines_dropped_total ");
        names.push("toolgate_trace_spans_dropped_total{reason=\"queue_full\"} ");
        for name in names {
            assert!(text.lines().any(|line| line.starts_with(name)), "{name}\n{text}");
        }
    }
}
