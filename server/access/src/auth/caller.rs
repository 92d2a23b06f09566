//! Who calls. In the handlers of calls this is the only way to a tenant.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use toolgate_config::AuthMethod;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::role::{Role, Roles};

/// The tenant of calls that name none, while authentication is off.
const DEFAULT_TENANT: &str = "default";

/// A caller whose credential is good, or anybody while authentication is off.
#[derive(Debug, Clone)]
pub struct Caller(Arc<Known>);

/// What a credential says.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Whose calls these are; `None` for whichever tenant a call names.
    pub(crate) tenant: Option<TenantId>,
    /// Who this is within the tenant.
    pub(crate) principal: String,
    /// What the caller may do.
    pub(crate) roles: Roles,
    /// The most scopes that the caller's agents may have; `None` for those that they say.
    pub(crate) scopes: Option<BTreeSet<String>>,
    /// The credential.
    pub(crate) credential: CredentialId,
    /// From when on it is no longer good, in milliseconds since 1970 (UTC).
    pub(crate) good_until_ms: Option<i64>,
}

/// Names a credential without telling any of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialId {
    /// Authentication is off.
    None,
    /// An API key's id.
    ApiKey(String),
    /// A token.
    Jwt {
        /// The beginning of its SHA-256.
        id: String,
        /// Of the issuer's keys that it was verified with.
        generation: u64,
    },
    /// The beginning of a certificate's SHA-256.
    Mtls(String),
}

impl CredentialId {
    /// How the caller was told; empty while authentication is off.
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
    pub(crate) fn new(known: Known) -> Self {
        Self(Arc::new(known))
    }

    /// Anybody: authentication is off.
    #[must_use]
    pub fn anybody() -> Self {
        Self::new(Known {
            tenant: None,
            principal: String::new(),
            roles: Roles::of(&Role::ALL),
            scopes: None,
            credential: CredentialId::None,
            good_until_ms: None,
        })
    }

    /// The tenant of a call whose message names this one; "" where it names none.
    ///
    /// # Errors
    /// The name is no tenant's, the credential is another tenant's, or neither says which tenant it is.
    pub fn tenant(&self, named: &str) -> Result<TenantId, Error> {
        let known = &self.0;
        match &known.tenant {
            Some(own) if named.is_empty() || named == own.as_str() => Ok(own.clone()),
            Some(_) => Err(Error::PermissionDenied("the credential is of another tenant".into())),
            None if known.credential == CredentialId::None => {
                TenantId::parse(if named.is_empty() { DEFAULT_TENANT } else { named })
            }
            None if !known.roles.has(Role::Admin) => {
                Err(Error::PermissionDenied("the credential is of no tenant".into()))
            }
            None if named.is_empty() => {
                Err(Error::field("tenant", "must be named: the credential is of no tenant"))
            }
            None => TenantId::parse(named),
        }
    }

    /// Returns the tenant of the credential; `None` where it is of none.
    #[must_use]
    pub fn own_tenant(&self) -> Option<&TenantId> {
        self.0.tenant.as_ref()
    }

    /// Who this is within the tenant; empty while authentication is off.
    #[must_use]
    pub fn principal(&self) -> &str {
        &self.0.principal
    }

    /// What the caller may do.
    #[must_use]
    pub fn roles(&self) -> Roles {
        self.0.roles
    }

    /// Of the scopes that an agent says it has, those that the credential allows.
    #[must_use]
    pub fn allowed(&self, said: BTreeSet<String>) -> BTreeSet<String> {
        match &self.0.scopes {
            None => said,
            Some(most) => said.into_iter().filter(|scope| most.contains(scope)).collect(),
        }
    }

    /// Returns the scopes that the credential allows; `None` where it allows any.
    #[must_use]
    pub fn scopes(&self) -> Option<&BTreeSet<String>> {
        self.0.scopes.as_ref()
    }

    /// The credential.
    #[must_use]
    pub fn credential(&self) -> &CredentialId {
        &self.0.credential
    }

    /// From when on the credential is no longer good, in milliseconds since 1970 (UTC).
    #[must_use]
    pub fn good_until_ms(&self) -> Option<i64> {
        self.0.good_until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(tenant: Option<&str>, roles: &[Role]) -> Caller {
        Caller::new(Known {
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
