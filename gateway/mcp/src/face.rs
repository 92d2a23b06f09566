//! The gateway as an MCP server: what it says of itself, and its answers to the requests of hosts.
#![expect(deprecated, reason = "both eras: logging is deprecated in the newer")]

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use parking_lot::Mutex;
use rmcp::model::{
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    TASKS_EXTENSION_ID, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;
use toolgate_client::v1;
use toolgate_upstream::{Change, Request, RequestError, ServerState};

use crate::audit::Outcome;
use crate::caller::Caller;
use crate::calling::{self, Circumstances, error_result, text_result};
use crate::config::Exposed;
use crate::definitions::{self, CALL, CALL_READ, DISCOVER, READ_RESULT};
use crate::followed::{FOLLOWED_MAX, Followed, Resource};
use crate::gateway::{Gateway, PLANE_DEADLINE};
use crate::gathered::{self, Kind};
use crate::host::{self, Failure, Host, LOST};
use crate::passing::SessionLevel;
use crate::{discovering, following, reading, relayed, tasks, whole};

/// Time for which a host may keep a list, in milliseconds.
const LIST_TTL_MS: u64 = 300_000;

/// Time for a server to be there when its own face is asked.
const SERVER_WAIT: Duration = Duration::from_secs(60);

/// Tools that a face shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Exposure {
    /// Tools that search and call.
    Search,
    /// Every tool.
    All,
    /// One server, as it is.
    Server(String),
}

impl From<Exposed> for Exposure {
    fn from(exposed: Exposed) -> Self {
        match exposed {
            Exposed::Search => Self::Search,
            Exposed::All => Self::All,
        }
    }
}

/// Most bytes of text of a result, as a host's URL asks for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultLimit(pub(crate) usize);

/// Face of the gateway to one host.
#[derive(Clone)]
pub(crate) struct Face {
    pub(crate) gateway: Gateway,
    pub(crate) exposure: Exposure,
    tenant: Arc<str>,
    /// Caller of every request; `None` if each request brings its own.
    host: Option<Caller>,
    level: SessionLevel,
    /// Resources that the host of this session follows.
    followed: Arc<Mutex<Option<Followed>>>,
}

impl ServerHandler for Face {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.capabilities())
            .with_server_info(Implementation::new("toolgate", env!("CARGO_PKG_VERSION")));
        info.instructions = match &self.exposure {
            Exposure::Search => Some(definitions::instructions(&self.servers())),
            Exposure::All => None,
            Exposure::Server(server) => self
                .gateway
                .fleet()
                .listing(server)
                .and_then(|listing| listing.instructions.clone()),
        };
        info
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        const METHOD: &str = "logging/setLevel";
        if host::is_modern(&context) || self.capabilities().logging.is_none() {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, METHOD, None));
        }
        *self.level.lock() = Some(request.level);
        let Exposure::Server(server) = &self.exposure else { return Ok(()) };
        if self.gateway.fleet().listing(server).is_some_and(|listing| listing.is_modern()) {
            return Ok(());
        }
        // The connection is shared: the server tells all, and each session picks its own.
        let mut params = Map::new();
        params.insert("level".to_owned(), Value::from("debug"));
        self.send(server, METHOD, params, &context).await.map(|_empty| ())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = match self.exposure {
            Exposure::Server(_) => requested.clone(),
            Exposure::Search | Exposure::All => SubscriptionFilter::new(),
        };
        let resources = requested.resource_subscriptions.clone().map(|mut uris| {
            uris.retain(|uri| self.resource(uri).is_some_and(|found| self.may_follow(&found)));
            uris.truncate(FOLLOWED_MAX);
            uris
        });
        accepted.resource_subscriptions = resources.filter(|uris| !uris.is_empty());
        (accepted != SubscriptionFilter::new()).then_some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let (followed, updates) = Followed::new(&self.gateway);
        for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
            if let Some(resource) = self.resource(uri)
                && let Err(problem) = followed.follow(resource)
            {
                return Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None));
            }
        }
        following::subscription(&subscription, self.told(), updates).await;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let resource = self.followable(&request.uri, "resources/subscribe")?;
        let is_followed = self.gateway.fleet().is_watched(&resource.server, &resource.uri);
        self.follow(resource.clone(), context.peer)?;
        if is_followed {
            return Ok(());
        }
        let told = self.subscribe_upstream(&resource, &caller).await;
        if told.is_err()
            && let Some(followed) = self.followed.lock().as_ref()
        {
            followed.leave(&resource);
        }
        told
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let resource = self.followable(&request.uri, "resources/unsubscribe")?;
        if let Some(followed) = self.followed.lock().as_ref() {
            followed.leave(&resource);
        }
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(told) = self.told() {
            tokio::spawn(following::session(context.peer, told));
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let not_found =
            || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
        let method = relayed::method(&request.method).ok_or_else(not_found)?;
        let params = match request.params {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        let is_modern = host::is_modern(&context);
        let cancelled = context.ct.clone();
        let answer = async {
            match &self.exposure {
                exposure if tasks::METHODS.contains(&method) => {
                    let only = match exposure {
                        Exposure::Server(server) => Some(server.as_str()),
                        Exposure::Search | Exposure::All => None,
                    };
                    let caller = self.caller(&context)?;
                    let host = self.host(&context, &caller);
                    let answer = tasks::request(&host, only, method, params).await;
                    answer.map_err(|(server, failure)| protocol_error(&server, failure))
                }
                Exposure::Search | Exposure::All => self.answer(method, params, &context).await,
                Exposure::Server(server) => {
                    self.relay(server.clone(), method, params, &context).await
                }
            }
        };
        let mut result = tokio::select! {
            answer = answer => answer?,
            () = cancelled.cancelled() => {
                return Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, "cancelled", None));
            }
        };
        let has_authentication = !self.gateway.config().gateway.auth.methods.is_empty();
        let scope = if has_authentication { "private" } else { "public" };
        finish(&mut result, method, is_modern, scope);
        Ok(CustomResult(result))
    }
}

