//! Resources that a host names, and those that it follows.

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::Peer;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_upstream::Request;

use super::answers::protocol_error;
use super::{Exposure, Face};
use crate::caller::Caller;
use crate::followed::{Followed, Resource};
use crate::gateway::PLANE_DEADLINE;
use crate::host::Failure;
use crate::{following, gathered};

impl Face {
    /// Returns the resource that a host names; `None` if it names none of this face's servers.
    pub(super) fn resource(&self, shown: &str) -> Option<Resource> {
        let (server, uri) = match &self.exposure {
            Exposure::Server(server) => (server.clone(), shown.to_owned()),
            Exposure::Search | Exposure::All => {
                let (server, uri) = gathered::own_uri(shown)?;
                if !self.gateway.sees(&self.tenant, server) {
                    return None;
                }
                (server.to_owned(), uri)
            }
        };
        Some(Resource { server, uri, shown: shown.to_owned() })
    }

    /// Follows a resource for the host of this session.
    pub(super) fn follow(
        &self,
        resource: Resource,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut followed = self.followed.lock();
        let followed = followed.get_or_insert_with(|| {
            let (followed, updates) = Followed::new(&self.gateway);
            tokio::spawn(following::resources(peer, updates));
            followed
        });
        let refused = |problem| ErrorData::new(ErrorCode::INVALID_REQUEST, problem, None);
        followed.follow(resource).map_err(refused)
    }

    pub(super) fn may_follow(&self, resource: &Resource) -> bool {
        gathered::is_followable(&self.gateway, &resource.server)
    }

    /// Returns true if a list left a resource out, as far as was looked at.
    pub(super) fn is_withheld(&self, resource: &Resource) -> bool {
        gathered::is_withheld(&self.gateway, &resource.server, &resource.uri)
    }

    /// Returns a resource whose server tells of changes.
    pub(super) fn followable(&self, shown: &str, method: &str) -> Result<Resource, ErrorData> {
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
    pub(super) async fn subscribe_upstream(
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
            sent: None,
            process: None,
        };
        let deadline = Instant::now() + PLANE_DEADLINE;
        let told = fleet.request(server, request, deadline).await;
        let failed = |error| protocol_error(server, Failure::Server(error));
        told.map(|_empty| ()).map_err(failed)
    }
}
