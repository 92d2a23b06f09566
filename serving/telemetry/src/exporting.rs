//! Export of ended spans to the collector: a bounded queue, which calls fill without ever waiting, and one task that
//! empties it in batches. Spans that do not fit, or that the collector does not accept in time, are lost and counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{
    ExporterBuildError, SpanExporter, WithExportConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Sampler, SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata, info, warn};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;

use super::calls::SPANS;
use super::lines::WaitingLines;
use super::{AnyLayer, DECISIONS, TraceOptions};

/// Most spans that may wait, about a KiB each: some seconds of a busy service.
const QUEUE: usize = 4_096;

/// Most spans in one request.
const BATCH: usize = 512;

/// Longest time that a span waits for others to share its request.
const DELAY: Duration = Duration::from_secs(1);

/// Prefix of targets whose events are exported with a call's span: decisions and warnings.
const OURS: &str = "toolgate";

/// Prefixes of targets whose warnings quote MCP servers, so that no span has them.
const QUOTING: [&str; 2] = ["toolgate_mcp", "toolgate_upstream"];

/// Counters of spans that the collector accepted, that did not fit into the queue, and whose export failed.
pub(super) static EXPORTED: AtomicU64 = AtomicU64::new(0);
pub(super) static CROWDED_OUT: AtomicU64 = AtomicU64::new(0);
pub(super) static SENT_IN_VAIN: AtomicU64 = AtomicU64::new(0);

/// Sending end of the queue of spans.
#[derive(Debug)]
struct Queue(mpsc::Sender<SpanData>);

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.0.try_send(span).is_err() {
            CROWDED_OUT.fetch_add(1, Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Receiving end of the queue of spans.
pub(super) struct Outlet {
    spans: mpsc::Receiver<SpanData>,
    options: TraceOptions,
}

/// Builds the layer that turns traced calls into spans, and the outlet that they come out of.
pub(super) fn prepare(options: &TraceOptions) -> (AnyLayer, Outlet) {
    let (queue, spans) = mpsc::channel(QUEUE);
    let undecided = Sampler::TraceIdRatioBased(options.sample_ratio);
    let provider = SdkTracerProvider::builder()
        .with_span_processor(Queue(queue))
        .with_sampler(Sampler::ParentBased(Box::new(undecided)))
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(OURS))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_error_events_to_status(false)
        .with_error_events_to_exceptions(false)
        .with_error_fields_to_exceptions(false)
        .with_error_records_to_exceptions(false)
        .with_filter(filter_fn(is_exported).with_max_level_hint(LevelFilter::INFO));
    (layer.boxed(), Outlet { spans, options: options.clone() })
}

/// Returns true for spans of calls, and for the decisions and warnings that become their events.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    if metadata.is_span() {
        return metadata.target() == SPANS;
    }
    let target = metadata.target();
    let is_quoting = QUOTING.iter().any(|prefix| target.starts_with(prefix));
    let is_odd = *metadata.level() <= Level::WARN && target.starts_with(OURS) && !is_quoting;
    is_odd || (*metadata.level() <= Level::INFO && target == DECISIONS)
}

/// Running export of spans and writer of log lines. Dropping it ends the writer; see [`Exporting::stop`].
pub struct Exporting {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    lines: WaitingLines,
}

impl Exporting {
    pub(super) fn begin(outlet: Option<Outlet>, lines: WaitingLines) -> Self {
        let stop = CancellationToken::new();
        let task = outlet.and_then(|Outlet { spans, options }| match exporter(&options) {
            Ok(exporter) => {
                info!(collector = options.endpoint, "spans are exported");
                let timeout = options.timeout;
                let batch = Vec::with_capacity(BATCH);
                let pump = Pump { spans, exporter, timeout, batch, is_failing: false };
                Some(tokio::spawn(pump.run(stop.clone())))
            }
            Err(error) => {
                warn!(%error, "spans can't be exported, and are not");
                None
            }
        });
        Self { stop, task, lines }
    }

    /// Sends the waiting spans for at most `within`, and writes the waiting log lines for at most a second.
    pub async fn stop(self, within: Duration) {
        self.stop.cancel();
        if let Some(mut task) = self.task
            && timeout(within, &mut task).await.is_err()
        {
            task.abort();
            warn!("the collector did not take the last spans in time");
        }
        drop(self.lines);
    }
}

/// Builds the exporter. The SDK reads `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_RESOURCE_ATTRIBUTES` from the environment.
fn exporter(options: &TraceOptions) -> Result<SpanExporter, ExporterBuildError> {
    let builder = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(options.endpoint.as_str())
        .with_timeout(options.timeout);
    let builder = if options.endpoint.starts_with("https://") {
        builder.with_tls_config(ClientTlsConfig::new().with_native_roots())
    } else {
        builder
    };
    let mut exporter = builder.build()?;
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder()
        .with_attribute(version)
        .with_service_name(options.service_name.clone())
        .build();
    exporter.set_resource(&resource);
    Ok(exporter)
}

/// Task that moves spans from the queue to the collector.
struct Pump {
    spans: mpsc::Receiver<SpanData>,
    exporter: SpanExporter,
    timeout: Duration,
    batch: Vec<SpanData>,
    is_failing: bool,
}

impl Pump {
    async fn run(mut self, stop: CancellationToken) {
        while stop.run_until_cancelled(self.gather()).await.is_some() {
            self.send().await;
        }
        // Spans that already wait; no more come, because calls are over.
        while self.take_waiting() {
            self.send().await;
        }
    }

    /// Waits until a batch is full or its first span has waited long enough.
    async fn gather(&mut self) {
        if self.batch.is_empty() {
            self.spans.recv_many(&mut self.batch, BATCH).await;
        }
        let until = Instant::now() + DELAY;
        while self.batch.len() < BATCH {
            let room = BATCH - self.batch.len();
            match timeout_at(until, self.spans.recv_many(&mut self.batch, room)).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    fn take_waiting(&mut self) -> bool {
        while self.batch.len() < BATCH
            && let Ok(span) = self.spans.try_recv()
        {
            self.batch.push(span);
        }
        !self.batch.is_empty()
    }

    async fn send(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let spans = batch.len() as u64;
        let outcome = match timeout(self.timeout, self.exporter.export(batch)).await {
            Ok(exported) => exported.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        };
        // Logged when failures begin and when they end, not every second.
        match outcome {
            Ok(()) => {
                EXPORTED.fetch_add(spans, Relaxed);
                if std::mem::take(&mut self.is_failing) {
                    info!("the collector takes spans again");
                }
            }
            Err(error) => {
                SENT_IN_VAIN.fetch_add(spans, Relaxed);
                if !std::mem::replace(&mut self.is_failing, true) {
                    warn!(error, "the collector takes no spans; calls go on without");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{Span as _, SpanBuilder, Tracer as _};

    use super::*;

    #[test]
    fn who_ends_a_span_never_waits_for_room() {
        let (queue, mut spans) = mpsc::channel(2);
        let provider = SdkTracerProvider::builder().with_span_processor(Queue(queue)).build();
        let tracer = provider.tracer(OURS);
        let before = CROWDED_OUT.load(Relaxed);
        for name in ["a", "b", "c", "d"] {
            tracer.build(SpanBuilder::from_name(name)).end();
        }
        assert_eq!(CROWDED_OUT.load(Relaxed) - before, 2, "those without room are counted");
        let names = std::iter::from_fn(|| spans.try_recv().ok()).map(|span| span.name);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    }
}
