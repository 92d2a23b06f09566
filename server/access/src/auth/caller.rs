//! Callers of RPCs. In the handlers, a tenant can only be obtained from a caller.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use toolgate_config::AuthMethod;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::role::{Role, Roles};

/// Maximum length of a principal's name in bytes.
pub(super) const PRINCIPAL_MAX: usize = 256;

/// Tenant of calls that name none while authentication is off.
const DEFAULT_TENANT: &str = "default";

/// Caller with a valid credential, or any caller while authentication is off.
#[derive(Debug, Clone)]
pub struct Caller(Arc<CallerIdentity>);

/// Identity and permissions that a credential gives.
#[derive(Debug, Clone)]
pub(crate) struct CallerIdentity {
    /// Tenant of the credential; `None` if calls may name any tenant.
    pub(crate) tenant: Option<TenantId>,
    /// Name of the caller within the tenant.
    pub(crate) principal: String,
    /// Roles of the caller.
    pub(crate) roles: Roles,
    /// Scopes that the caller's agents may have at most; `None` if an agent may have any scope that it claims.
    pub(crate) scopes: Option<BTreeSet<String>>,
    /// Credential that the caller showed.
    pub(crate) credential: CredentialId,
    /// Expiry of the credential, in milliseconds since 1970 (UTC); `None` if it does not expire.
    pub(crate) good_until_ms: Option<i64>,
}

/// Public identifier of a credential, without any part of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialId {
    /// No credential, because authentication is off.
    None,
    /// Id of an API key.
    ApiKey(String),
    /// Signed token.
    Jwt {
        /// First bytes of the token's SHA-256, in hexadecimal.
        id: String,
        /// Generation of the issuer's keys that verified the token.
        generation: u64,
    },
    /// First bytes of a certificate's SHA-256, in hexadecimal.
    Mtls(String),
}

/// Returns true if the text may be the name of a principal.
pub(super) fn is_principal(name: &str) -> bool {
    (1..=PRINCIPAL_MAX).contains(&name.len()) && !name.chars().any(char::is_control)
}

impl CredentialId {
    /// Returns the name of the authentication method; empty while authentication is off.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::None => "",
            Self::ApiKey(_) => AuthMethod::ApiKey.name(),
            Self::Jwt { .. } => AuthMethod::Jwt.name(),
            Self::Mtls(_) => AuthMethod::Mtls.name(),
        }
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::ApiKey(id) | Self::Jwt { id, .. } | Self::Mtls(id) => formatter.write_str(id),
        }
    }
}

impl Caller {
    pub(crate) fn new(known: CallerIdentity) -> Self {
        Self(Arc::new(known))
    }

    /// Creates the caller of every call while authentication is off. It has all roles.
    #[must_use]
    pub fn anybody() -> Self {
        Self::new(CallerIdentity {
            tenant: None,
            principal: String::new(),
            roles: Roles::of(&Role::ALL),
            scopes: None,
            credential: CredentialId::None,
            good_until_ms: None,
        })
    }

    /// Returns the tenant of a call whose message names the tenant `named`, or names none ("").
    ///
    /// # Errors
    /// The name is invalid, the credential belongs to another tenant, or neither the credential nor the name gives a
    /// tenant.
    pub fn tenant(&self, named: &str) -> Result<TenantId, Error> {
        let known = &self.0;
        match &known.tenant {
            Some(own) if named.is_empty() || named == own.as_str() => Ok(own.clone()),
            Some(_) => Err(Error::PermissionDenied("the credential is of another tenant".into())),
            None if known.credential == CredentialId::None => {
                TenantId::parse(if named.is_empty() { DEFAULT_TENANT } else { named })
            }
            None if !known.roles.may_be_of_any_tenant() => {
                Err(Error::PermissionDenied("the credential is of no tenant".into()))
            }
            None if named.is_empty() => {
                Err(Error::field("tenant", "must be named: the credential is of no tenant"))
            }
            None => TenantId::parse(named),
        }
    }

    /// Returns the tenant of the credential; `None` if the credential belongs to no tenant.
    #[must_use]
    pub fn own_tenant(&self) -> Option<&TenantId> {
        self.0.tenant.as_ref()
    }

    /// Returns the caller's name within the tenant; empty while authentication is off.
    #[must_use]
    pub fn principal(&self) -> &str {
        &self.0.principal
    }

    /// Returns the caller for a call that is made for another principal of its tenant.
    ///
    /// # Errors
    /// The caller may not say so, or the name is no principal's.
    pub fn on_behalf_of(&self, principal: &str) -> Result<Self, Error> {
        let roles = self.0.roles;
        if !roles.has(Role::Delegate) && !roles.has(Role::Admin) {
            let problem = "the credential needs the role delegate to name a principal";
            return Err(Error::PermissionDenied(problem.into()));
        }
        if !is_principal(principal) {
            return Err(Error::field("principal", "must be one line of 1 to 256 bytes"));
        }
        Ok(Self::new(CallerIdentity { principal: principal.to_owned(), ..(*self.0).clone() }))
    }

