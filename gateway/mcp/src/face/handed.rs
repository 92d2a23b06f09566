//! Answers of a face that hands one server through.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use toolgate_telemetry::serves_tool;

use super::Face;
use super::answers::protocol_error;
use super::pages::page;
use crate::audit::Outcome;
use crate::caller::Caller;
use crate::calling::{self, error_result};
use crate::gathered::{self, Kind};
use crate::host::{Failure, LOST};
use crate::lists::{self, List};
use crate::raw::RawObject;

/// Time for a server to be there when its own face is asked.
const SERVER_WAIT: Duration = Duration::from_secs(60);

impl Face {
    /// Hands a request through to its server.
    pub(super) async fn relay(
        &self,
        server: String,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let caller = self.caller(context)?;
        if method == "tools/list" {
            return page("tools", self.listed(&server, &caller).await?, &params);
        }
        if method == "tools/call" {
            self.gateway.await_registered(&caller.tenant, &server, SERVER_WAIT).await;
            return self.relay_call(&server, &caller, params, context).await;
        }
        let is_first = params.get("cursor").is_none_or(Value::is_null);
        let mut result = self.fetch(&server, method, params, context).await?;
        if let Some(kind) = Kind::of(method) {
            gathered::vet_page(&self.gateway, &caller, kind, &server, &mut result, is_first).await;
        }
        Ok(result)
    }

    /// Hands a call through to its server, if Gate lets it.
    async fn relay_call(
        &self,
        server: &str,
        caller: &Caller,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let mut audited = self.gateway.audit().begin(caller, params.get("arguments"));
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        audited.is_of(server, name, None);
        let judged =
            calling::judge_for_server(&self.gateway, caller, server, &params, &mut audited);
        let model_name = match judged.await {
            Ok(model_name) => model_name,
            Err(refusal) => {
                let result = calling::refusal(&self.gateway, caller, &refusal);
                audited.ends(Outcome::Refused, result.size()).await;
                return Ok(result);
            }
        };
        if self.gateway.tool_for(caller, server, name).is_some() {
            serves_tool(name);
        }
        let counts = self.gateway.counts(caller);
        counts.calls.fetch_add(1, Ordering::Relaxed);
        let answer = self.host(context, caller).request(server, "tools/call", params).await;
        if let Some(model_name) = model_name
            && answer.as_ref().map_or(true, calling::is_end)
        {
            let is_success = answer.as_ref().is_ok_and(|result| !result.is_true("isError"));
            self.gateway.has_called(caller, &model_name, is_success);
        }
        if let Err(failure) = &answer {
            self.gateway.count_failure(caller, failure);
        }
        let result = match answer {
            Ok(result) => result,
            Err(Failure::Lost) => error_result(LOST),
            Err(Failure::NotConnected(told)) => error_result(&told),
            Err(failure) => {
                audited.ends(Outcome::Failed, 0).await;
                return Err(protocol_error(server, failure));
            }
        };
        audited.ends(calling::outcome_of(&result), result.size()).await;
        Ok(result)
    }

    /// Returns the text of the list of the server's tools as it lists them, without those that wait for approval or that a policy
    /// hides.
    async fn listed(&self, server: &str, caller: &Caller) -> Result<List, ErrorData> {
        let missing = |problem: String| ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None);
        self.gateway.await_listing(server, SERVER_WAIT).await;
        self.gateway.await_registered(&caller.tenant, server, SERVER_WAIT).await;
        let known = self.gateway.known(server);
        let known = known.ok_or_else(|| missing(format!("{server} is not there yet")))?;
        let visible = self.gateway.visible(Some(server), caller).await.map_err(missing)?;
        let visible = visible.iter().filter(|tool| !tool.quarantined);
        let visible: HashSet<&str> = visible.map(|tool| tool.name.as_str()).collect();
        let shown = known.in_order.iter().filter(|tool| visible.contains(tool.name.as_str()));
        let shown: Vec<_> = shown.collect();
        let texts = shown.iter().flat_map(|tool| [&*tool.name, &*tool.definition]);
        let key = lists::key(["server", &*caller.tenant, server].into_iter().chain(texts));
        if let Some(list) = self.gateway.lists().get(&key) {
            return Ok(list);
        }
        let tools: Vec<&str> = shown.iter().filter_map(|tool| known.definition(tool)).collect();
        let list = List::of(&tools);
        self.gateway.lists().keep(key, list.clone());
        Ok(list)
    }
}
