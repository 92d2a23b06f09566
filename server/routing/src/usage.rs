//! Usage ledger: the tokens of each tenant's turns, and those of sending every schema. Counted in memory and stored by
//! the hour. What is stored has no intents, no arguments and no tool names.

mod amounts;
mod deferral;
mod keeper;
mod ledger;
mod metrics;
mod searches;
#[cfg(test)]
mod tests;

pub use amounts::Amounts;
pub use deferral::Deferral;
pub use keeper::keep;
pub use ledger::{BUCKETS_MAX, Bucket, Granularity, Ledger, Span, Usage, hour_of};
pub use metrics::UsageMetrics;
