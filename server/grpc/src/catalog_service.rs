//! `CatalogService`.

use std::collections::HashMap;

use tonic::{Request, Response, Status};
use toolgate_proto::v1::catalog_service_server::CatalogService;
use toolgate_proto::v1::{
    ApproveToolsRequest, ApproveToolsResponse, GetServerRequest, GetServerResponse,
    ListServersRequest, ListServersResponse, ListToolsRequest, ListToolsResponse,
    RegisterServerRequest, RegisterServerResponse, Tool, ToolView, UnregisterServerRequest,
    UnregisterServerResponse, WatchCatalogRequest,
};

use super::edge::{Edge, change, withdrawal};
use super::listing::{self, PageCursor};
use super::{approve, bounded, register, render_catalog, state, watch};
use toolgate_access::audit::Effect;
use toolgate_access::auth::Caller;
use toolgate_app::plane::listing::ToolPage;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::method::Method;
use toolgate_core::role::{Role, Roles};
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::approval::Approved;
use toolgate_routing::catalog::outcome::OutcomeKind;
use toolgate_routing::catalog::registration::Registered;
use toolgate_store::{Committed, StoredTool};

/// Implementation of `CatalogService`.
pub(super) struct Catalogs {
    pub(super) edge: Edge,
}

#[tonic::async_trait]
impl CatalogService for Catalogs {
    async fn register_server(
        &self,
        call: Request<RegisterServerRequest>,
    ) -> Result<Response<RegisterServerResponse>, Status> {
        let edge = &self.edge;
        let plane = &self.edge.pipeline.plane;
        let work = |caller: Caller, tenant: TenantId, message: RegisterServerRequest, deadline| async move {
            // Compiling expressions takes a core for a while, so it runs outside the async threads.
            let parse = move || register::parse(message);
            let registration =
                tokio::task::spawn_blocking(parse).await.map_err(Error::internal)??;
            let of = registration.server.name.clone();
            let change = change(Method::RegisterServer, &caller, &tenant, of.as_str());
            let register = plane.register(&tenant, registration, Some(deadline));
            let registered = edge.pipeline.change(change, register, effect).await?;
            let answer = render_catalog::registered(&tenant, &registered);
            Ok(bounded::registered(answer, edge.pipeline.limits.now().max_message_bytes))
        };
        self.edge.call(Method::RegisterServer, call, work).await
    }

    async fn unregister_server(
        &self,
        call: Request<UnregisterServerRequest>,
    ) -> Result<Response<UnregisterServerResponse>, Status> {
        let edge = &self.edge;
        let plane = &self.edge.pipeline.plane;
        let work = |caller: Caller, tenant: TenantId, message: UnregisterServerRequest, _| async move {
            let server = ServerName::parse(&message.server)?;
            let change = withdrawal(Method::UnregisterServer, &caller, &tenant, server.as_str());
            let unregister = plane.unregister(&tenant, &server, &message.etag);
            let effect = |(committed, removed): &(Committed, u32)| Effect {
                revision: Some(committed.revision),
                removed: *removed as usize,
                ..Effect::default()
            };
            let (committed, removed_tools) =
                edge.pipeline.change(change, unregister, effect).await?;
            let catalog_revision = committed.revision;
            Ok(UnregisterServerResponse { catalog_revision, removed_tools })
        };
        self.edge.call(Method::UnregisterServer, call, work).await
    }

    async fn get_server(
        &self,
        call: Request<GetServerRequest>,
    ) -> Result<Response<GetServerResponse>, Status> {
        let plane = &self.edge.pipeline.plane;
        let work = |_: Caller, tenant: TenantId, message: GetServerRequest, _| async move {
            let server = ServerName::parse(&message.server)?;
            let stored = plane.catalog.server(&tenant, &server).await?;
            Ok(GetServerResponse { server: Some(render_catalog::server(&tenant, &stored)) })
        };
        self.edge.call(Method::GetServer, call, work).await
    }

    async fn list_servers(
        &self,
        call: Request<ListServersRequest>,
    ) -> Result<Response<ListServersResponse>, Status> {
        let plane = &self.edge.pipeline.plane;
        let work = |_: Caller, tenant: TenantId, message: ListServersRequest, _| async move {
            let size = listing::page_size(message.page_size)?;
            let after = listing::after_server(&message.page_token)?;
            let page = plane.catalog.servers(&tenant, after.as_deref(), size + 1).await?;
            let rows = page.iter().take(size as usize);
            let mut servers: Vec<_> = rows.map(|s| render_catalog::server(&tenant, s)).collect();
            let most = self.edge.pipeline.limits.now().max_message_bytes;
            servers.truncate(listing::within_bytes(&servers, most));
            let last = servers.last().filter(|_| page.len() > servers.len());
            let place = last.map(|server| PageCursor::Server { name: server.name.clone() });
            Ok(ListServersResponse { next_page_token: token(place.as_ref())?, servers })
        };
        self.edge.call(Method::ListServers, call, work).await
    }

    async fn list_tools(
        &self,
        call: Request<ListToolsRequest>,
    ) -> Result<Response<ListToolsResponse>, Status> {
        let work = |caller: Caller, tenant: TenantId, message: ListToolsRequest, _| async move {
            self.tools(&caller, tenant, message).await
        };
        self.edge.call(Method::ListTools, call, work).await
    }

    type WatchCatalogStream = watch::Answers;

    async fn watch_catalog(
        &self,
        request: Request<WatchCatalogRequest>,
    ) -> Result<Response<Self::WatchCatalogStream>, Status> {
        self.edge.open(Method::WatchCatalog, request, watch::open)
    }

