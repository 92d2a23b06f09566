//! Answers of a face that shows tools of all servers.

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolgate_telemetry::serves_tool;

use super::pages::page;
use super::{Exposure, Face};
use crate::audit::Outcome;
use crate::caller::Caller;
use crate::calling::{self, Circumstances, error_result, text_result};
use crate::config::AlwaysOn;
use crate::definitions::{self, CALL, CALL_READ, DISCOVER, READ_RESULT};
use crate::gathered::{self, Kind};
use crate::lists::List;
use crate::raw::RawObject;
use crate::whole::Definitions;
use crate::{discovering, reading, whole};

impl Face {
    /// Answers a host that sees tools of all servers.
    pub(super) async fn answer(
        &self,
        method: &str,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        match method {
            "tools/list" if self.exposure == Exposure::All => {
                let form = Definitions::of_limit(self.result_limit(context));
                let caller = self.caller(context)?;
                let tools = whole::definitions(&self.gateway, &caller, form).await;
                let problem = |text| ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None);
                page("tools", tools.map_err(problem)?, &params)
            }
            "tools/list" => {
                let form = Definitions::beside_own(self.result_limit(context));
                let tools = self.tools(&self.caller(context)?, form).await;
                page("tools", List::of(&tools), &params)
            }
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
    ) -> Result<RawObject, ErrorData> {
        let caller = self.caller(context)?;
        if let Some(kind) = Kind::of(method) {
            let items = gathered::list(&self.gateway, &caller, kind).await;
            return page(kind.list(), List::of(&items), &params);
        }
        let Some(server) = gathered::take_server(&self.gateway, &caller, method, &mut params)
        else {
            if let Some(kind) = Kind::fetched_by(method) {
                let mut audited = self.gateway.audit().begin_fetch(&caller, kind, &params);
                audited.is_refused("UNKNOWN_SERVER");
                audited.ends(Outcome::Refused, 0).await;
            }
            let problem =
                "it names no prompt or resource of a server behind this gateway: list them first";
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None));
        };
        let mut result = self.fetch(&server, method, params, context).await?;
        if method == "resources/read" {
            gathered::rename_contents(&server, &mut result);
        }
        Ok(result)
    }

    /// Returns the gateway's own tools with all others where these are few, else with those of the always-on set that
    /// fit.
    async fn tools(&self, caller: &Caller, form: Definitions) -> Vec<String> {
        let own = definitions::definitions(&self.gateway.behind(&self.tenant));
        let mut tools: Vec<String> = own.iter().map(Value::to_string).collect();
        let always_on = self.gateway.always_on(&self.tenant);
        let beside = if self.gateway.loads_all(&self.tenant) {
            whole::definitions(&self.gateway, caller, form).await
        } else if always_on.is_empty() {
            return tools;
        } else {
            whole::named(&self.gateway, caller, always_on, form).await
        };
        match beside {
            Ok(beside) => tools.extend(self.fitting(&beside)),
            Err(problem) => tracing::warn!(problem, "the tools could not be listed"),
        }
        tools
    }

    /// Returns the tools of a list that fit into what a host may start with.
    fn fitting(&self, list: &List) -> Vec<String> {
        let list: Vec<&RawValue> = serde_json::from_slice(&list.text).unwrap_or_default();
        let mut left = self.gateway.start_left(&self.tenant);
        let is_chosen = self.gateway.config().gateway.always_on == AlwaysOn::Auto;
        let mut fitting = Vec::new();
        for tool in list {
            match left.checked_sub(definitions::tokens_of(tool.get())) {
                Some(rest) => {
                    left = rest;
                    fitting.push(tool.get().to_owned());
                }
                // Nobody has asked for it by its name.
                None if is_chosen => {}
                None => {
                    let tool = RawObject::parse(tool.get().to_owned()).unwrap_or_default();
                    let tool = tool.text("name").unwrap_or_default().into_owned();
                    tracing::warn!(tool, "an always-on tool does not fit gateway.start_tokens");
                }
            }
        }
        fitting
    }

    async fn call(
        &self,
        params: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<RawObject, ErrorData> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let empty = Map::new();
        let arguments = params.get("arguments").and_then(Value::as_object).unwrap_or(&empty);
        let is_always_on = self.gateway.always_on(&self.tenant).iter().any(|tool| tool == name);
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
            is_shown: is_always_on
                || self.exposure == Exposure::All
                || self.gateway.loads_all(&self.tenant),
        };
        let told = |answer: Result<String, String>| match answer {
            Ok(text) => text_result(&text),
            Err(problem) => error_result(&problem),
        };
        let own: &[&str] = match self.exposure {
            // Results are cut there too.
            Exposure::All => &[READ_RESULT],
            Exposure::Search | Exposure::Server(_) => &[DISCOVER, READ_RESULT, CALL, CALL_READ],
        };
        if !own.contains(&name) {
            let whole = whole::whole_name(&self.gateway, &caller, name).await;
            if whole.is_some() || self.has_tool(&caller, name) {
                serves_tool(name);
            }
            let tool = whole.as_deref().unwrap_or(name);
            let mut of = of(false);
            // The gateway's own tools run as no tasks.
            of.answers.extend(params.get("task").map(|task| ("task".to_owned(), task.clone())));
            return Ok(calling::call_directly(&self.gateway, of, tool, arguments).await);
        }
        serves_tool(name);
        Ok(match name {
            DISCOVER => {
                let is_counted = Self::is_counted(context);
                told(discovering::discover(&self.gateway, &caller, arguments, is_counted).await)
            }
            READ_RESULT => reading::read(&self.gateway, &caller, arguments)
                .unwrap_or_else(|problem| error_result(&problem)),
            CALL_READ => calling::call(&self.gateway, of(true), arguments).await,
            _ => calling::call(&self.gateway, of(false), arguments).await,
        })
    }

    /// Returns true if a tool of a server is shown under this name.
    fn has_tool(&self, caller: &Caller, shown: &str) -> bool {
        let named = shown.split_once("__");
        named.is_some_and(|(server, tool)| self.gateway.lets_in(caller, server, tool))
    }
}