impl Face {
    /// Creates the face of a tenant, whose requests bring their [`Caller`] in the extensions of their HTTP request.
    pub(crate) fn of_tenant(gateway: Gateway, exposure: Exposure, tenant: Arc<str>) -> Self {
        let level = SessionLevel::default();
        Self { gateway, exposure, tenant, host: None, level, followed: Arc::default() }
    }

    /// Creates the face of one host, which is the caller of every request.
    pub(crate) fn of_host(gateway: Gateway, exposure: Exposure, caller: Caller) -> Self {
        let tenant = Arc::clone(&caller.tenant);
        Self { host: Some(caller), ..Self::of_tenant(gateway, exposure, tenant) }
    }

    /// Returns the caller of a request.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let brought = parts.and_then(|parts| parts.extensions.get::<Caller>());
        let caller = brought.or(self.host.as_ref()).filter(|caller| caller.tenant == self.tenant);
        // Whoever let the request in has said who calls.
        let unknown = || ErrorData::new(ErrorCode::INTERNAL_ERROR, "nobody says who calls", None);
        caller.cloned().ok_or_else(unknown)
    }

    /// Returns the face of another session.
    pub(crate) fn for_session(&self) -> Self {
        let level = SessionLevel::default();
        Self { level, followed: Arc::default(), ..self.clone() }
    }

    /// Returns the resource that a host names; `None` if it names none of this face's servers.
    fn resource(&self, shown: &str) -> Option<Resource> {
        let (server, uri) = match &self.exposure {
            Exposure::Server(server) => (server.clone(), shown.to_owned()),
            Exposure::Search | Exposure::All => {
                let (server, uri) = shown.split_once('+')?;
                if !self.gateway.sees(&self.tenant, server) {
                    return None;
                }
                (server.to_owned(), uri.to_owned())
            }
        };
        Some(Resource { server, uri, shown: shown.to_owned() })
    }

    /// Follows a resource for the host of this session.
    fn follow(&self, resource: Resource, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let mut followed = self.followed.lock();
        let followed = followed.get_or_insert_with(|| {
            let (followed, updates) = Followed::new(&self.gateway);
            tokio::spawn(following::resources(peer, updates));
            followed
        });
        let refused = |problem| ErrorData::new(ErrorCode::INVALID_REQUEST, problem, None);
        followed.follow(resource).map_err(refused)
    }

    fn may_follow(&self, resource: &Resource) -> bool {
        gathered::is_followable(&self.gateway, &resource.server)
    }

    /// Returns a resource whose server tells of changes.
    fn followable(&self, shown: &str, method: &str) -> Result<Resource, ErrorData> {
        let unknown = || {
            let problem = "it names no resource of a server behind this gateway: list them first";
            ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None)
        };
        let resource = self.resource(shown).ok_or_else(unknown)?;
        if !self.may_follow(&resource) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None));
        }
        Ok(resource)
    }

    /// Asks a server of an older revision to tell of a resource that nobody follows yet, so that its refusal reaches the host.
    async fn subscribe_upstream(
        &self,
        resource: &Resource,
        caller: &Caller,
    ) -> Result<(), ErrorData> {
        let Resource { server, uri, .. } = resource;
        let fleet = self.gateway.fleet();
        let is_modern = fleet.listing(server).is_some_and(|listing| listing.is_modern());
        if is_modern {
            return Ok(());
        }
        let mut params = Map::new();
        params.insert("uri".to_owned(), Value::from(uri.as_str()));
        let request = Request {
            method: "resources/subscribe".to_owned(),
            params,
            principal: caller.turn_name(),
            progress: None,
            asker: None,
            requester: caller.requester(),
        };
        let deadline = Instant::now() + PLANE_DEADLINE;
        let told = fleet.request(server, request, deadline).await;
        let failed = |error| protocol_error(server, Failure::Server(error));
        told.map(|_empty| ()).map_err(failed)
    }

    /// Returns the receiver of changes of the server's lists.
    fn told(&self) -> Option<broadcast::Receiver<Change>> {
        match &self.exposure {
            Exposure::Search | Exposure::All => None,
            Exposure::Server(server) => self.gateway.fleet().told(server),
        }
    }

    fn servers(&self) -> Vec<String> {
        let servers = self.gateway.servers_of(&self.tenant);
        servers.into_iter().map(|status| status.name).collect()
    }

    fn capabilities(&self) -> ServerCapabilities {
        let Exposure::Server(server) = &self.exposure else {
            let mut offered = json!({"tools": {}});
            for capability in ["prompts", "resources", "completions"] {
                if gathered::is_offered(&self.gateway, &self.tenant, capability) {
                    offered[capability] = json!({});
                }
            }
            let mut servers = self.servers().into_iter();
            if servers.any(|server| gathered::is_followable(&self.gateway, &server)) {
                offered["resources"]["subscribe"] = Value::from(true);
            }
            let mut servers = self.servers().into_iter();
            if servers.any(|server| tasks::are_offered(&self.gateway, &server)) {
                offered["extensions"] = json!({TASKS_EXTENSION_ID: {}});
            }
            return serde_json::from_value(offered)
                .unwrap_or_else(|_| ServerCapabilities::builder().enable_tools().build());
        };
        let listing = self.gateway.fleet().listing(server);
        let mut told = listing.map_or(Value::Null, |listing| listing.capabilities.clone());
        if let Some(told) = told.as_object_mut() {
            told.retain(|name, _| {
                let is_relayed = ["tools", "resources", "prompts", "completions", "logging"];
                is_relayed.contains(&name.as_str())
            });
            if tasks::are_offered(&self.gateway, server) {
                told.insert("extensions".to_owned(), json!({TASKS_EXTENSION_ID: {}}));
            }
        }
        serde_json::from_value(told)
            .unwrap_or_else(|_| ServerCapabilities::builder().enable_tools().build())
    }

    /// Answers a host that sees tools of all servers.
    async fn answer(
        &self,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        match method {
            "tools/list" if self.exposure == Exposure::All => {
                let tools = whole::definitions(&self.gateway, &self.caller(context)?).await;
                let problem = |text| ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None);
                Ok(json!({"tools": tools.map_err(problem)?}))
            }
            "tools/list" => Ok(json!({"tools": self.tools(&self.caller(context)?).await})),
            "tools/call" => self.call(params, context).await,
            _ => self.gather(method, params, context).await,
        }
    }

    /// Answers requests for prompts and resources of all servers.
    async fn gather(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller(context)?;
        if let Some(kind) = Kind::of(method) {
            let items = gathered::list(&self.gateway, &caller, kind).await;
            return Ok(json!({kind.list(): items}));
        }
        let Some(server) = gathered::take_server(&self.gateway, &caller, method, &mut params)
        else {
            let problem =
                "it names no prompt or resource of a server behind this gateway: list them first";
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None));
        };
        let mut result = self.send(&server, method, params, context).await?;
        if method == "resources/read" {
            gathered::rename_contents(&server, &mut result);
        }
        Ok(result)
    }

    /// Returns the gateway's own tools with all others where these are few, else with those of the always-on set that
    /// fit.
    async fn tools(&self, caller: &Caller) -> Vec<Value> {
        let mut tools = definitions::definitions(&self.servers());
        if self.gateway.loads_all() {
            match whole::definitions(&self.gateway, caller).await {
                Ok(whole) => tools.extend(whole),
                Err(problem) => tracing::warn!(problem, "the tools could not be listed"),
            }
        } else {
            tools.extend(self.always_on(caller).await);
        }
        tools
    }

    async fn always_on(&self, caller: &Caller) -> Vec<Value> {
        let settings = &self.gateway.config().gateway;
        if settings.always_on.is_empty() {
            return Vec::new();
        }
        let request = v1::SearchToolsRequest {
            query: format!("select:{}", settings.always_on.join(",")),
            state: Some(caller.state(&self.gateway)),
            detail: v1::Detail::Schemas as i32,
            ..Default::default()
        };
        let found = match self.gateway.plane_for(caller).search_tools(request).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the always-on tools could not be looked up");
                return Vec::new();
            }
        };
        let mut left = settings.start_tokens;
        let mut shown = Vec::new();
        for tool in found.tools {
            let tokens = usize::try_from(tool.schema_tokens).unwrap_or(usize::MAX);
            if tokens > left {
                tracing::warn!(
                    tool = tool.model_name,
                    "an always-on tool does not fit gateway.start_tokens"
                );
                continue;
            }
            left -= tokens;
            if let Some(definition) = always_on_definition(&tool) {
                shown.push(definition);
            }
        }
        shown
    }

    async fn call(
        &self,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let empty = Map::new();
        let arguments = params.get("arguments").and_then(Value::as_object).unwrap_or(&empty);
        let is_always_on = self.gateway.config().gateway.always_on.iter().any(|tool| tool == name);
        let caller = self.caller(context)?;
        let answers = ["inputResponses", "requestState"]
            .into_iter()
            .filter_map(|field| params.get(field).map(|value| (field.to_owned(), value.clone())));
        let answers: Map<String, Value> = answers.collect();
        let of = |is_read_only| Circumstances {
            caller: &caller,
            host: self.host(context, &caller),
            result_limit: self.result_limit(context),
            answers: answers.clone(),
            is_read_only,
            is_shown: is_always_on || self.exposure == Exposure::All || self.gateway.loads_all(),
        };
        let told = |answer: Result<String, String>| match answer {
            Ok(text) => text_result(&text),
            Err(problem) => error_result(&problem),
        };
        let is_own = [DISCOVER, READ_RESULT, CALL, CALL_READ].contains(&name);
        if self.exposure == Exposure::All || !is_own {
            let whole = whole::whole_name(&self.gateway, &caller, name).await;
            let tool = whole.as_deref().unwrap_or(name);
            return Ok(calling::call_directly(&self.gateway, of(false), tool, arguments).await);
        }
        Ok(match name {
            DISCOVER => told(discovering::discover(&self.gateway, &caller, arguments).await),
            READ_RESULT => told(reading::read(&self.gateway, &caller, arguments)),
            CALL_READ => calling::call(&self.gateway, of(true), arguments).await,
            _ => calling::call(&self.gateway, of(false), arguments).await,
        })
    }

    /// Hands a request through to its server.
    async fn relay(
        &self,
        server: String,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller(context)?;
        if method == "tools/list" {
            return self.listed(&server, &caller).await;
        }
        if method == "tools/call" {
            self.gateway.await_registered(&caller.tenant, &server, SERVER_WAIT).await;
            return self.relay_call(&server, &caller, params, context).await;
        }
        self.send(&server, method, params, context).await
    }

    /// Hands a call through to its server, if Gate lets it.
    async fn relay_call(
        &self,
        server: &str,
        caller: &Caller,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let mut audited = self.gateway.audit().begin(caller, params.get("arguments"));
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        audited.is_of(server, name, None);
        let refusal = calling::refusal_of(&self.gateway, caller, server, &params, &mut audited);
        if let Some(refusal) = refusal.await {
            let result = error_result(&refusal);
            audited.ends(Outcome::Refused, &result).await;
            return Ok(result);
        }
        let answer = self.host(context, caller).request(server, "tools/call", params).await;
        let result = match answer {
            Ok(result) => result,
            Err(Failure::Lost) => error_result(LOST),
            Err(Failure::NotConnected(told)) => error_result(&told),
            Err(failure) => {
                audited.ends(Outcome::Failed, &Value::Null).await;
                return Err(protocol_error(server, failure));
            }
        };
        audited.ends(calling::outcome_of(&result), &result).await;
        Ok(result)
    }

    /// Sends a request of the host to a server.
    async fn send(
        &self,
        server: &str,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let caller = self.caller(context)?;
        let result = self.host(context, &caller).request(server, method, params).await;
        result.map_err(|failure| protocol_error(server, failure))
    }

    fn host<'a>(&'a self, context: &'a RequestContext<RoleServer>, caller: &'a Caller) -> Host<'a> {
        let principal = caller.turn_name();
        Host { gateway: &self.gateway, context, caller, principal, level: *self.level.lock() }
    }

    /// Returns the most bytes of text of a result: as the host's URL says, or the configuration.
    fn result_limit(&self, context: &RequestContext<RoleServer>) -> usize {
        let parts = context.extensions.get::<Parts>();
        let asked = parts.and_then(|parts| parts.extensions.get::<ResultLimit>());
        asked.map_or(self.gateway.config().gateway.result_limit, |ResultLimit(limit)| *limit)
    }

    /// Returns the server's tools as it lists them, without those that wait for approval or that a policy hides.
    async fn listed(&self, server: &str, caller: &Caller) -> Result<Value, ErrorData> {
        let missing = |problem: String| ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None);
        let listing = self.gateway.await_listing(server, SERVER_WAIT).await;
        let listing = listing.ok_or_else(|| missing(format!("{server} is not there yet")))?;
        self.gateway.await_registered(&caller.tenant, server, SERVER_WAIT).await;
        let visible = self.gateway.visible(server, caller).await.map_err(missing)?;
        let mut tools = Vec::with_capacity(listing.tools.len());
        for raw in &listing.tools {
            let tool: Value = serde_json::from_str(raw.get()).map_err(|error| {
                missing(format!("{server} lists a tool that is no JSON: {error}"))
            })?;
            let name = tool["name"].as_str().unwrap_or_default();
            if self.gateway.tool(server, name).is_some() && visible.contains(name) {
                tools.push(tool);
            }
        }
        Ok(json!({"tools": tools}))
    }
}

