//! `RouterService`.

use std::sync::Arc;
use std::time::Instant;

use tonic::{Request, Response, Status};
use toolgate_proto::v1::router_service_server::RouterService;
use toolgate_proto::v1::{
    BatchGetToolSchemasRequest, BatchGetToolSchemasResponse, GateRequest, GateResponse,
    GetSummaryPoolRequest, GetSummaryPoolResponse, RenderOptions, RouteRequest, RouteResponse,
    SearchToolsRequest, SearchToolsResponse,
};

use super::conversation::Conversation;
use super::edge::Edge;
use super::request::RouteInput;
use super::strategy::{Completed, PromptRequest, Routed};
use super::tool_format::{Format, rendered};
use super::{bounded, render, request, state};
use toolgate_config::RouterConfig;
use toolgate_core::deferral::Mode;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::method::Method;
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::{Evidence, GateQuery};
use toolgate_routing::router::query::RouteQuery;
use toolgate_routing::router::route::Answer;
use toolgate_routing::router::summary_pool::PoolQuery;
use toolgate_routing::shard::tool::Tool;

/// Implementation of `RouterService`.
pub(super) struct Routing {
    pub(super) edge: Edge,
    pub(super) defaults: RouterConfig,
}

impl Routing {
    /// Routes, and measures how long it took.
    async fn routed(
        &self,
        holder: Holder<'_>,
        query: RouteQuery,
        deadline: Instant,
    ) -> Result<Answer, Error> {
        let pipeline = &self.edge.pipeline;
        let answer = pipeline.plane.router.route(holder, query, Some(deadline)).await?;
        pipeline.metrics.stages(&answer.timings);
        for degraded in &answer.degraded {
            pipeline.metrics.degraded(degraded.name());
        }
        Ok(answer)
    }

    /// Counts an answer that is sent.
    fn count(&self, tenant: &TenantId, answer: &Answer, conversation: &Conversation) {
        let pipeline = &self.edge.pipeline;
        let account = &answer.account;
        pipeline.metrics.tokens(account.full_catalog, account.phase1, account.phase2);
        pipeline.plane.router.count(tenant, answer);
        self.count_outcomes(tenant, conversation);
    }

    /// Returns the rendering that a request asks for. While deferral is switched off, it marks no tool as deferred.
    fn format(&self, render: Option<&RenderOptions>, detail: i32) -> Result<Option<Format>, Error> {
        let format = Format::from_request(render, detail)?;
        let is_switched_off = self.edge.pipeline.plane.router.is_deferral_switched_off();
        Ok(if is_switched_off { format.map(Format::undeferred) } else { format })
    }

    /// Counts what became of refused calls, once for each answer.
    fn count_outcomes(&self, tenant: &TenantId, conversation: &Conversation) {
        if let Some(amounts) = conversation.amounts() {
            self.edge.pipeline.plane.usage.count(tenant, &amounts);
        }
    }

    /// Answers Route with the whole request to a model. If that would hide tools from the model, they are routed once
    /// more, all of them.
    async fn prompt(
        &self,
        holder: Holder<'_>,
        input: RouteInput,
        prompt: PromptRequest,
        deadline: Instant,
        message_max: usize,
    ) -> Result<RouteResponse, Error> {
        let router = &self.edge.pipeline.plane.router;
        let RouteInput { mut query, conversation } = input;
        let prompt = prompt.for_operator(|model| router.denies_native(model));
        let prompt = Arc::new(prompt.behind_system(query.options.system_tokens));
        query.options.prices = prompt.prices();
        query.options.beside_tokens = prompt.beside_tokens();
        query.options.listing_tokens = prompt.listing_tokens();
        query.options.lists_summaries = prompt.lists_summaries();
        let history_tokens = &mut query.options.history_tokens;
        *history_tokens = history_tokens.or_else(|| prompt.history_tokens());
        let mut conversation = conversation.counted(router, holder.tenant).await?;
        let mut is_whole = prompt.needs_everything();
        if is_whole {
            query.options.deferral.mode = Some(Mode::Off);
        }
        loop {
            let answer = self.routed(holder, query.clone(), deadline).await?;
            let wire = render::route(holder.tenant, &answer, &conversation);
            let wire = bounded::route(wire, message_max);
            let state = query.state.clone();
            let routed = Routed { wire, answer, is_whole };
            match Arc::clone(&prompt).complete(routed, state, message_max).await? {
                Some(Completed { mut wire, mut answer, sent, defined }) => {
                    router.carry(holder, &mut answer, defined.iter().map(String::as_str))?;
                    wire.active_set_handle.clone_from(&answer.handle);
                    wire.servers = render::servers(&answer);
                    conversation.beside.own_tools_tokens = sent.own_tools;
                    let beside = conversation.beside;
                    answer.account = answer.account.of_request(sent.search, sent.tools, beside);
                    wire.accounting = Some(render::accounting(&answer.account, &conversation));
                    self.count(holder.tenant, &answer, &conversation);
                    return Ok(wire);
                }
                None if is_whole => {
                    return Err(Error::internal("a request hides tools that were all routed"));
                }
                None => {
                    is_whole = true;
                    query.options.deferral.whole_is_cheaper = true;
                }
            }
        }
    }
}

