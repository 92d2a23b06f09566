//! RPCs of `RouterService`.

use toolgate_proto::v1;

use crate::call::Rpc;
use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Returns the active set for this turn. Call it before the model.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn route(&self, mut request: v1::RouteRequest) -> Result<v1::RouteResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("Route"), request, |request| {
            let mut service = self.router();
            async move { service.route(request).await }
        })
        .await
    }

    /// Decides which calls of the model may run. Call it after the model. A refused call is part of the answer, not an
    /// error.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn gate(&self, mut request: v1::GateRequest) -> Result<v1::GateResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("Gate"), request, |request| {
            let mut service = self.router();
            async move { service.gate(request).await }
        })
        .await
    }

    /// Searches tools by name, by MCP server, by keywords, or in natural language.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
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

    /// Returns the summaries of the catalog (phase 1), completely or as a delta since a revision.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
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

    /// Returns full schemas by tool name (phase 2 on demand).
    ///
    /// # Errors
    /// The call failed; see [`Error`].
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
