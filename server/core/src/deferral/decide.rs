//! Decision about deferral for one turn: the mode, its source, the objections to it and the reason.

use super::{Mode, Policy};
use crate::identity::TenantId;

/// Settings of one request for deferral.
#[derive(Debug, Clone, Default)]
pub struct DeferralRequest {
    /// Mode; `None` to leave it to the operator.
    pub mode: Option<Mode>,
    /// Host at which the model is called; `None` when the request doesn't say.
    pub model_host: Option<String>,
    /// True if sending all tools costs less than deferring some.
    pub whole_is_cheaper: bool,
}

/// Source of the mode. The wire's `DeferralSource` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Default, because nobody chose a mode.
    Default,
    /// Setting of the operator for all tenants.
    Server,
    /// Setting of the operator for this tenant.
    Tenant,
    /// Request.
    Request,
}

/// Reason why tools are deferred or not. The wire's `DeferralReason` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The mode decides.
    Mode,
    /// The operator turned deferral off for everybody.
    KillSwitch,
    /// The model can't search for tools.
    ModelUnsupported,
    /// The host is unknown, and nobody chose a mode.
    UnknownProxy,
    /// The definitions take at least the mode's share of the context window.
    OverThreshold,
    /// The definitions take less than the mode's share of the context window.
    UnderThreshold,
    /// The request has no context window to take a share of.
    NoWindow,
    /// Sending all tools costs less than deferring some.
    Price,
}

/// Decision about deferral for one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Chosen mode.
    pub mode: Mode,
    /// Source of the mode.
    pub source: Source,
    /// True if tools are deferred.
    pub deferred: bool,
    /// Reason for the decision.
    pub reason: Reason,
    /// Cost of deferrable tools in tokens, less the operator's `overhead_tokens`.
    pub cost: u64,
    /// Cost in tokens from which tools are deferred; `None` if the cost was not compared.
    pub threshold: Option<u64>,
}

impl Policy {
    /// Decides for one turn. It checks, in this order, the kill switch, a mode that is off, the price, the model, an
    /// unknown host and the mode. `cost` is the cost of deferrable tools in tokens.
    #[must_use]
    pub fn decide(
        &self,
        tenant: &TenantId,
        asked: &DeferralRequest,
        model: &str,
        window: Option<u32>,
        cost: u64,
    ) -> Decision {
        let (mode, source) = self.chosen(tenant, asked);
        let cost = cost.saturating_sub(self.overhead_tokens);
        let not =
            |reason| Decision { mode, source, deferred: false, reason, cost, threshold: None };
        if self.kill_switch {
            return not(Reason::KillSwitch);
        }
        if mode == Mode::Off {
            return not(Reason::Mode);
        }
        if asked.whole_is_cheaper {
            return not(Reason::Price);
        }
        if self.denied_models.iter().any(|pattern| pattern.is_within(model)) {
            return not(Reason::ModelUnsupported);
        }
        if source == Source::Default && !self.knows(asked.model_host.as_deref()) {
            return not(Reason::UnknownProxy);
        }
        match (mode, window) {
            (Mode::Auto(percent), Some(window)) if percent > 0 => {
                let threshold = u64::from(window) * u64::from(percent) / 100;
                let deferred = cost >= threshold;
                let reason = if deferred { Reason::OverThreshold } else { Reason::UnderThreshold };
                Decision { deferred, threshold: Some(threshold), ..not(reason) }
            }
            (Mode::Auto(percent), None) if percent > 0 => not(Reason::NoWindow),
            _ => Decision { deferred: true, ..not(Reason::Mode) },
        }
    }

    /// Returns true if the operator lets none of the tenant's tools be deferred, unless a request asks for it.
    #[must_use]
    pub fn is_off(&self, tenant: &TenantId) -> bool {
        let (mode, _) = self.chosen(tenant, &DeferralRequest::default());
        self.kill_switch || mode == Mode::Off
    }

    fn chosen(&self, tenant: &TenantId, asked: &DeferralRequest) -> (Mode, Source) {
        let request = asked.mode.map(|mode| (mode, Source::Request));
        let of_tenant = || self.tenants.get(tenant).map(|mode| (*mode, Source::Tenant));
        let of_server = || self.mode.map(|mode| (mode, Source::Server));
        request.or_else(of_tenant).or_else(of_server).unwrap_or((Mode::Always, Source::Default))
    }

    fn knows(&self, host: Option<&str>) -> bool {
        host.is_none_or(|host| self.trusted_hosts.iter().any(|known| known.matches(host)))
    }
}

