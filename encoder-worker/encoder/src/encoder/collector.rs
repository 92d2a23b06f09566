//! Metrics of an encoder's own counters, read at each scrape.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::{Distribution, EncoderHandle, EncoderStats, ModelDescription};

/// Collector that exposes an encoder, once there is one, as `toolgate_encoder` and `toolgate_embed_*`.
#[derive(Debug, Clone, Default)]
pub struct EncoderCollector {
    encoder: Arc<OnceLock<EncoderHandle>>,
}

impl EncoderCollector {
    /// Sets the encoder to expose. Only the first call counts.
    pub fn show(&self, encoder: EncoderHandle) {
        let _ = self.encoder.set(encoder);
    }

    /// Returns true if the encoder has stopped for good, as after a panic of the model.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.encoder.get().is_some_and(|encoder| !encoder.is_running())
    }
}

impl Collector for EncoderCollector {
    fn encode(&self, to: DescriptorEncoder) -> fmt::Result {
        self.encoder.get().map_or(Ok(()), |encoder| encode_encoder(to, encoder))
    }
}

/// Encodes the metrics of one encoder.
pub fn encode_encoder(mut to: DescriptorEncoder, encoder: &EncoderHandle) -> fmt::Result {
    identity(&mut to, encoder.model())?;
    let about = "Calls that may wait or run at once";
    let capacity = encoder.shared.queue_capacity as u64;
    gauge(&mut to, "toolgate_embed_queue_capacity", about, capacity)?;
    let stats = encoder.stats();
    counts(&mut to, &stats)?;
    times(&mut to, &stats)?;
    distributions(&mut to, &stats)
}

fn identity(to: &mut DescriptorEncoder, model: &ModelDescription) -> fmt::Result {
    let labels = [
        ("model", model.name.as_str()),
        ("fingerprint", model.fingerprint.as_str()),
        ("backend", model.backend.as_str()),
    ];
    let about = "The model and what it runs on";
    to.encode_descriptor("toolgate_encoder", about, None, MetricType::Info)?.encode_info(&labels)
}

fn counts(to: &mut DescriptorEncoder, stats: &EncoderStats) -> fmt::Result {
    let depth = stats.queue_depth as u64;
    gauge(to, "toolgate_embed_queue_depth", "Calls that wait or run", depth)?;
    let about = "1 until the encoder stops for good, as after a panic of the model";
    gauge(to, "toolgate_encoder_running", about, u64::from(stats.running))?;
    for (name, about, value) in [
        ("texts", "Texts embedded", stats.texts),
        ("tokens", "Tokens embedded", stats.tokens),
        ("batches", "Device calls", stats.batches),
        ("failed_batches", "Device calls that failed", stats.failed_batches),
        ("truncated_texts", "Texts longer than the model reads", stats.truncated),
        ("abandoned", "Calls dropped because the caller had gone", stats.abandoned),
        ("expired", "Calls dropped because their deadline had passed", stats.expired),
        ("refused", "Calls refused because the queue was full", stats.refused),
        (
            "texts_for_gone",
            "Texts embedded though the caller had gone when the device took the batch",
            stats.embedded_for_gone,
        ),
    ] {
        let name = format!("toolgate_embed_{name}");
        to.encode_descriptor(&name, about, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
    }
    Ok(())
}

fn times(to: &mut DescriptorEncoder, stats: &EncoderStats) -> fmt::Result {
    for (name, about, value) in [
        ("toolgate_embed_device_busy", "Time in device calls", stats.busy),
        ("toolgate_embed_tokenizing", "Time spent on turning texts into tokens", stats.tokenizing),
    ] {
        to.encode_descriptor(name, about, Some(&Unit::Seconds), MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value.as_secs_f64(), None)?;
    }
    Ok(())
}

fn distributions(to: &mut DescriptorEncoder, stats: &EncoderStats) -> fmt::Result {
    let texts = ("toolgate_embed_batch_texts", "Texts of a batch", None);
    histogram(to, texts, &stats.batch_texts, 1.0)?;
    let tokens = ("toolgate_embed_batch_tokens", "Tokens of a batch", None);
    histogram(to, tokens, &stats.batch_tokens, 1.0)?;
    let about = "Time from a call's arrival in the queue until the device took its first batch";
    let wait = ("toolgate_embed_queue_wait", about, Some(&Unit::Seconds));
    histogram(to, wait, &stats.queue_wait, 1e6)
}

/// Encodes a histogram; `per_unit` counted values make one of the unit shown.
#[expect(clippy::cast_precision_loss, reason = "sums stay far below 2^52")]
fn histogram(
    to: &mut DescriptorEncoder,
    (name, about, unit): (&str, &str, Option<&Unit>),
    found: &Distribution,
    per_unit: f64,
) -> fmt::Result {
    let bounds = found.bounds.iter().map(|bound| *bound as f64 / per_unit).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(found.counts).collect();
    to.encode_descriptor(name, about, unit, MetricType::Histogram)?.encode_histogram::<NoLabelSet>(
        found.sum as f64 / per_unit,
        found.total(),
        &buckets,
        None,
    )
}

/// Encodes one gauge without labels.
///
/// # Errors
/// The encoder cannot be written to.
pub fn gauge(to: &mut DescriptorEncoder, name: &str, about: &str, value: u64) -> fmt::Result {
    to.encode_descriptor(name, about, None, MetricType::Gauge)?.encode_gauge(&value)
}
