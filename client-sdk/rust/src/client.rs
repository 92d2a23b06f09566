//! The client: connecting, and the channel that all calls share. The RPCs are in `router`, `catalog`, `watch`,
//! `policy`, `memory`, `usage` and `health`.

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

/// Default address of a service.
pub const DEFAULT_TARGET: &str = "127.0.0.1:7070";

/// A connection to one Toolgate service. Cloning is cheap and shares the connection. If it breaks, the next call
/// connects again. It closes when the last clone is dropped.
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
    /// [`Error::Endpoint`] if `target` is not an address, [`Error::Options`] if the options don't fit it,
    /// [`Error::Unreachable`] if nothing listens there.
    pub async fn connect(target: &str, options: ClientOptions) -> Result<Self, Error> {
        let endpoint = checked(target, &options)?;
        let channel = endpoint.connect().await.map_err(|error| Error::Unreachable {
            endpoint: address(&endpoint),
            cause: innermost(&error),
        })?;
        Ok(Self::over(channel, &endpoint, options))
    }

    /// Creates a client that connects with its first call. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Endpoint`] if `target` is not an address, [`Error::Options`] if the options don't fit it.
    pub fn lazy(target: &str, options: ClientOptions) -> Result<Self, Error> {
        let endpoint = checked(target, &options)?;
        Ok(Self::over(endpoint.connect_lazy(), &endpoint, options))
    }

    /// Returns a client with other options on the same connection. The options that the connection was made with do not
    /// change: the connect timeout, TLS and the credentials.
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

    /// Returns a client with another deadline on the same connection, for example for one call:
    /// `client.with_deadline(minute).register_server(request)`.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// Returns the address of the service.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// Returns the options of this client. [`Client::deadline`] may differ from the deadline in them.
    #[must_use]
    pub fn options(&self) -> &ClientOptions {
        &self.shared.options
    }

    /// Returns the longest time that a call may take, including its retries.
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

    /// Sets the client's tenant in a request that has none.
    pub(crate) fn fill_tenant(&self, tenant: &mut String) {
        if tenant.is_empty() {
            tenant.clone_from(&self.options().tenant);
        }
    }
}
