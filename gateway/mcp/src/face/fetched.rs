//! Prompts and resources that hosts fetch by name: kept back like those that lists leave out, and audited.

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use super::Face;
use crate::audit::Outcome;
use crate::gathered::{self, Kind};
use crate::raw::RawObject;

impl Face {
    /// Sends a request of the host to a server. What a list left out is not fetched, and whatever is fetched is audited.
    pub(super) async fn fetch(
        &self,
        server: &str,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let Some(kind) = Kind::fetched_by(method) else {
            return self.send(server, method, params, context).await;
        };
        let caller = self.caller(context)?;
        let mut audited = self.gateway.audit().begin_fetch(&caller, kind, &params);
        audited.is_at(server);
        let name = params.get(kind.key()).and_then(Value::as_str).unwrap_or_default();
        gathered::look_at(&self.gateway, &caller, kind, server).await;
        if let Some(reason) = gathered::withheld(&self.gateway, &caller, kind, server, name) {
            audited.is_refused("QUARANTINED");
            audited.ends(Outcome::Refused, 0).await;
            let problem = format!("the gateway keeps this {} back: {reason}", kind.noun());
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None));
        }
        let answer = self.send(server, method, params, context).await;
        match &answer {
            Ok(result) => audited.ends(Outcome::Done, result.size()).await,
            Err(_failure) => audited.ends(Outcome::Failed, 0).await,
        }
        answer
    }
}
