//! The RPCs of `CatalogService` that this version of the service answers, and whole listings.

use toolgate_proto::v1;

use crate::call::{Repeat, Rpc};
use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Upserts one MCP server's tools. A rejected tool is an outcome, not an error. With an `etag`, give a
    /// `request_id` too: without one, a connection that breaks is not tried again.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn register_server(
        &self,
        mut request: v1::RegisterServerRequest,
    ) -> Result<v1::RegisterServerResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        let is_safe = request.etag.is_empty() || !request.request_id.is_empty();
        let rpc = Rpc {
            name: "RegisterServer",
            repeat: if is_safe { Repeat::Safe } else { Repeat::OnlyIfRefused },
        };
        self.call(rpc, request, |request| {
            let mut service = self.catalog();
            async move { service.register_server(request).await }
        })
        .await
    }

    /// Removes one MCP server and its tools.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn unregister_server(
        &self,
        mut request: v1::UnregisterServerRequest,
    ) -> Result<v1::UnregisterServerResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        let rpc = Rpc {
            name: "UnregisterServer",
            // Sent again after it was done, it would fail with SERVER_NOT_FOUND.
            repeat: Repeat::OnlyIfRefused,
        };
        self.call(rpc, request, |request| {
            let mut service = self.catalog();
            async move { service.unregister_server(request).await }
        })
        .await
    }

    /// Reads one MCP server.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn get_server(
        &self,
        mut request: v1::GetServerRequest,
    ) -> Result<v1::GetServerResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("GetServer"), request, |request| {
            let mut service = self.catalog();
            async move { service.get_server(request).await }
        })
        .await
    }

    /// One page of the tenant's MCP servers, by name.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn list_servers(
        &self,
        mut request: v1::ListServersRequest,
    ) -> Result<v1::ListServersResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("ListServers"), request, |request| {
            let mut service = self.catalog();
            async move { service.list_servers(request).await }
        })
        .await
    }

    /// One page of the tenant's tools, by MCP server and name.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn list_tools(
        &self,
        mut request: v1::ListToolsRequest,
    ) -> Result<v1::ListToolsResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        self.call(Rpc::read("ListTools"), request, |request| {
            let mut service = self.catalog();
            async move { service.list_tools(request).await }
        })
        .await
    }

    /// Every MCP server of the client's tenant, page by page. Each page has a deadline of its own.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn all_servers(&self) -> Result<Vec<v1::McpServer>, Error> {
        let mut servers = Vec::new();
        let mut request = v1::ListServersRequest::default();
        loop {
            let page = self.list_servers(request.clone()).await?;
            servers.extend(page.servers);
            if page.next_page_token.is_empty() {
                return Ok(servers);
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Every tool of the client's tenant, or of one of its MCP servers, page by page. Each page has a
    /// deadline of its own.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn all_tools(
        &self,
        server: Option<&str>,
        as_agent: Option<v1::AgentState>,
    ) -> Result<Vec<v1::Tool>, Error> {
        let mut tools = Vec::new();
        let mut request = v1::ListToolsRequest {
            server: server.unwrap_or_default().to_owned(),
            as_agent,
            ..Default::default()
        };
        loop {
            let page = self.list_tools(request.clone()).await?;
            tools.extend(page.tools);
            if page.next_page_token.is_empty() {
                return Ok(tools);
            }
            request.page_token = page.next_page_token;
        }
    }
}
