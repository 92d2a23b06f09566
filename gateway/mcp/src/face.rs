//! The gateway as an MCP server: what it says of itself, and who answers the requests of hosts.
#![expect(deprecated, reason = "both eras: logging is deprecated in the newer")]

mod answers;
mod capabilities;
mod fetched;
mod handed;
mod pages;
mod resources;
mod shown;
mod traced;

use std::sync::Arc;

use axum::http::request::Parts;
use parking_lot::Mutex;
use rmcp::model::{
    CustomRequest, CustomResult, ErrorCode, ErrorData, Extensions, Implementation, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use toolgate_upstream::ServerMessage;

use crate::caller::Caller;
use crate::changing::FaceChanges;
use crate::config::Exposed;
use crate::followed::{FOLLOWED_MAX, Followed};
use crate::gateway::Gateway;
use crate::hearing::{self, Hearing};
use crate::host::{self, Host};
use crate::passing::SessionLevel;
use crate::placed::{AwaitedResult, LineResults};
use crate::raw::RawObject;
use crate::tasks::{self, Answered};
use crate::{definitions, following, placed, relayed};
use answers::{finish, protocol_error};
pub(crate) use traced::Traced;

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

impl Exposure {
    /// Returns a name of the face that no other face has.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Search => "search".to_owned(),
            Self::All => "all".to_owned(),
            Self::Server(server) => format!("server {server}"),
        }
    }
}

/// Most bytes of text of a result, as a host's URL asks for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultLimit(pub(crate) usize);

/// Mark of a request by a person who looks at what a model would find. Its searches are in no number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uncounted;

/// Face of the gateway to one host.
#[derive(Clone)]
pub(crate) struct Face {
    pub(crate) gateway: Gateway,
    pub(crate) exposure: Exposure,
    tenant: Arc<str>,
    /// Caller of every request; `None` if each request brings its own.
    host: Option<Caller>,
    level: SessionLevel,
    /// Messages of servers since the handshake of this session, until somebody hears them.
    messages: Arc<Mutex<Option<broadcast::Receiver<ServerMessage>>>>,
    /// Resources that the host of this session follows.
    followed: Arc<Mutex<Option<Followed>>>,
    /// Results for a host on standard streams.
    lines: Option<Arc<LineResults>>,
}

