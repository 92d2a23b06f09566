//! Why something is refused at the edge: the one list of it, so that every reason is counted from 0 on.

use toolgate_serving::{ConnectionRefusal, DoorRefusal};

/// Why a call, a connection or an answer is refused at the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// As many calls are in progress as may be, or the tenant has its share.
    Concurrency,
    /// More prompt calls than are answered without a long wait.
    Wait,
    /// More prompt calls than are looked at without a long wait.
    Queue,
    /// The time left would not have sufficed, or had passed.
    Deadline,
    /// Memory is short.
    Memory,
    /// The tenant has as many calls in progress as its limit allows.
    TenantConcurrency,
    /// The tenant began as many calls in a second as its limit allows.
    TenantRate,
    /// As many requests are under way as may be, or the connection has its share.
    Requests,
    /// The tenant has its share of the requests under way.
    TenantRequests,
    /// As many connections are open as may be.
    Connections,
    /// As many connections of one address are open as may be.
    AddressConnections,
    /// A connection was closed for a new one: one without an authenticated call, or an idle one of a tenant with most of them.
    ConnectionReplaced,
    /// As many watches are open as may be.
    Watches,
    /// Answers that callers do not read.
    UnsentAnswers,
    /// Bodies of callers without gRPC.
    WebBodies,
    /// A body of a caller without gRPC that came too late.
    WebBodyLate,
    /// A web page that `server.cors_origins` does not name.
    Origin,
    /// The process stops.
    Draining,
}

impl Rejection {
    /// Every one.
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

impl From<DoorRefusal> for Rejection {
    fn from(refusal: DoorRefusal) -> Self {
        match refusal {
            DoorRefusal::Full => Self::Requests,
            DoorRefusal::Waited => Self::Queue,
            DoorRefusal::Late => Self::Deadline,
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
        // The last one that is declared: a reason that is added goes before it, or changes this.
        assert_eq!(Rejection::Draining as usize + 1, Rejection::ALL.len());
    }
}
