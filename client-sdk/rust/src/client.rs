//! The client's handle: connecting, and the channel that all calls share. The RPCs are in `router`,
//! `catalog`, `watch`, `policy`, `memory`, `usage` and `health`.

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use toolgate_proto::v1::catalog_service_client::CatalogServiceClient;
use toolgate_proto::v1::memory_service_client::MemoryServiceClient;
use toolgate_proto::v1::policy_service_client::PolicyServiceClient;
use toolgate_proto::v1::router_service_client::RouterServiceClient;
use toolgate_proto::v1::usage_service_client::UsageServiceClient;

use crate::error::{Error, innermost};
use crate::options::ClientOptions;
use crate::target::{address, checked};
use crate::throttle::Throttle;
use crate::wire::Wire;

/// Where a service listens unless it was told otherwise.
pub const DEFAULT_TARGET: &str = "127.0.0.1:7070";

/// A connection to one Toolgate service. Cloning is cheap and shares the connection; a broken connection is
/// made again by the next call, and the last clone to be dropped closes it.
#[derive(Debug, Clone)]
pub struct Client {
    channel: Channel,
    shared: Arc<Shared>,
    deadline: Duration,
}

#[derive(Debug)]
struct Shared {
    endpoint: String,
    options: ClientOptions,
    throttle: Arc<Throttle>,
}

impl Client {
    /// Connects to `target`: `host:port` and `http://host:port`, or `https://host:port` for TLS.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when it is no address, [`Error::Options`] when the options don't go with it,
    /// [`Error::Unreachable`] when nothing listens there.
    pub async fn connect(target: &str, options: ClientOptions) -> Result<Self, Error> {
        let endpoint = checked(target, &options)?;
        let channel = endpoint.connect().await.map_err(|error| Error::Unreachable {
            endpoint: address(&endpoint),
            cause: innermost(&error),
        })?;
        Ok(Self::over(channel, &endpoint, options))
    }

    /// A client that connects with its first call. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when `target` is no address, [`Error::Options`] when the options don't go with it.
    pub fn lazy(target: &str, options: ClientOptions) -> Result<Self, Error> {
        let endpoint = checked(target, &options)?;
        Ok(Self::over(endpoint.connect_lazy(), &endpoint, options))
    }

    /// The same connection with other options. What the connection was made with stays as it was: the connect
    /// timeout, TLS and the credentials.
    #[must_use]
    pub fn with_options(&self, options: ClientOptions) -> Self {
        let made_with = self.options();
        let options = ClientOptions {
            connect_timeout: made_with.connect_timeout,
            tls: made_with.tls.clone(),
            credentials: made_with.credentials.clone(),
            allow_insecure_credentials: made_with.allow_insecure_credentials,
            ..options
        };
        let deadline = options.deadline;
        let endpoint = self.shared.endpoint.clone();
        let throttle = self.shared.throttle.clone();
        let shared = Arc::new(Shared { endpoint, options, throttle });
        Self { channel: self.channel.clone(), shared, deadline }
    }

    /// The same client with another deadline, such as for one call:
    /// `client.with_deadline(minute).register_server(request)`.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// The address that is called.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// The options in force, but for [`Client::deadline`].
    #[must_use]
    pub fn options(&self) -> &ClientOptions {
        &self.shared.options
    }

    /// The most that a call may take, its retries included.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    fn over(channel: Channel, endpoint: &Endpoint, options: ClientOptions) -> Self {
        let deadline = options.deadline;
        let throttle = Arc::new(Throttle::new());
        let shared = Arc::new(Shared { endpoint: address(endpoint), options, throttle });
        Self { channel, shared, deadline }
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire(self.channel.clone())
    }

    pub(crate) fn throttle(&self) -> &Throttle {
        &self.shared.throttle
    }

    pub(crate) fn router(&self) -> RouterServiceClient<Wire> {
        RouterServiceClient::new(self.wire())
            .max_decoding_message_size(self.options().max_answer_bytes)
    }

    pub(crate) fn catalog(&self) -> CatalogServiceClient<Wire> {
        CatalogServiceClient::new(self.wire())
            .max_decoding_message_size(self.options().max_answer_bytes)
    }

    pub(crate) fn usage(&self) -> UsageServiceClient<Wire> {
        UsageServiceClient::new(self.wire())
            .max_decoding_message_size(self.options().max_answer_bytes)
    }

    pub(crate) fn memory(&self) -> MemoryServiceClient<Wire> {
        MemoryServiceClient::new(self.wire())
            .max_decoding_message_size(self.options().max_answer_bytes)
    }

    pub(crate) fn policies(&self) -> PolicyServiceClient<Wire> {
        PolicyServiceClient::new(self.wire())
            .max_decoding_message_size(self.options().max_answer_bytes)
    }

    /// Puts the client's tenant where the request names none.
    pub(crate) fn fill_tenant(&self, tenant: &mut String) {
        if tenant.is_empty() {
            tenant.clone_from(&self.options().tenant);
        }
    }
}
