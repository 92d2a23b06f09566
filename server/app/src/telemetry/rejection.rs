//! Reasons for refusals at the edge, in a single list so that each is counted from 0.

use toolgate_serving::{ConnectionRefusal, RequestRefusal};

/// Reason for refusing a call, a connection or an answer at the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// The limit on calls in progress, or the tenant's share of it, is reached.
    Concurrency,
    /// More interactive calls (those whose caller waits) are in progress than can be answered without a long wait.
    Wait,
    /// More interactive calls are queued than can be started without a long wait.
    Queue,
    /// The deadline has passed, or the remaining time would not be enough.
    Deadline,
    /// Memory is short.
    Memory,
    /// The tenant's limit on calls in progress is reached.
    TenantConcurrency,
    /// The tenant's limit on calls per second is reached.
    TenantRate,
    /// The limit on requests in progress, or the connection's share of it, is reached.
    Requests,
    /// The tenant's share of the requests in progress is reached.
    TenantRequests,
    /// The limit on open connections is reached.
    Connections,
    /// The limit on open connections of one address is reached.
    AddressConnections,
    /// A connection was closed for a new one. It had no authenticated call, or was an idle one of a tenant that had
    /// more than half of the connections.
    ConnectionReplaced,
    /// The limit on open watches is reached.
    Watches,
    /// Too many bytes of answers are unsent, because callers do not read them.
    UnsentAnswers,
    /// The limit on request bodies of callers without gRPC is reached.
    WebBodies,
    /// The request body of a caller without gRPC arrived too late.
    WebBodyLate,
    /// The web page's origin is not listed in `server.cors_origins`.
    Origin,
    /// The process is stopping.
    Draining,
}

impl Rejection {
    /// All reasons.
    pub const ALL: [Self; 18] = [
        Self::Concurrency,
        Self::Wait,
        Self::Queue,
        Self::Deadline,
        Self::Memory,
        Self::TenantConcurrency,
        Self::TenantRate,
        Self::Requests,
        Self::TenantRequests,
        Self::Connections,
        Self::AddressConnections,
        Self::ConnectionReplaced,
        Self::Watches,
        Self::UnsentAnswers,
        Self::WebBodies,
        Self::WebBodyLate,
        Self::Origin,
        Self::Draining,
    ];

    /// Returns the value of the metric's label `reason`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Concurrency => "concurrency",
            Self::Wait => "wait",
            Self::Queue => "queue",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::TenantConcurrency => "tenant_concurrency",
            Self::TenantRate => "tenant_rate",
            Self::Requests => "requests",
            Self::TenantRequests => "tenant_requests",
            Self::Connections => "connections",
            Self::AddressConnections => "address_connections",
            Self::ConnectionReplaced => "connection_replaced",
            Self::Watches => "watches",
            Self::UnsentAnswers => "unsent_answers",
            Self::WebBodies => "web_bodies",
            Self::WebBodyLate => "web_body_late",
            Self::Origin => "origin",
            Self::Draining => "draining",
        }
    }
}

impl From<ConnectionRefusal> for Rejection {
    fn from(refusal: ConnectionRefusal) -> Self {
        match refusal {
            ConnectionRefusal::Full => Self::Connections,
            ConnectionRefusal::AddressFull => Self::AddressConnections,
            ConnectionRefusal::Replaced => Self::ConnectionReplaced,
        }
    }
}

impl From<RequestRefusal> for Rejection {
    fn from(refusal: RequestRefusal) -> Self {
        match refusal {
            RequestRefusal::Full => Self::Requests,
            RequestRefusal::Waited => Self::Queue,
            RequestRefusal::TenantFull => Self::Wait,
            RequestRefusal::Late => Self::Deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::telemetry::{Metrics, ShardsReading};

    #[test]
    fn every_reason_is_counted_from_the_start_and_documented() {
        let text = Metrics::default().expose(ShardsReading::default());
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let row = page.lines().find(|line| line.contains("`toolgate_admission_rejected_total`"));
        let row = row.expect("the metric is documented");
        for reason in Rejection::ALL.map(Rejection::name) {
            let line = format!("toolgate_admission_rejected_total{{reason=\"{reason}\"}} 0");
            assert!(text.lines().any(|found| found == line), "{line}");
            assert!(row.contains(&format!("`{reason}`")), "docs/metrics.md lacks {reason}");
        }
    }

    #[test]
    fn no_reason_is_missing_from_the_list_or_has_the_name_of_another() {
        let names: BTreeSet<_> = Rejection::ALL.map(Rejection::name).into();
        assert_eq!(names.len(), Rejection::ALL.len());
        // `Draining` is declared last. A new reason must go before it, or this line must change.
        assert_eq!(Rejection::Draining as usize + 1, Rejection::ALL.len());
    }
}
