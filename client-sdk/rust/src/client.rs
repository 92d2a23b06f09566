//! The client's handle: connecting, and the channel that all calls share. The RPCs are in `router`,
//! `catalog`, `policy`, `memory`, `usage` and `health`.

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

/// A connection to one Toolgate service. Cloning is cheap and shares the connection; a broken connection is
/// made again by the next call.
#[derive(Debug, Clone)]
pub struct Client {
    channel: Channel,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoint: String,
    options: ClientOptions,
}

impl Client {
    /// Connects to `endpoint`, such as `http://127.0.0.1:7070`; `http://` may be left out.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when it is no address, [`Error::Unreachable`] when nothing listens there.
    pub async fn connect(endpoint: &str, options: ClientOptions) -> Result<Self, Error> {
        let target = parse(endpoint, options.connect_timeout)?;
        let channel = target.connect().await.map_err(|error| Error::Unreachable {
            endpoint: target.uri().to_string().trim_end_matches('/').to_owned(),
            cause: innermost(&error),
        })?;
        Ok(Self::over(channel, &target, options))
    }

    /// A client that connects with its first call.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when it is no address.
    pub fn lazy(endpoint: &str, options: ClientOptions) -> Result<Self, Error> {
        let target = parse(endpoint, options.connect_timeout)?;
        Ok(Self::over(target.connect_lazy(), &target, options))
    }

    /// The same connection with other options. The connect timeout stays as it was.
    #[must_use]
    pub fn with_options(&self, options: ClientOptions) -> Self {
        let endpoint = self.shared.endpoint.clone();
        Self { channel: self.channel.clone(), shared: Arc::new(Shared { endpoint, options }) }
    }

    /// The address that is called.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// The options in force.
    #[must_use]
    pub fn options(&self) -> &ClientOptions {
        &self.shared.options
    }

    fn over(channel: Channel, target: &Endpoint, options: ClientOptions) -> Self {
        let endpoint = target.uri().to_string().trim_end_matches('/').to_owned();
        Self { channel, shared: Arc::new(Shared { endpoint, options }) }
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) fn router(&self) -> RouterServiceClient<Channel> {
        RouterServiceClient::new(self.channel())
            .max_decoding_message_size(self.options().max_message_bytes)
    }

    pub(crate) fn catalog(&self) -> CatalogServiceClient<Channel> {
        CatalogServiceClient::new(self.channel())
            .max_decoding_message_size(self.options().max_message_bytes)
    }

    pub(crate) fn usage(&self) -> UsageServiceClient<Channel> {
        UsageServiceClient::new(self.channel())
            .max_decoding_message_size(self.options().max_message_bytes)
    }

    pub(crate) fn memory(&self) -> MemoryServiceClient<Channel> {
        MemoryServiceClient::new(self.channel())
            .max_decoding_message_size(self.options().max_message_bytes)
    }

    pub(crate) fn policies(&self) -> PolicyServiceClient<Channel> {
        PolicyServiceClient::new(self.channel())
            .max_decoding_message_size(self.options().max_message_bytes)
    }

    /// Puts the client's tenant where the request names none.
    pub(crate) fn fill_tenant(&self, tenant: &mut String) {
        if tenant.is_empty() {
            tenant.clone_from(&self.options().tenant);
        }
    }
}

/// The address, as every connection of this crate is made.
pub(crate) fn parse(endpoint: &str, connect_timeout: Duration) -> Result<Endpoint, Error> {
    let problem = |problem: String| Error::Endpoint { endpoint: endpoint.to_owned(), problem };
    let text = endpoint.trim();
    let address = match text.split_once("://") {
        None => format!("http://{text}"),
        Some(("http", _)) => text.to_owned(),
        Some(("https", _)) => return Err(problem("this version speaks no TLS".into())),
        Some((scheme, _)) => return Err(problem(format!("unknown scheme \"{scheme}\""))),
    };
    let target = Endpoint::from_shared(address).map_err(|error| problem(innermost(&error)))?;
    if target.uri().host().is_none_or(str::is_empty) {
        return Err(problem("it names no host".into()));
    }
    if target.uri().port_u16().is_none() {
        return Err(problem("it names no port".into()));
    }
    Ok(target.connect_timeout(connect_timeout).tcp_nodelay(true).keep_alive_while_idle(false))
}
