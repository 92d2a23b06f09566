//! Application layer that every API of the service calls: the plane over catalogs and shards, logging and metrics.

pub mod logging;
pub mod pipeline;
pub mod plane;
pub mod telemetry;