    /// Returns the roles of the caller.
    #[must_use]
    pub fn roles(&self) -> Roles {
        self.0.roles
    }

    /// Returns those of the scopes claimed by an agent that the credential allows.
    #[must_use]
    pub fn allowed(&self, said: BTreeSet<String>) -> BTreeSet<String> {
        match &self.0.scopes {
            None => said,
            Some(most) => said.into_iter().filter(|scope| most.contains(scope)).collect(),
        }
    }

    /// Returns the scopes that the credential allows; `None` if it allows any.
    #[must_use]
    pub fn scopes(&self) -> Option<&BTreeSet<String>> {
        self.0.scopes.as_ref()
    }

    /// Returns the identifier of the credential.
    #[must_use]
    pub fn credential(&self) -> &CredentialId {
        &self.0.credential
    }

    /// Returns the credential's expiry, in milliseconds since 1970 (UTC); `None` if it does not expire.
    #[must_use]
    pub fn good_until_ms(&self) -> Option<i64> {
        self.0.good_until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(tenant: Option<&str>, roles: &[Role]) -> Caller {
        Caller::new(CallerIdentity {
            tenant: tenant.map(|name| TenantId::parse(name).expect("a tenant")),
            principal: "p".into(),
            roles: Roles::of(roles),
            scopes: Some(["a".to_owned(), "b".to_owned()].into()),
            credential: CredentialId::ApiKey("k".into()),
            good_until_ms: None,
        })
    }

    #[test]
    fn a_credential_s_tenant_is_the_only_one() {
        for roles in [&[Role::Agent][..], &Role::ALL] {
            let of_acme = caller(Some("acme"), roles);
            for named in ["", "acme"] {
                assert_eq!(of_acme.tenant(named).expect("its own").as_str(), "acme");
            }
            for other in ["other", "default", "ACME", "acme ", "Not one"] {
                let refused = of_acme.tenant(other);
                assert!(matches!(refused, Err(Error::PermissionDenied(_))), "{other}: {refused:?}");
            }
        }
    }

    #[test]
    fn who_is_of_no_tenant_names_one_and_is_an_admin() {
        let admin = caller(None, &[Role::Admin]);
        assert_eq!(admin.tenant("acme").expect("any").as_str(), "acme");
        assert!(matches!(admin.tenant(""), Err(Error::InvalidFields(_))));
        assert!(matches!(admin.tenant("Not one"), Err(Error::InvalidFields(_))));
        let writer = caller(None, &[Role::Agent, Role::CatalogWriter]);
        for named in ["", "acme"] {
            assert!(matches!(writer.tenant(named), Err(Error::PermissionDenied(_))), "{named}");
        }
    }

    #[test]
    fn only_a_delegate_names_the_principal_that_a_call_is_for() {
        for role in [Role::Delegate, Role::Admin] {
            let gateway = caller(Some("acme"), &[role]);
            let for_ann = gateway.on_behalf_of("ann").expect("a caller");
            assert_eq!(for_ann.principal(), "ann");
            assert_eq!(for_ann.tenant("").expect("the gateway's").as_str(), "acme");
            assert!(for_ann.tenant("other").is_err());
            assert_eq!(for_ann.credential(), gateway.credential());
            for wrong in ["", "a\nb", &"x".repeat(PRINCIPAL_MAX + 1)] {
                assert!(matches!(gateway.on_behalf_of(wrong), Err(Error::InvalidFields(_))));
            }
        }
        let agent = caller(Some("acme"), &[Role::Agent, Role::CatalogWriter]);
        assert!(matches!(agent.on_behalf_of("ann"), Err(Error::PermissionDenied(_))));
        let of_none = caller(None, &[Role::Delegate]);
        assert_eq!(of_none.tenant("acme").expect("any").as_str(), "acme");
        assert_eq!(Caller::anybody().on_behalf_of("ann").expect("off").principal(), "ann");
    }

    #[test]
    fn no_name_means_the_default_tenant_while_authentication_is_off() {
        let anybody = Caller::anybody();
        assert_eq!(anybody.tenant("").expect("a tenant").as_str(), DEFAULT_TENANT);
        assert_eq!(anybody.tenant("acme").expect("a tenant").as_str(), "acme");
        assert!(matches!(anybody.tenant("Not valid"), Err(Error::InvalidFields(_))));
    }

    #[test]
    fn scopes_are_no_more_than_the_credential_s() {
        let said = || BTreeSet::from(["b".to_owned(), "c".to_owned()]);
        assert_eq!(caller(None, &[]).allowed(said()), BTreeSet::from(["b".to_owned()]));
        assert_eq!(Caller::anybody().allowed(said()), said());
    }
}
