//! The RPCs of `RouterService` that this version of the service answers.

use toolgate_proto::v1;

use crate::call::Rpc;
use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Before the model: the active set for this turn.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn route(&self, mut request: v1::RouteRequest) -> Result<v1::RouteResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("Route"), request, |request| {
            let mut service = self.router();
            async move { service.route(request).await }
        })
        .await
    }

    /// After the model: may these calls run? A refused call is an answer, not an error.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn gate(&self, mut request: v1::GateRequest) -> Result<v1::GateResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("Gate"), request, |request| {
            let mut service = self.router();
            async move { service.gate(request).await }
        })
        .await
    }

    /// Explicit discovery: by name, by MCP server, by keywords, or in natural language.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn search_tools(
        &self,
        mut request: v1::SearchToolsRequest,
    ) -> Result<v1::SearchToolsResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("SearchTools"), request, |request| {
            let mut service = self.router();
            async move { service.search_tools(request).await }
        })
        .await
    }

    /// Phase 1: the summaries of the catalog, whole or as a delta since a revision.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn get_summary_pool(
        &self,
        mut request: v1::GetSummaryPoolRequest,
    ) -> Result<v1::GetSummaryPoolResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("GetSummaryPool"), request, |request| {
            let mut service = self.router();
            async move { service.get_summary_pool(request).await }
        })
        .await
    }

    /// Phase 2 on demand: full schemas by tool name.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn batch_get_tool_schemas(
        &self,
        mut request: v1::BatchGetToolSchemasRequest,
    ) -> Result<v1::BatchGetToolSchemasResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("BatchGetToolSchemas"), request, |request| {
            let mut service = self.router();
            async move { service.batch_get_tool_schemas(request).await }
        })
        .await
    }
}