impl Decision {
    /// Returns the decision as a sentence for a reader.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { mode, cost, .. } = self;
        match self.reason {
            Reason::Mode if self.deferred => format!("deferred: the mode is {mode}"),
            Reason::Mode => format!("not deferred: the mode is {mode}"),
            Reason::KillSwitch => "not deferred: the server's kill switch is on".to_owned(),
            Reason::ModelUnsupported => "not deferred: the model is on the deny list".to_owned(),
            Reason::UnknownProxy => {
                "not deferred: the model is called at a host that the server does \
                                     not know; choose a mode to defer all the same"
                    .to_owned()
            }
            Reason::OverThreshold | Reason::UnderThreshold => {
                let verb = self.deferred;
                let threshold = self.threshold.unwrap_or(0);
                let verb = if verb { "deferred" } else { "not deferred" };
                format!("{verb}: {cost} tokens of definitions, and {mode} begins at {threshold}")
            }
            Reason::NoWindow => {
                format!("not deferred: the mode is {mode}, and the request has no context_window")
            }
            Reason::Price => {
                "not deferred: sending all tools costs less than deferring some".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferral::Pattern;

    fn tenant() -> TenantId {
        TenantId::parse("acme").expect("a tenant")
    }

    fn policy() -> Policy {
        Policy { trusted_hosts: vec![Pattern::new("api.known.example")], ..Policy::default() }
    }

    fn decide(policy: &Policy, mode: Option<Mode>, host: &str, cost: u64) -> Decision {
        let model_host = (!host.is_empty()).then(|| host.to_owned());
        policy.decide(
            &tenant(),
            &DeferralRequest { mode, model_host, ..DeferralRequest::default() },
            "haiku-1",
            Some(1_000),
            cost,
        )
    }

    #[test]
    fn the_nearest_word_counts() {
        let mut policy = policy();
        let who = |policy: &Policy, mode| {
            let decision = decide(policy, mode, "", 0);
            (decision.mode, decision.source, decision.deferred)
        };
        assert_eq!(who(&policy, None), (Mode::Always, Source::Default, true));
        policy.mode = Some(Mode::Off);
        assert_eq!(who(&policy, None), (Mode::Off, Source::Server, false));
        policy.tenants.insert(tenant(), Mode::Always);
        assert_eq!(who(&policy, None), (Mode::Always, Source::Tenant, true));
        assert_eq!(who(&policy, Some(Mode::Off)), (Mode::Off, Source::Request, false));
    }

    #[test]
    fn the_kill_switch_wins_over_all() {
        let policy = Policy { kill_switch: true, ..policy() };
        for mode in [None, Some(Mode::Always), Some(Mode::Auto(0)), Some(Mode::Off)] {
            let decision = decide(&policy, mode, "", u64::MAX);
            assert_eq!((decision.deferred, decision.reason), (false, Reason::KillSwitch));
        }
        assert!(policy.is_off(&tenant()));
    }

    #[test]
    fn denied_models_and_unknown_hosts_get_everything() {
        let policy = Policy { denied_models: vec![Pattern::new("Haiku")], ..policy() };
        let decision = decide(&policy, Some(Mode::Always), "", 0);
        assert_eq!((decision.deferred, decision.reason), (false, Reason::ModelUnsupported));
        let policy = self::policy();
        let reason = |mode, host| decide(&policy, mode, host, 0).reason;
        assert_eq!(reason(None, "proxy.example"), Reason::UnknownProxy);
        assert_eq!(reason(None, "API.known.example"), Reason::Mode);
        assert_eq!(reason(Some(Mode::Always), "proxy.example"), Reason::Mode);
    }

    #[test]
    fn auto_compares_what_is_left_of_the_cost() {
        let policy = Policy { overhead_tokens: 50, ..policy() };
        for (cost, deferred) in [(0, false), (149, false), (150, true), (u64::MAX, true)] {
            let decision = decide(&policy, Some(Mode::AUTO), "", cost);
            assert_eq!((decision.deferred, decision.threshold), (deferred, Some(100)), "{cost}");
        }
        assert!(decide(&policy, Some(Mode::Auto(0)), "", 0).deferred, "0% is always reached");
        let asked = DeferralRequest { mode: Some(Mode::AUTO), ..DeferralRequest::default() };
        let decision = policy.decide(&tenant(), &asked, "", None, u64::MAX);
        assert_eq!((decision.deferred, decision.reason), (false, Reason::NoWindow));
    }
}
