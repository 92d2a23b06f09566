//! Short forms of registrations.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_core::identity::ServerName;
use toolgate_core::precondition::Precondition;
use toolgate_routing::catalog::check::ToolSettings;
use toolgate_routing::catalog::plan::Mode;
use toolgate_routing::catalog::registration::Registration;
use toolgate_store::ServerRecord;

/// One tool of a registration.
#[derive(Debug, Clone)]
pub struct ToolText {
    pub name: String,
    pub definition: Value,
    pub settings: ToolSettings,
}

/// Returns a tool that takes any arguments.
pub fn tool(name: &str, description: &str) -> ToolText {
    let definition =
        json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
    ToolText { name: name.to_owned(), definition, settings: ToolSettings::default() }
}

impl ToolText {
    pub fn schema(mut self, schema: Value) -> Self {
        self.definition["inputSchema"] = schema;
        self
    }

    pub fn scope(mut self, scope: &str) -> Self {
        self.settings.required_scopes.push(scope.to_owned());
        self
    }

    pub fn needs(mut self, precondition: Precondition) -> Self {
        self.settings.precondition = Some(precondition);
        self
    }

    /// Requires a milestone of this name.
    pub fn after(self, milestone: &str) -> Self {
        self.needs(Precondition::MilestoneReached(milestone.to_owned()))
    }

    pub fn always(mut self) -> Self {
        self.settings.always_load = true;
        self
    }
}

/// Returns a registration that replaces the server's tools by these.
pub fn server(name: &str, tools: Vec<ToolText>) -> Registration {
    let bodies: Vec<_> = tools.iter().map(|tool| &tool.definition).collect();
    let body = json!({ "tools": bodies }).to_string();
    let changed = tools.into_iter().filter(|tool| tool.settings != ToolSettings::default());
    let settings: HashMap<_, _> = changed.map(|tool| (tool.name, tool.settings)).collect();
    Registration {
        server: ServerRecord::new(ServerName::parse(name).expect("a server name")),
        body: body.into_bytes().into(),
        settings,
        mode: Mode::Replace,
        etag: String::new(),
        request: None,
        all_or_nothing: false,
    }
}
