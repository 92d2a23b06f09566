//! `RouterService`.

use tonic::{Request, Response, Status};
use toolgate_proto::v1::router_service_server::RouterService;
use toolgate_proto::v1::{
    BatchGetToolSchemasRequest, BatchGetToolSchemasResponse, GateRequest, GateResponse,
    GetSummaryPoolRequest, GetSummaryPoolResponse, RouteRequest, RouteResponse, SearchToolsRequest,
    SearchToolsResponse,
};

use super::edge::{Edge, tenant};
use super::fields::Fields;
use super::{PRINCIPAL, render, request, state};
use crate::config::RouterConfig;
use crate::error::Error;
use crate::gate::handle::Holder;
use crate::router::lookups::GateQuery;

const NAMES_MAX: usize = 100;

/// The router's face.
pub(super) struct Routing {
    pub(super) edge: Edge,
    pub(super) defaults: RouterConfig,
}

#[tonic::async_trait]
impl RouterService for Routing {
    async fn route(&self, call: Request<RouteRequest>) -> Result<Response<RouteResponse>, Status> {
        let edge = &self.edge;
        edge.call("RouterService/Route", call, |message, deadline| async move {
            let tenant = tenant(&message.tenant)?;
            let query = request::route(message, &edge.limits, &self.defaults)?;
            let holder = Holder { tenant: &tenant, principal: PRINCIPAL };
            let answer = edge.plane.router.route(holder, query, Some(deadline)).await?;
            for (stage, micros) in &answer.timings {
                edge.metrics.stage(stage, *micros);
            }
            edge.metrics.tokens(answer.account.full_catalog, answer.account.phase2);
            Ok(render::route(&tenant, &answer))
        })
        .await
    }

    async fn gate(&self, call: Request<GateRequest>) -> Result<Response<GateResponse>, Status> {
        let edge = &self.edge;
        edge.call("RouterService/Gate", call, |message, _| async move {
            let tenant = tenant(&message.tenant)?;
            let calls = request::calls(&message.calls)?;
            request::require_handle(&message.active_set_handle)?;
            let state = state::parse(message.state, &edge.limits)?;
            let holder = Holder { tenant: &tenant, principal: PRINCIPAL };
            let query = GateQuery {
                handle: message.active_set_handle,
                calls,
                state,
                min_revision: message.min_revision,
            };
            let gated = edge.plane.router.gate(holder, query).await?;
            let answers = message.calls.iter().zip(&gated.verdicts);
            let verdicts = answers.map(|(wire, verdict)| {
                let code =
                    verdict.as_ref().map_or_else(|refused| refused.code.name(), |_| "ALLOWED");
                edge.metrics.decision(code);
                render::verdict(&gated.snapshot, &wire.call_id, verdict)
            });
            let (verdicts, catalog_revision) = (verdicts.collect(), gated.snapshot.revision);
            Ok(GateResponse { verdicts, catalog_revision })
        })
        .await
    }

    async fn search_tools(
        &self,
        _: Request<SearchToolsRequest>,
    ) -> Result<Response<SearchToolsResponse>, Status> {
        Err(self.edge.unserved("RouterService/SearchTools"))
    }

    async fn get_summary_pool(
        &self,
        call: Request<GetSummaryPoolRequest>,
    ) -> Result<Response<GetSummaryPoolResponse>, Status> {
        let edge = &self.edge;
        edge.call("RouterService/GetSummaryPool", call, |message, _| async move {
            let tenant = tenant(&message.tenant)?;
            let state = state::parse(message.state, &edge.limits)?;
            let holder = Holder { tenant: &tenant, principal: PRINCIPAL };
            let router = &edge.plane.router;
            let (snapshot, delta) =
                router.summary_pool(holder, &state, message.since_revision).await?;
            Ok(GetSummaryPoolResponse { pool: Some(render::pool(&snapshot, &delta)) })
        })
        .await
    }

    async fn batch_get_tool_schemas(
        &self,
        call: Request<BatchGetToolSchemasRequest>,
    ) -> Result<Response<BatchGetToolSchemasResponse>, Status> {
        let edge = &self.edge;
        edge.call("RouterService/BatchGetToolSchemas", call, |message, _| async move {
            let tenant = tenant(&message.tenant)?;
            check_names(&message.names)?;
            let state = state::parse(message.state, &edge.limits)?;
            let holder = Holder { tenant: &tenant, principal: PRINCIPAL };
            let (names, handle) = (&message.names, &message.active_set_handle);
            let found = edge.plane.router.schemas(holder, names, &state, handle).await?;
            Ok(render::schemas(&tenant, &found))
        })
        .await
    }
}

fn check_names(names: &[String]) -> Result<(), Error> {
    let mut fields = Fields::default();
    let right = (1..=NAMES_MAX).contains(&names.len());
    fields.require(right, "names", "must be 1 to 100 names");
    fields.require(names.iter().all(|name| !name.is_empty()), "names", "must not be empty");
    fields.finish()
}