    async fn approve_tools(
        &self,
        call: Request<ApproveToolsRequest>,
    ) -> Result<Response<ApproveToolsResponse>, Status> {
        let edge = &self.edge;
        let plane = &self.edge.pipeline.plane;
        let work = |caller: Caller, tenant: TenantId, message: ApproveToolsRequest, _| async move {
            let (server, approvals) = approve::parse(message)?;
            let change = change(Method::ApproveTools, &caller, &tenant, server.as_str());
            let approve = plane.approve(&tenant, &server, &approvals);
            let effect = |approved: &Approved| Effect {
                revision: Some(approved.revision),
                approved: approved.approved.len(),
                rejected: approved.refused.len(),
                ..Effect::default()
            };
            Ok(approve::render(edge.pipeline.change(change, approve, effect).await?))
        };
        self.edge.call(Method::ApproveTools, call, work).await
    }
}

impl Catalogs {
    async fn tools(
        &self,
        caller: &Caller,
        tenant: TenantId,
        message: ListToolsRequest,
    ) -> Result<ListToolsResponse, Error> {
        let filter = &message.server;
        let server = if filter.is_empty() { None } else { Some(ServerName::parse(filter)?) };
        let size = listing::page_size(message.page_size)?;
        let after = listing::after_tool(&message.page_token, filter)?;
        if message.as_agent.is_none() {
            // Only a catalog writer may list tools without `as_agent`. An agent sees only what its own state allows.
            let writers = Roles::of(&[Role::CatalogWriter]);
            let rpc = "CatalogService/ListTools without as_agent";
            self.edge.guard.authenticator().require(caller, writers, rpc)?;
        }
        let view = ToolView::try_from(message.view)
            .map_err(|_unknown| Error::field("view", "must be a value of ToolView"))?;
        let limits = self.edge.pipeline.limits.now();
        let agent = message.as_agent.map(|agent| state::parse(Some(agent), &limits, caller));
        let agent = agent.transpose()?;
        let page = ToolPage { server, after, size: size + 1 };
        let (mut tools, read) = match (view, agent) {
            (ToolView::Names, Some(agent)) => {
                let named = self.edge.pipeline.plane.list_names(&tenant, page, agent).await?;
                let tools: Vec<_> =
                    named.iter().map(|tool| render_catalog::named(&tenant, tool)).collect();
                let read = tools.len();
                (tools, read)
            }
            (view, agent) => self.whole(&tenant, page, agent, view).await?,
        };
        tools.truncate(size as usize);
        tools.truncate(listing::within_bytes(&tools, limits.max_message_bytes));
        let place = tools.last().filter(|_| tools.len() < read).map(|tool| PageCursor::Tool {
            of: filter.clone(),
            server: tool.server.clone(),
            name: tool.name.clone(),
        });
        Ok(ListToolsResponse { next_page_token: token(place.as_ref())?, tools })
    }

    /// Returns the tools of a page as they are stored, as far as they fit an answer, and the number that was read.
    async fn whole(
        &self,
        tenant: &TenantId,
        page: ToolPage,
        agent: Option<AgentState>,
        view: ToolView,
    ) -> Result<(Vec<Tool>, usize), Error> {
        let is_agents = agent.is_some();
        let size = page.size as usize;
        let mut rows = self.edge.pipeline.plane.list_tools(tenant, page, agent).await?;
        let read = rows.len();
        if view == ToolView::Names {
            let tools = rows.iter().map(|row| render_catalog::names_of(tenant, &row.record));
            return Ok((tools.collect(), read));
        }
        let lengths = rows.iter().map(|tool| tool.record.definition.len());
        let most = self.edge.pipeline.limits.now().max_message_bytes;
        rows.truncate(listing::fitting(lengths, most).min(size));
        Ok((self.render(tenant, rows, is_agents).await?, read))
    }

    async fn render(
        &self,
        tenant: &TenantId,
        page: Vec<StoredTool>,
        is_agents: bool,
    ) -> Result<Vec<Tool>, Error> {
        let mut servers = HashMap::new();
        let mut tools = Vec::with_capacity(page.len());
        for tool in page {
            if is_agents && !tool.record.status.is_shown() {
                tools.push(render_catalog::waiting(tenant, &tool.record));
                continue;
            }
            let name = tool.record.server.clone();
            if !servers.contains_key(&name) {
                let server = self.edge.pipeline.plane.catalog.server(tenant, &name).await?;
                servers.insert(name.clone(), server.record);
            }
            tools.extend(servers.get(&name).map(|s| render_catalog::tool(tenant, s, &tool)));
        }
        Ok(tools)
    }
}

/// Returns the effects of a registration as counts. A replayed answer counts no outcomes, because it changed nothing.
fn effect(registered: &Registered) -> Effect {
    let outcomes = registered.outcomes.iter().filter(|_| !registered.replayed);
    let count = |kind| outcomes.clone().filter(|outcome| outcome.kind == kind).count();
    Effect {
        revision: Some(registered.revision),
        accepted: count(OutcomeKind::Accepted),
        changed: count(OutcomeKind::Changed),
        removed: count(OutcomeKind::Removed),
        rejected: count(OutcomeKind::Rejected),
        quarantined: count(OutcomeKind::Quarantined),
        approved: 0,
    }
}

fn token(place: Option<&PageCursor>) -> Result<String, Error> {
    place.map_or_else(|| Ok(String::new()), PageCursor::token)
}
