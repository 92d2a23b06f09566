//! RPCs of `CatalogService`, and listings that fetch all pages.

use toolgate_proto::v1;

use crate::call::{Repeat, Rpc};
use crate::client::Client;
use crate::error::Error;
use crate::items::{ItemStream, paged};

impl Client {
    /// Registers one MCP server's tools, or replaces them; [`registration`](crate::registration) builds a request. A
    /// rejected tool is part of the answer, not an error. A request without a `request_id` gets a random one, so that
    /// repeating it after a lost answer changes nothing. Hundreds of new tools take longer than the usual deadline: see
    /// [`with_deadline`](Self::with_deadline).
    ///
    /// # Errors
    /// The call failed; see [`Error`].
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
    /// The call failed; see [`Error`].
    pub async fn unregister_server(
        &self,
        mut request: v1::UnregisterServerRequest,
    ) -> Result<v1::UnregisterServerResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        // Repeated after it succeeded, the request would fail with SERVER_NOT_FOUND.
        let rpc = Rpc::change("UnregisterServer", Repeat::OnlyIfRefused);
        self.call(rpc, request, |request| {
            let mut service = self.catalog();
            async move { service.unregister_server(request).await }
        })
        .await
    }

    /// Approves tools that wait for approval, each with the hash that was reviewed. If a tool's hash has changed since,
    /// it is not approved and is listed among the refusals of the answer.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn approve_tools(
        &self,
        mut request: v1::ApproveToolsRequest,
    ) -> Result<v1::ApproveToolsResponse, Error> {
        self.fill_tenant(&mut request.tenant);
        // Approving a tool twice changes nothing.
        self.call(Rpc::change("ApproveTools", Repeat::Safe), request, |request| {
            let mut service = self.catalog();
            async move { service.approve_tools(request).await }
        })
        .await
    }

    /// Reads one MCP server.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
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

    /// Returns one page of the tenant's MCP servers, sorted by name.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
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

    /// Returns one page of the tenant's tools, sorted by MCP server and name.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
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

    /// Streams the tenant's MCP servers, sorted by name. Each page has a deadline of its own.
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

    /// Streams the tenant's tools, sorted by MCP server and name. Each page has a deadline of its own.
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

    /// Returns every MCP server of the client's tenant at once; see [`servers`](Self::servers).
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn all_servers(&self) -> Result<Vec<v1::McpServer>, Error> {
        self.servers(v1::ListServersRequest::default()).all().await
    }

    /// Returns every tool of the client's tenant, or of one of its MCP servers, at once; see [`tools`](Self::tools).
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn all_tools(
        &self,
        server: Option<&str>,
        as_agent: Option<v1::AgentState>,
    ) -> Result<Vec<v1::Tool>, Error> {
        let server = server.unwrap_or_default().to_owned();
        self.tools(v1::ListToolsRequest { server, as_agent, ..Default::default() }).all().await
    }
}

/// Returns 128 random bits in hex.
fn fresh_id() -> String {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("the operating system gives random bytes");
    format!("{:032x}", u128::from_ne_bytes(bits))
}
