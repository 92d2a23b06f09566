//! Whose call a message is.

use toolgate_proto::v1;

/// A request that names its tenant.
pub(super) trait Tenanted {
    /// The name as it was sent; empty for none.
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