/// Returns the definition of a tool of the always-on set, under the name that the model calls it by.
fn always_on_definition(tool: &v1::ActiveTool) -> Option<Value> {
    let mut definition = Map::new();
    let name = discovering::shown_name(&tool.model_name);
    definition.insert("name".to_owned(), Value::from(name));
    definition.insert("description".to_owned(), Value::from(tool.description.as_str()));
    let schema = serde_json::from_str(&tool.input_schema_json).ok()?;
    definition.insert("inputSchema".to_owned(), schema);
    if let Ok(annotations) = serde_json::from_str(&tool.annotations_json) {
        definition.insert("annotations".to_owned(), annotations);
    }
    Some(Value::Object(definition))
}

/// Sets what a revision of MCP wants in results, and takes out what an older one does not know.
fn finish(result: &mut Value, method: &str, is_modern: bool, scope: &str) {
    let Some(result) = result.as_object_mut() else { return };
    if is_modern {
        result.entry("resultType").or_insert_with(|| Value::from("complete"));
        if method.ends_with("/list") || method == "resources/read" {
            result.entry("ttlMs").or_insert_with(|| Value::from(LIST_TTL_MS));
            let told = result.entry("cacheScope").or_insert_with(|| Value::from(scope));
            // What a server gives everybody is not for everybody here.
            if scope == "private" {
                *told = Value::from(scope);
            }
        }
    } else {
        for field in ["resultType", "ttlMs", "cacheScope"] {
            result.remove(field);
        }
    }
}

