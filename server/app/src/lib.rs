//! What every face of the service calls: the plane over catalogs and shards, and its metrics.

pub mod logging;
pub mod plane;
pub mod telemetry;