#[tonic::async_trait]
impl RouterService for Routing {
    async fn route(&self, call: Request<RouteRequest>) -> Result<Response<RouteResponse>, Status> {
        let edge = &self.edge;
        edge.call(Method::Route, call, |caller, tenant, message, deadline| async move {
            let limits = edge.pipeline.limits.now();
            let detail = message.options.as_ref().map_or(0, |options| options.detail);
            let format = self.format(message.render.as_ref(), detail)?;
            let prompt = PromptRequest::from_request(&message, &limits)?;
            let input = request::route(message, &limits, &self.defaults, &caller)?;
            let holder = Holder { tenant: &tenant, principal: caller.principal() };
            let message_max = limits.max_message_bytes;
            if let Some(prompt) = prompt {
                return self.prompt(holder, input, prompt, deadline, message_max).await;
            }
            let RouteInput { query, conversation } = input;
            let answer = self.routed(holder, query, deadline).await?;
            let conversation = conversation.counted(&edge.pipeline.plane.router, &tenant).await?;
            self.count(&tenant, &answer, &conversation);
            let wire = render::route(&tenant, &answer, &conversation);
            let wire = bounded::route(wire, message_max);
            Ok(rendered(wire, format, message_max))
        })
        .await
    }

    async fn gate(&self, call: Request<GateRequest>) -> Result<Response<GateResponse>, Status> {
        let edge = &self.edge;
        edge.call(Method::Gate, call, |caller, tenant, message, deadline| async move {
            let mut calls = request::calls(&message.calls)?;
            let intent_handle = message.active_set_handle.clone();
            let evidence = request::evidence(message.evidence, message.active_set_handle)?;
            let goes_by_tags = !matches!(evidence, Evidence::Handle(_));
            let state = state::parse(message.state, &edge.pipeline.limits.now(), &caller)?;
            let holder = Holder { tenant: &tenant, principal: caller.principal() };
            let query = GateQuery {
                evidence,
                intent_handle,
                calls: calls.iter_mut().map(|read| std::mem::take(&mut read.call)).collect(),
                state,
                min_revision: message.min_revision,
            };
            let gated = edge.pipeline.plane.gate.judge(holder, query, Some(deadline)).await?;
            let asked = message.calls.iter().zip(&calls);
            let verdicts = asked.zip(&gated.verdicts).map(|((wire, read), verdict)| {
                let code =
                    verdict.as_ref().map_or_else(|refused| refused.code.name(), |_| "ALLOWED");
                edge.pipeline.metrics.decision(code);
                let mut wire = render::verdict(&gated.snapshot, &wire.call_id, verdict);
                if goes_by_tags && let Some(slot) = verdict.as_ref().err().and_then(|v| v.slot) {
                    let tool = gated.snapshot.tool(slot);
                    wire.shown_tag = edge.pipeline.plane.gate.shown_tag(holder, tool);
                    wire.input_schema_json = tool.definition.sent_schema().to_owned();
                }
                read.complete(wire)
            });
            let verdicts = verdicts.collect();
            let catalog_revision = gated.snapshot.revision;
            let answer = GateResponse { verdicts, catalog_revision };
            Ok(bounded::gate(answer, edge.pipeline.limits.now().max_message_bytes))
        })
        .await
    }

    async fn search_tools(
        &self,
        call: Request<SearchToolsRequest>,
    ) -> Result<Response<SearchToolsResponse>, Status> {
        let edge = &self.edge;
        edge.call(Method::SearchTools, call, |caller, tenant, message, deadline| async move {
            let limits = edge.pipeline.limits.now();
            let format = self.format(message.render.as_ref(), message.detail)?;
            PromptRequest::refuse(message.render.as_ref())?;
            let query = request::search(message, &limits, &self.defaults, &caller)?;
            let holder = Holder { tenant: &tenant, principal: caller.principal() };
            let answer = edge.pipeline.plane.router.search(holder, query, Some(deadline)).await?;
            let tag = |tool: &Tool| edge.pipeline.plane.gate.shown_tag(holder, tool);
            let answer = render::search(&tenant, &answer, tag);
            let answer = bounded::search(answer, limits.max_message_bytes);
            Ok(rendered(answer, format, limits.max_message_bytes))
        })
        .await
    }

    async fn get_summary_pool(
        &self,
        call: Request<GetSummaryPoolRequest>,
    ) -> Result<Response<GetSummaryPoolResponse>, Status> {
        let edge = &self.edge;
        edge.call(Method::GetSummaryPool, call, |caller, tenant, message, _| async move {
            let state = state::parse(message.state, &edge.pipeline.limits.now(), &caller)?;
            let holder = Holder { tenant: &tenant, principal: caller.principal() };
            let router = &edge.pipeline.plane.router;
            let since = message.since_revision;
            let names_only = message.names_only;
            let query = PoolQuery { state, since, names_only, render: message.render };
            let (snapshot, delta) = router.summary_pool(holder, query).await?;
            Ok(GetSummaryPoolResponse { pool: Some(render::pool(&snapshot, &delta)) })
        })
        .await
    }

    async fn batch_get_tool_schemas(
        &self,
        call: Request<BatchGetToolSchemasRequest>,
    ) -> Result<Response<BatchGetToolSchemasResponse>, Status> {
        let edge = &self.edge;
        edge.call(Method::BatchGetToolSchemas, call, |caller, tenant, message, _| async move {
            let limits = edge.pipeline.limits.now();
            let format = self.format(message.render.as_ref(), message.detail)?;
            PromptRequest::refuse(message.render.as_ref())?;
            let query = request::schemas(message, &limits, &caller)?;
            let holder = Holder { tenant: &tenant, principal: caller.principal() };
            let found = edge.pipeline.plane.router.schemas(holder, &query).await?;
            let answer = render::schemas(&tenant, &found);
            let answer = bounded::schemas(answer, limits.max_message_bytes);
            Ok(rendered(answer, format, limits.max_message_bytes))
        })
        .await
    }
}
