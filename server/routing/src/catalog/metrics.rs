//! Metrics of registration safety. Clones share their counters.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use toolgate_core::metrics::Label;

/// Counters of findings, quarantined tools and approved tools.
#[derive(Clone, Debug, Default)]
pub struct SafetyMetrics {
    findings: Family<Label, Counter>,
    quarantined: Family<Label, Counter>,
    approved: Counter,
}

impl SafetyMetrics {
    /// Registers all counters.
    pub fn register(&self, r: &mut Registry) {
        let findings = "Findings in the texts of registered tools, by severity";
        r.register("toolgate_scan_findings", findings, self.findings.clone());
        let quarantined = "Tools that a registration quarantined, by reason";
        r.register("toolgate_quarantined_tools", quarantined, self.quarantined.clone());
        let approved = "Quarantined tools that were approved";
        r.register("toolgate_approved_tools", approved, self.approved.clone());
    }

    /// Counts a finding.
    pub fn found(&self, severity: &'static str) {
        self.findings.get_or_create(&[("severity", severity)]).inc();
    }

    /// Counts a quarantined tool.
    pub fn quarantined(&self, reason: &'static str) {
        self.quarantined.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts approved tools.
    pub fn approved(&self, tools: usize) {
        self.approved.inc_by(tools as u64);
    }
}
