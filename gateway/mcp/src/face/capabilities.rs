//! What a face says that it can do.

use rmcp::model::{
    InitializeResult, JsonObject, ProtocolVersion, ServerCapabilities, TASKS_EXTENSION_ID,
};
use serde_json::{Value, json};

use super::{Exposure, Face};
use crate::gathered;
use crate::placed::TASKS_MARK;
use crate::tasks::{self, older};

impl Face {
    /// Returns the answer to a handshake of 2025-11-25 with the tasks of servers of that revision, if there are any.
    pub(super) fn with_older_tasks(&self, mut answer: InitializeResult) -> InitializeResult {
        let offers = |server: &str| older::are_offered(&self.gateway, server);
        let is_offered = match &self.exposure {
            Exposure::Server(server) => offers(server),
            Exposure::Search | Exposure::All => self.servers().iter().any(|server| offers(server)),
        };
        if answer.protocol_version == ProtocolVersion::V_2025_11_25 && is_offered {
            let experimental = answer.capabilities.experimental.get_or_insert_default();
            experimental.insert(TASKS_MARK.to_owned(), JsonObject::new());
        }
        answer
    }

    fn servers(&self) -> Vec<String> {
        let servers = self.gateway.servers_of(&self.tenant);
        servers.into_iter().map(|status| status.name).collect()
    }

    pub(super) fn capabilities(&self) -> ServerCapabilities {
        let Exposure::Server(server) = &self.exposure else {
            let is_offered =
                |capability| gathered::is_offered(&self.gateway, &self.tenant, capability);
            let mut offered = json!({"tools": {"listChanged": true}});
            for capability in ["prompts", "resources"].into_iter().filter(|one| is_offered(one)) {
                offered[capability] = json!({"listChanged": true});
            }
            for capability in ["completions", "logging"].into_iter().filter(|one| is_offered(one)) {
                offered[capability] = json!({});
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
}
