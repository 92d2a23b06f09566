//! The RPCs of `CatalogService` that this version of the service answers, and whole listings.

use toolgate_proto::v1;

use crate::call::{Repeat, Rpc};
use crate::client::Client;
use crate::error::Error;
use crate::items::{ItemStream, paged};

impl Client {
    /// Upserts one MCP server's tools; [`registration`](crate::registration) begins a request. A rejected tool
    /// is an outcome, not an error. A request without a `request_id` gets a fresh one, so that sent again after
    /// a lost answer it changes nothing. Hundreds of new tools take longer than the usual deadline: see
    /// [`with_deadline`](Self::with_deadline).
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn register_server(
        &self,
        mut request: v1::RegisterServerRequest,
    ) -> Result<v1::RegisterServerResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        if request.request_id.is_empty() {
            request.request_id = fresh_id();
        }
        self.call(Rpc::change("RegisterServer", Repeat::Safe), request, |request| {
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
        // Sent again after it was done, it would fail with SERVER_NOT_FOUND.
        let rpc = Rpc::change("UnregisterServer", Repeat::OnlyIfRefused);
        self.call(rpc, request, |request| {
            let mut service = self.catalog();
            async move { service.unregister_server(request).await }
        })
        .await
    }

    /// Accepts tools that wait for approval, each with the hash that was reviewed. One that has another hash by
    /// now is not accepted, and is among the refusals of the answer.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn approve_tools(
        &self,
        mut request: v1::ApproveToolsRequest,
    ) -> Result<v1::ApproveToolsResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        // What is approved already stays so.
        self.call(Rpc::change("ApproveTools", Repeat::Safe), request, |request| {
            let mut service = self.catalog();
            async move { service.approve_tools(request).await }
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

    /// The tenant's MCP servers by name, one after another. Each page has a deadline of its own.
    pub fn servers(&self, request: v1::ListServersRequest) -> ItemStream<v1::McpServer> {
        let client = self.clone();
        paged(request.page_token.clone(), move |page_token| {
            let client = client.clone();
            let request = v1::ListServersRequest { page_token, ..request.clone() };
            async move {
                let page = client.list_servers(request).await?;
                Ok((page.servers, page.next_page_token))
            }
        })
    }

    /// The tenant's tools by MCP server and name, one after another. Each page has a deadline of its own.
    pub fn tools(&self, request: v1::ListToolsRequest) -> ItemStream<v1::Tool> {
        let client = self.clone();
        paged(request.page_token.clone(), move |page_token| {
            let client = client.clone();
            let request = v1::ListToolsRequest { page_token, ..request.clone() };
            async move {
                let page = client.list_tools(request).await?;
                Ok((page.tools, page.next_page_token))
            }
        })
    }

    /// Every MCP server of the client's tenant: [`servers`](Self::servers), all at once.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn all_servers(&self) -> Result<Vec<v1::McpServer>, Error> {
        self.servers(v1::ListServersRequest::default()).all().await
    }

    /// Every tool of the client's tenant, or of one of its MCP servers: [`tools`](Self::tools), all at once.
    ///
    /// # Errors
    /// As every call: see [`Error`].
    pub async fn all_tools(
        &self,
        server: Option<&str>,
        as_agent: Option<v1::AgentState>,
    ) -> Result<Vec<v1::Tool>, Error> {
        let server = server.unwrap_or_default().to_owned();
        self.tools(v1::ListToolsRequest { server, as_agent, ..Default::default() }).all().await
    }
}

/// 128 random bits in hex.
fn fresh_id() -> String {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("the operating system gives random bytes");
    format!("{:032x}", u128::from_ne_bytes(bits))
}