fn protocol_error(server: &str, failure: Failure) -> ErrorData {
    let error = match failure {
        Failure::Server(error) => error,
        Failure::Refused(error) => return error,
        Failure::Lost => return ErrorData::new(ErrorCode::INVALID_PARAMS, LOST, None),
        Failure::NotConnected(told) => {
            return ErrorData::new(ErrorCode::INVALID_REQUEST, told, None);
        }
    };
    match error {
        RequestError::Server { code, message, data } => {
            let code = i32::try_from(code).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
            ErrorData::new(code, message, data)
        }
        RequestError::Unavailable { state: ServerState::NeedsLogin, .. } => {
            ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("{server} asks for a login"), None)
        }
        error @ RequestError::Unavailable { may_have_run: true, .. } => {
            let problem = format!("{server}: {error}. The request may have had effects.");
            ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None)
        }
        other => ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("{server}: {other}"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_fields_of_their_revision() {
        let mut result = json!({"tools": []});
        finish(&mut result, "tools/list", true, "public");
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["ttlMs"], LIST_TTL_MS);
        finish(&mut result, "tools/list", false, "public");
        assert_eq!(result, json!({"tools": []}));
        let mut asks = json!({"resultType": "input_required"});
        finish(&mut asks, "tools/call", true, "public");
        assert_eq!(asks, json!({"resultType": "input_required"}));
        let mut read = json!({"contents": [], "cacheScope": "public"});
        finish(&mut read, "resources/read", true, "private");
        assert_eq!(read["cacheScope"], "private");
    }
}
