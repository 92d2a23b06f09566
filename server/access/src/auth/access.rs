//! The single table of roles that RPCs require. `toolgate_grpc` checks it against the contract's descriptors, and
//! checks docs/security.md against it.

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

const AGENT: Access = Access::Needs(Roles::of(&[Role::Agent]));
const WRITER: Access = Access::Needs(Roles::of(&[Role::CatalogWriter]));
const EITHER: Access = Access::Needs(Roles::of(&[Role::Agent, Role::CatalogWriter]));
const ADMIN: Access = Access::Needs(Roles::of(&[Role::Admin]));

/// Every RPC that the server serves, with its requirement.
pub const TABLE: &[(&str, Access)] = &[
    ("/toolgate.v1.RouterService/Route", AGENT),
    ("/toolgate.v1.RouterService/Gate", AGENT),
    ("/toolgate.v1.RouterService/SearchTools", AGENT),
    ("/toolgate.v1.RouterService/GetSummaryPool", AGENT),
    ("/toolgate.v1.RouterService/BatchGetToolSchemas", AGENT),
    ("/toolgate.v1.CatalogService/RegisterServer", WRITER),
    ("/toolgate.v1.CatalogService/UnregisterServer", WRITER),
    ("/toolgate.v1.CatalogService/GetServer", WRITER),
    ("/toolgate.v1.CatalogService/ListServers", WRITER),
    // An agent may list tools only with `as_agent`, which shows what the agent itself sees.
    ("/toolgate.v1.CatalogService/ListTools", EITHER),
    ("/toolgate.v1.CatalogService/WatchCatalog", EITHER),
    // A caller that registers tools must not also approve them.
    ("/toolgate.v1.CatalogService/ApproveTools", ADMIN),
    ("/toolgate.v1.PolicyService/SetPolicy", WRITER),
    ("/toolgate.v1.PolicyService/GetPolicy", WRITER),
    ("/toolgate.v1.PolicyService/CheckPolicy", WRITER),
    ("/toolgate.v1.UsageService/GetUsage", WRITER),
    ("/toolgate.v1.MemoryService/GetMemoryStats", WRITER),
    ("/toolgate.v1.MemoryService/ClearMemory", WRITER),
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

/// Returns the requirement of the RPC with this path. An RPC that is not in the table is for admins.
#[must_use]
pub fn of(path: &str) -> Access {
    TABLE.iter().find(|(known, _)| *known == path).map_or(ADMIN, |(_, access)| *access)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_table_is_for_admins() {
        assert_eq!(of("/toolgate.v1.RouterService/Route"), AGENT);
        for path in ["", "/", "/toolgate.v1.RouterService/route", "/x/Check"] {
            assert_eq!(of(path), ADMIN, "{path}");
        }
    }

    #[test]
    fn each_rpc_is_there_once() {
        for (place, (path, _)) in TABLE.iter().enumerate() {
            assert!(TABLE[..place].iter().all(|(other, _)| other != path), "{path}");
        }
    }
}
