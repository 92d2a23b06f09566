//! Access to the tenant of a request.

use toolgate_proto::v1;

/// Request that names its tenant.
pub(super) trait Tenanted {
    /// Returns the tenant's name as sent; empty for none.
    fn tenant(&self) -> &str;
}

macro_rules! tenanted {
    ($($message:ident),* $(,)?) => {
        $(impl Tenanted for v1::$message {
            fn tenant(&self) -> &str {
                &self.tenant
            }
        })*
    };
}

tenanted! {
    RouteRequest, GateRequest, SearchToolsRequest, GetSummaryPoolRequest, BatchGetToolSchemasRequest,
    RegisterServerRequest, UnregisterServerRequest, GetServerRequest, ListServersRequest, ListToolsRequest,
    ApproveToolsRequest, SetPolicyRequest, GetPolicyRequest, CheckPolicyRequest,
    GetUsageRequest, WatchCatalogRequest, GetMemoryStatsRequest, ClearMemoryRequest,
}
