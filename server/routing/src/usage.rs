//! The usage ledger: what each tenant's turns cost, and what sending every schema would have cost. Counted
//! in memory, kept in the store by the hour. No intent, no argument and no tool's name is in it.

mod amounts;
mod deferral;
mod keeper;
mod ledger;
mod metrics;
#[cfg(test)]
mod tests;

pub use amounts::Amounts;
pub use deferral::Deferral;
pub use keeper::keep;
pub use ledger::{BUCKETS_MAX, Bucket, Granularity, Ledger, Span, Usage, hour_of};
pub use metrics::UsageMetrics;
