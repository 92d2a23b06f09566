//! Requirements on the callers of each RPC. Those of the service's own methods are in the table of [`Method`]s.
//! `toolgate_grpc` checks them against the contract's descriptors, and docs/security.md against them.

use toolgate_core::method::Method;
use toolgate_core::role::{Role, Roles};

/// Requirement on the callers of an RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Open to every caller, without a credential.
    Open,
    /// Open to every caller with a valid credential.
    Known,
    /// Open to callers with one of these roles, and to admins.
    Needs(Roles),
}

/// Path before the name of a method, such as `RouterService/Route`.
const PACKAGE: &str = "/toolgate.v1.";

/// RPCs that are no methods of this service.
const OTHERS: [(&str, Access); 6] = [
    // Only encoder workers serve these. Here the answer is that they are not served.
    ("/toolgate.v1.EncoderService/Embed", Access::Known),
    ("/toolgate.v1.EncoderService/Describe", Access::Known),
    // Probes and load balancers have no credential.
    ("/grpc.health.v1.Health/Check", Access::Open),
    ("/grpc.health.v1.Health/Watch", Access::Open),
    // The answers are public, but the streams have a cost.
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Access::Known),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Access::Known),
];

/// Returns every RPC that the server serves, with its requirement.
#[must_use]
pub fn table() -> Vec<(String, Access)> {
    let ours = Method::ALL
        .map(|method| (format!("{PACKAGE}{}", method.name()), Access::Needs(method.roles())));
    let others = OTHERS.map(|(path, access)| (path.to_owned(), access));
    ours.into_iter().chain(others).collect()
}

/// Returns the requirement of the RPC with this path. An unknown RPC is for admins.
#[must_use]
pub fn of(path: &str) -> Access {
    if let Some(method) = path.strip_prefix(PACKAGE).and_then(Method::named) {
        return Access::Needs(method.roles());
    }
    let other = OTHERS.iter().find(|(known, _)| *known == path);
    other.map_or(Access::Needs(Roles::of(&[Role::Admin])), |(_, access)| *access)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_table_is_for_admins() {
        let agent = Access::Needs(Roles::of(&[Role::Agent]));
        assert_eq!(of("/toolgate.v1.RouterService/Route"), agent);
        assert_eq!(of("/grpc.health.v1.Health/Check"), Access::Open);
        let admin = Access::Needs(Roles::of(&[Role::Admin]));
        for path in ["", "/", "/toolgate.v1.RouterService/route", "RouterService/Route", "/x/Check"]
        {
            assert_eq!(of(path), admin, "{path}");
        }
    }

    #[test]
    fn the_table_is_what_is_asked() {
        for (path, access) in table() {
            assert_eq!(of(&path), access, "{path}");
        }
    }
}
