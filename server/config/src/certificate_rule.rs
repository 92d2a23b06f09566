//! Client certificates with the tenant and roles of each: `spiffe://example.org/ns/prod/sa/agents=acme:agent`.

use std::fmt;
use std::str::FromStr;

use toolgate_core::identity::TenantId;
use toolgate_core::role::{Role, Roles};

/// Text that stands for no tenant.
const NO_TENANT: &str = "*";

/// Tenant and roles of one client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRule {
    /// Identity of the certificate: one of its URIs, or `cn:` followed by its common name.
    pub identity: String,
    /// Tenant whose calls the certificate may make; `None` for the tenant that each call names.
    pub tenant: Option<TenantId>,
    /// Roles of the certificate's holder.
    pub roles: Roles,
}

impl FromStr for CertificateRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (identity, rest) = text.rsplit_once('=').ok_or("no tenant after a =")?;
        let (tenant, roles) = rest.split_once(':').ok_or("no role after the tenant and a :")?;
        let identity = identity.trim();
        let named = identity.strip_prefix("cn:").map_or_else(
            || identity.contains("://") && !identity.ends_with("://"),
            |name| !name.is_empty(),
        );
        if !named {
            return Err("the certificate is named by a URI, or by cn: and its common name".into());
        }
        let role = |name: &str| {
            let role = Role::named(name.trim());
            role.ok_or_else(|| format!("no role {name:?}: {}", Role::NAMES.join(", ")))
        };
        let roles = Roles::of(&roles.split('+').map(role).collect::<Result<Vec<_>, _>>()?);
        let tenant = match tenant.trim() {
            NO_TENANT if roles.may_be_of_any_tenant() => None,
            NO_TENANT => return Err("only an admin may be of no tenant".into()),
            name => Some(TenantId::parse(name).map_err(|_| "no tenant's name")?),
        };
        Ok(Self { identity: identity.to_owned(), tenant, roles })
    }
}

impl fmt::Display for CertificateRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenant = self.tenant.as_ref().map_or(NO_TENANT, TenantId::as_str);
        let roles: Vec<_> = self.roles.names().collect();
        write!(formatter, "{}={tenant}:{}", self.identity, roles.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_shown() {
        for text in [
            "spiffe://x/ns/prod/sa/a=acme:agent",
            "cn:a=b=acme:agent+catalog-writer",
            "https://x/?a=acme:admin",
            "cn:job=*:admin",
        ] {
            assert_eq!(text.parse::<CertificateRule>().expect(text).to_string(), text);
        }
        for (text, problem) in [
            ("spiffe://x/a", "no tenant"),
            ("spiffe://x/a=acme", "no role after"),
            ("spiffe://x/a=acme:", "no role \"\""),
            ("spiffe://x/a=acme:root", "no role \"root\""),
            ("spiffe://x/a=Ac me:agent", "no tenant's name"),
            ("spiffe://x/a=*:agent", "only an admin"),
            ("job=acme:agent", "cn:"),
            ("cn:=acme:agent", "cn:"),
            ("spiffe://=acme:agent", "cn:"),
        ] {
            let told = text.parse::<CertificateRule>().expect_err(text);
            assert!(told.contains(problem), "{text}: {told}");
        }
    }
}
