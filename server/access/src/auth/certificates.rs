//! Callers by TLS certificate, whose chain the transport has verified. Either a configured rule matches the
//! certificate, or its SPIFFE ID names the tenant.

use toolgate_serving::PeerCertificate;

use super::caller::{CallerIdentity, PRINCIPAL_MAX};
use super::{Caller, CredentialId, Now, Refusal};
use toolgate_config::CertificateRule;
use toolgate_core::identity::TenantId;
use toolgate_core::role::{Role, Roles};

/// Number of bytes of a certificate's hash that form its id.
const ID_BYTES: usize = 8;

pub(super) struct Certificates {
    rules: Vec<CertificateRule>,
    /// Prefix of SPIFFE IDs that name a tenant; `None` without a trust domain.
    prefix: Option<String>,
}

impl Certificates {
    pub(super) fn new(rules: Vec<CertificateRule>, trust_domain: Option<&str>) -> Self {
        let prefix = trust_domain.map(|domain| format!("spiffe://{domain}/tenant/"));
        Self { rules, prefix }
    }

    pub(super) fn caller(&self, shown: &PeerCertificate, now: Now) -> Result<Caller, Refusal> {
        if shown.not_after_ms <= now.ms {
            return Err(Refusal::Certificate("the client certificate has expired"));
        }
        let known = self.by_rule(shown).or_else(|| self.by_spiffe_id(shown));
        let (tenant, principal, roles) =
            known.ok_or(Refusal::Certificate("the client certificate names nobody known here"))?;
        let credential = CredentialId::Mtls(hex::encode(&shown.sha256[..ID_BYTES]));
        let good_until_ms = Some(shown.not_after_ms);
        Ok(Caller::new(CallerIdentity {
            tenant,
            principal,
            roles,
            scopes: None,
            credential,
            good_until_ms,
        }))
    }

    /// Finds the rule for a URI of the certificate, or for its common name if it has no URI.
    fn by_rule(&self, shown: &PeerCertificate) -> Option<(Option<TenantId>, String, Roles)> {
        let common = shown.common_name.as_deref().filter(|_| shown.uris.is_empty());
        let common = common.map(|name| format!("cn:{name}"));
        // A URI may look like a rule for common names, which is never intended.
        let uris = || shown.uris.iter().filter(|uri| !uri.starts_with("cn:"));
        let names = || uris().chain(&common);
        let rule = self.rules.iter().find(|rule| names().any(|name| *name == rule.identity))?;
        Some((rule.tenant.clone(), rule.identity.clone(), rule.roles))
    }

    /// Parses `spiffe://{trust domain}/tenant/{tenant}/{principal}`, which identifies an agent of that tenant.
    fn by_spiffe_id(&self, shown: &PeerCertificate) -> Option<(Option<TenantId>, String, Roles)> {
        // A SPIFFE certificate has exactly one URI.
        let [uri] = shown.uris.as_slice() else { return None };
        let (tenant, principal) = uri.strip_prefix(self.prefix.as_deref()?)?.split_once('/')?;
        let tenant = TenantId::parse(tenant).ok()?;
        let is_name = !principal.is_empty() && principal.len() <= PRINCIPAL_MAX;
        is_name.then(|| (Some(tenant), principal.to_owned(), Roles::of(&[Role::Agent])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(uris: &[&str], common_name: Option<&str>) -> PeerCertificate {
        PeerCertificate {
            uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
            common_name: common_name.map(str::to_owned),
            not_after_ms: 1_000,
            sha256: [7; 32],
        }
    }

    fn rule(text: &str) -> CertificateRule {
        text.parse().expect("a rule")
    }

    /// Checks the caller of a certificate, written as `tenant principal roles`.
    fn check(shown: &PeerCertificate, want: Option<&str>) {
        let rules = vec![
            rule("spiffe://x/ns/ops/sa/catalog=acme:catalog-writer+agent"),
            rule("cn:backup job=*:admin"),
        ];
        let told = Certificates::new(rules, Some("x")).caller(shown, Now::at_ms(999));
        let told = told.ok().map(|caller| {
            let tenant = caller.tenant("").map_or("-".to_owned(), |t| t.as_str().to_owned());
            format!("{tenant} {} {}", caller.principal(), caller.roles())
        });
        assert_eq!(told.as_deref(), want, "{shown:?}");
    }

    #[test]
    fn certificates_name_callers() {
        check(&certificate(&["spiffe://x/tenant/acme/a/b"], None), Some("acme a/b agent"));
        check(
            &certificate(&["spiffe://x/ns/ops/sa/catalog"], None),
            Some("acme spiffe://x/ns/ops/sa/catalog agent, catalog-writer"),
        );
        check(&certificate(&[], Some("backup job")), Some("- cn:backup job admin"));
        // A common name beside a URI is ignored, so it may be anything.
        check(&certificate(&["spiffe://y/z"], Some("backup job")), None);
        for uri in [
            "spiffe://y/tenant/acme/a",
            "spiffe://x/tenant/acme",
            "spiffe://x/tenant/acme/",
            "spiffe://x/tenant/Ac me/a",
            "spiffe://x/tenant//a",
            "https://x/tenant/acme/a",
            "cn:backup job",
        ] {
            check(&certificate(&[uri], None), None);
        }
        check(&certificate(&["spiffe://x/tenant/a/b", "spiffe://x/tenant/c/d"], None), None);
        check(&certificate(&[], Some("other")), None);
        check(&certificate(&[], None), None);
    }

    #[test]
    fn an_expired_certificate_names_nobody() {
        let shown = certificate(&["spiffe://x/tenant/acme/a"], None);
        let certificates = Certificates::new(Vec::new(), Some("x"));
        assert!(certificates.caller(&shown, Now::at_ms(999)).is_ok());
        assert!(certificates.caller(&shown, Now::at_ms(1_000)).is_err());
    }
}
