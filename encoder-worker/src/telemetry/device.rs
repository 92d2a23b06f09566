//! Metrics of the encoder that serves, once there is one, and of its readiness.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::lifecycle::{Lifecycle, Phase};
use toolgate_encoder::collector::{encode_encoder, gauge};

#[derive(Debug)]
pub(super) struct DeviceCollector {
    pub(super) lifecycle: Arc<Lifecycle>,
}

impl Collector for DeviceCollector {
    fn encode(&self, mut to: DescriptorEncoder) -> fmt::Result {
        let serving = self.lifecycle.phase() == Phase::Serving;
        let about = "1 while calls are answered";
        gauge(&mut to, "toolgate_encoder_serving", about, u64::from(serving))?;
        self.lifecycle.encoder().map_or(Ok(()), |encoder| encode_encoder(to, encoder))
    }
}