impl ServerHandler for Face {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.capabilities())
            .with_server_info(Implementation::new("toolgate", env!("CARGO_PKG_VERSION")));
        info.instructions = match &self.exposure {
            Exposure::Search => Some(definitions::instructions(&self.gateway.behind(&self.tenant))),
            Exposure::All => None,
            Exposure::Server(server) => {
                let known = self.gateway.known(server);
                known.and_then(|known| known.instructions.clone())
            }
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
        // Servers of the other faces hear of it with the next request of the host.
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
        let mut accepted = requested.clone();
        let resources = requested.resource_subscriptions.clone().map(|mut uris| {
            uris.retain(|uri| {
                let found = self.resource(uri);
                found.is_some_and(|found| self.may_follow(&found) && !self.is_withheld(&found))
            });
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
        following::subscription(&subscription, self.changes(), updates).await;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let resource = self.followable(&request.uri, "resources/subscribe")?;
        Box::pin(self.refuse_withheld(&caller, &resource.server, &resource.uri)).await?;
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

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        let Ok(caller) = self.caller_of(&context.extensions) else { return };
        let client = context.peer.peer_info().map(|info| info.client_info.clone());
        let host = host::name_of(&context.extensions, client);
        self.gateway.fleet().roots_changed(&caller.turn_name(), &host);
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Ok(caller) = self.caller_of(&context.extensions) {
            let client = context.peer.peer_info().map(|info| info.client_info.clone());
            let hearing = Hearing {
                gateway: self.gateway.clone(),
                exposure: self.exposure.clone(),
                host: host::name_of(&context.extensions, client),
                caller,
                level: Arc::clone(&self.level),
            };
            let since = self.messages.lock().take();
            let messages = since.unwrap_or_else(|| self.gateway.fleet().messages());
            tokio::spawn(hearing::session(context.peer.clone(), hearing, messages));
        }
        tokio::spawn(following::session(context.peer, self.changes()));
    }
}

impl Face {
    /// Answers a request that the gateway hands through, by the name that it has with the protocol library.
    async fn result(
        &self,
        request: CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let not_found =
            || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
        let method = relayed::method(&request.method).ok_or_else(not_found)?;
        let params = match request.params {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        let is_modern = host::is_modern(context);
        let cancelled = context.ct.clone();
        let answer = async {
            match &self.exposure {
                exposure if tasks::METHODS.contains(&method) => {
                    let only = match exposure {
                        Exposure::Server(server) => Some(server.as_str()),
                        Exposure::Search | Exposure::All => None,
                    };
                    self.task(only, method, params, context).await
                }
                Exposure::Search | Exposure::All => self.answer(method, params, context).await,
                Exposure::Server(server) => {
                    self.relay(server.clone(), method, params, context).await
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
        Ok(result)
    }

    /// Answers a request about tasks, which are those of `only` where the face has one server.
    async fn task(
        &self,
        only: Option<&str>,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let caller = self.caller(context)?;
        let host = self.host(context, &caller);
        let answer = Box::pin(tasks::request(&host, only, method, params)).await;
        let answered = answer.map_err(|(server, failure)| protocol_error(&server, failure))?;
        let Answered { server, mut result } = answered;
        tasks::look_at(&self.gateway, &caller, &server, &result).await;
        if only.is_none() {
            let limit = self.result_limit(context);
            let results = self.gateway.results();
            tasks::cut(&mut result, limit, &server, &caller.owner(), results);
        }
        if only.is_none() && self.gateway.marks_results(&server) {
            tasks::mark(&mut result, &server);
        }
        Ok(result)
    }

    /// Returns a result as the protocol library takes it: its text is set into the response as it is.
    fn placed(
        &self,
        result: RawObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let awaited = parts.and_then(|parts| parts.extensions.get::<AwaitedResult>());
        let taken = match (awaited, &self.lines) {
            (Some(awaited), _) => awaited.take(result),
            (None, Some(lines)) => lines.take(result),
            (None, None) => Err(result),
        };
        let value = taken.or_else(|result| placed::as_value(&result));
        value.map(CustomResult)
    }

    /// Creates the face of a tenant, whose requests bring their [`Caller`] in the extensions of their HTTP request.
    pub(crate) fn of_tenant(gateway: Gateway, exposure: Exposure, tenant: Arc<str>) -> Self {
        let level = SessionLevel::default();
        let messages = Arc::default();
        let followed = Arc::default();
        Self { gateway, exposure, tenant, host: None, level, messages, followed, lines: None }
    }

    /// Creates the face of one host on standard streams, which is the caller of every request.
    pub(crate) fn of_host(
        gateway: Gateway,
        exposure: Exposure,
        caller: Caller,
        lines: Arc<LineResults>,
    ) -> Self {
        let face = Self::of_tenant(gateway, exposure, Arc::clone(&caller.tenant));
        Self { host: Some(caller), lines: Some(lines), ..face }
    }

    /// Returns the caller of a request.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        self.caller_of(&context.extensions)
    }

    /// Returns the caller of a message.
    fn caller_of(&self, extensions: &Extensions) -> Result<Caller, ErrorData> {
        let parts = extensions.get::<Parts>();
        let brought = parts.and_then(|parts| parts.extensions.get::<Caller>());
        let caller = brought.or(self.host.as_ref()).filter(|caller| caller.tenant == self.tenant);
        // Whoever let the request in has said who calls.
        let unknown = || ErrorData::new(ErrorCode::INTERNAL_ERROR, "nobody says who calls", None);
        caller.cloned().ok_or_else(unknown)
    }

    /// Returns the face of another session.
    pub(crate) fn for_session(&self) -> Self {
        let level = SessionLevel::default();
        Self { level, messages: Arc::default(), followed: Arc::default(), ..self.clone() }
    }

    /// Follows the lists of this face from now on.
    fn changes(&self) -> FaceChanges {
        FaceChanges::new(&self.gateway, &self.exposure, &self.tenant)
    }

    /// Sends a request of the host to a server.
    async fn send(
        &self,
        server: &str,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let caller = self.caller(context)?;
        let result = self.host(context, &caller).request(server, method, params).await;
        result.map_err(|failure| protocol_error(server, failure))
    }

    fn host<'a>(&'a self, context: &'a RequestContext<RoleServer>, caller: &'a Caller) -> Host<'a> {
        let principal = caller.turn_name();
        Host {
            gateway: &self.gateway,
            context,
            caller,
            principal,
            level: *self.level.lock(),
            sees_servers: self.shows_several(),
            process: None,
        }
    }

    /// Keeps what servers say from now on for the session whose handshake this is.
    pub(crate) fn listens(&self) {
        *self.messages.lock() = Some(self.gateway.fleet().messages());
    }

    /// Returns true if things of several servers are behind this face.
    fn shows_several(&self) -> bool {
        !matches!(self.exposure, Exposure::Server(_))
    }

    /// Returns true if a search is a model's.
    fn is_counted(context: &RequestContext<RoleServer>) -> bool {
        let parts = context.extensions.get::<Parts>();
        parts.is_none_or(|parts| parts.extensions.get::<Uncounted>().is_none())
    }

    /// Returns the most bytes of text of a result: as the host's URL says, or the configuration.
    fn result_limit(&self, context: &RequestContext<RoleServer>) -> usize {
        let parts = context.extensions.get::<Parts>();
        let asked = parts.and_then(|parts| parts.extensions.get::<ResultLimit>());
        asked.map_or(self.gateway.config().gateway.result_limit, |ResultLimit(limit)| *limit)
    }
}
