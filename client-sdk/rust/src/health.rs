//! The standard health check, `grpc.health.v1`.

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::call::Rpc;
use crate::client::Client;
use crate::error::Error;

/// Health of a service, as it reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Answering calls.
    Serving,
    /// Taking no calls, because it starts, drains or lacks a dependency.
    NotServing,
    /// The peer does not know the service.
    Unknown,
}

impl Client {
    /// Returns the health of one service, such as `toolgate.v1.RouterService`, or of all services together for `""`.
    ///
    /// # Errors
    /// The call failed; see [`Error`]. A service that the peer does not know is no error, but [`Health::Unknown`].
    pub async fn health(&self, service: &str) -> Result<Health, Error> {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = self
            .call(Rpc::read("Health.Check"), request, |request| {
                let mut service = HealthClient::new(self.wire());
                async move { service.check(request).await }
            })
            .await;
        match answer {
            Ok(answer) => Ok(match answer.status() {
                ServingStatus::Serving => Health::Serving,
                ServingStatus::NotServing => Health::NotServing,
                _ => Health::Unknown,
            }),
            Err(Error::Call(call)) if call.code == Code::NotFound => Ok(Health::Unknown),
            Err(error) => Err(error),
        }
    }
}
