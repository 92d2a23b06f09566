//! Metrics of authentication, of the server's certificate and of the audit file. Clones share the same values.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use toolgate_core::metrics::Label;

/// Metrics of credentials, certificates and audit events.
#[derive(Clone, Debug, Default)]
pub struct AuthMetrics {
    failures: Family<Label, Counter>,
    certificate_expiry: Gauge,
    audit_failures: Counter,
}

impl AuthMetrics {
    /// Registers all metrics of authentication.
    pub fn register(&self, r: &mut Registry) {
        let failures =
            "Credentials that were refused, and calls that a credential's roles do not allow";
        r.register("toolgate_auth_failures", failures, self.failures.clone());
        let expiry = "When the server's certificate expires, in seconds since 1970; 0 without TLS";
        let name = "toolgate_tls_certificate_expiry";
        r.register_with_unit(name, expiry, Unit::Seconds, self.certificate_expiry.clone());
        let audit = "Audit events that could not be written to audit.file";
        r.register("toolgate_audit_failures", audit, self.audit_failures.clone());
    }

    /// Counts refused credentials, or a call that the roles do not allow.
    pub fn failed(&self, reason: &'static str) {
        self.failures.get_or_create(&[("reason", reason)]).inc();
    }

    /// Sets the expiry of the server's certificate, in milliseconds since 1970 (UTC).
    pub fn certificate_expires(&self, at_ms: i64) {
        self.certificate_expiry.set(at_ms.div_euclid(1_000));
    }

    /// Counts an audit event that could not be written.
    pub fn audit_failed(&self) {
        self.audit_failures.inc();
    }
}
