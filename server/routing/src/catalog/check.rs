//! Checks of one tool of a registration, and the fields derived from it for storage. A tool that fails is rejected with
//! the field at fault; the other tools are kept.

use std::cell::Cell;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::definition::{Definition, PartError};
use super::json_text;
use super::summary::{SUMMARY_TOKENS_MAX, summarise};
use toolgate_config::LimitsConfig;
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_core::precondition::Precondition;
use toolgate_core::schema::WeighedSchema;
use toolgate_core::tokens;
use toolgate_store::{ToolRecord, ToolStatus};

/// Settings that the registrant gives for one tool, beyond its MCP definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSettings {
    /// Summary that replaces the derived one. Empty keeps the derived summary.
    pub summary: String,
    /// Words that users say when they mean the tool.
    pub search_hint: String,
    /// Condition that must hold before the tool may be shown or called.
    pub precondition: Option<Precondition>,
    /// Scopes that the tool requires.
    pub required_scopes: Vec<String>,
    /// True if the tool is always part of the active set.
    pub always_load: bool,
    /// True if the tool is never deferred.
    pub critical: bool,
}

/// Tool that was rejected and not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Name of the tool, as far as it could be read.
    pub name: String,
    /// Field at fault, such as `tools[3].inputSchema`.
    pub field: String,
    /// Explanation of the mistake and of the expected input.
    pub problem: String,
}

/// Checker for the tools of one server.
pub struct ToolCheck<'a> {
    /// Server that owns the tools.
    pub server: &'a ServerName,
    /// Settings of tools by MCP name.
    pub settings: &'a HashMap<String, ToolSettings>,
    /// Limits on sizes and nesting of the input.
    pub limits: &'a LimitsConfig,
    /// True if the MCP server is trusted. Only a trusted server may mark its own tools as always loaded.
    pub is_trusted: bool,
    /// Budget for compiling the schemas of all tools.
    pub work: Work,
}

/// Units of about 100 ns that compiling the schemas of one registration may take. Enough for 80 of the heaviest
/// schemas, or for thousands of ordinary ones.
const UNITS_MAX: usize = 40_000_000;

/// Remaining budget for compiling schemas, in units of about 100 ns.
#[derive(Debug)]
pub struct Work(Cell<usize>);

impl Default for Work {
    fn default() -> Self {
        Self(Cell::new(UNITS_MAX))
    }
}

impl Work {
    fn spend(&self, units: usize) -> Result<(), String> {
        let left = self.0.get().checked_sub(units).ok_or_else(|| {
            format!(
                "compiling the schemas of this registration takes more than {UNITS_MAX} units: register \
                 fewer tools at a time, with mode merge"
            )
        })?;
        self.0.set(left);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
}

impl ToolCheck<'_> {
    /// Checks the tool at `index` of the body.
    ///
    /// # Errors
    /// The rejection of the tool, if a check fails.
    pub fn check(&self, index: usize, text: &str) -> Result<ToolRecord, Rejection> {
        let mut name = String::new();
        self.record(text, &mut name).map_err(|error| Rejection {
            name,
            field: join(&format!("tools[{index}]"), error.part),
            problem: error.problem,
        })
    }

    fn record(&self, text: &str, shown: &mut String) -> Result<ToolRecord, PartError> {
        self.check_text(text)?;
        *shown = name_of(text)?;
        let name = ToolName::parse(shown).map_err(|e| wrong("name", e.to_string()))?;
        let definition = Definition::parse(text)?;
        self.compile(definition.input_schema()).map_err(|e| wrong("inputSchema", e))?;
        let none = ToolSettings::default();
        let settings = self.settings.get(name.as_str()).unwrap_or(&none);
        let summary = summary_of(&name, &definition, settings)?;
        let id = ToolId { server: self.server.clone(), name };
        let model_name = id.model_name();
        Ok(ToolRecord {
            hash: definition.hash()?,
            schema_tokens: tokens::count(&definition.prompt_form(&model_name)),
            summary_tokens: tokens::count(&pool_line(&model_name, &summary)),
            always_load: settings.always_load || (self.is_trusted && definition.always_load()),
            critical: settings.critical,
            search_hint: settings.search_hint.clone(),
            precondition: settings.precondition.clone(),
            required_scopes: settings.required_scopes.clone(),
            definition: text.to_owned(),
            server: id.server,
            name: id.name,
            model_name,
            summary,
            status: ToolStatus::Active,
        })
    }

    /// Compiles a schema to find its mistakes. Once the budget is used up, the schema is weighed but not compiled.
    fn compile(&self, schema: &str) -> Result<(), String> {
        let weighed = WeighedSchema::of(schema)?;
        self.work.spend(weighed.compile_units())?;
        weighed.compile().map(drop)
    }

    fn check_text(&self, text: &str) -> Result<(), PartError> {
        let bytes = text.len();
        let maximum = self.limits.max_schema_bytes;
        if bytes > maximum {
            let problem =
                format!("{bytes} bytes are more than the {maximum} of limits.max_schema_size");
            return Err(wrong("", problem));
        }
        json_text::check_shape(text, self.limits.max_schema_nesting)
            .map_err(|e| wrong("", e.to_string()))
    }
}

/// Returns a tool's line of the summary pool in the prompt. Line breaks in a registered summary become spaces, so that
/// it can't begin a line of its own.
#[must_use]
pub fn pool_line(model_name: &str, summary: &str) -> String {
    let words: Vec<&str> = summary.split_whitespace().collect();
    format!("{model_name}: {}\n", words.join(" "))
}

fn name_of(text: &str) -> Result<String, PartError> {
    let named: Named<'_> =
        serde_json::from_str(text).map_err(|_| wrong("", "must be a JSON object"))?;
    let raw = named.name.ok_or_else(|| wrong("name", "is missing"))?;
    serde_json::from_str(raw.get()).map_err(|_| wrong("name", "must be a string"))
}

fn summary_of(
    name: &ToolName,
    definition: &Definition,
    settings: &ToolSettings,
) -> Result<String, PartError> {
    let given = settings.summary.trim();
    if given.is_empty() {
        return Ok(summarise(name.as_str(), definition.description()));
    }
    let count = tokens::count(given);
    if count > SUMMARY_TOKENS_MAX {
        let problem = format!("{count} cl100k_base tokens; at most {SUMMARY_TOKENS_MAX}");
        return Err(wrong("summary", problem));
    }
    Ok(given.to_owned())
}

fn join(tool: &str, part: &str) -> String {
    if part.is_empty() { tool.to_owned() } else { format!("{tool}.{part}") }
}

fn wrong(part: &'static str, problem: impl Into<String>) -> PartError {
    PartError { part, problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<ToolRecord, Rejection> {
        let limits = LimitsConfig {
            max_schema_bytes: 1_000,
            max_schema_nesting: 8,
            ..LimitsConfig::default()
        };
        let server = ServerName::parse("git").expect("a name");
        let settings = HashMap::new();
        let work = Work::default();
        ToolCheck { server: &server, settings: &settings, limits: &limits, is_trusted: false, work }
            .check(3, text)
    }

    fn field(text: &str) -> String {
        check(text).expect_err("must be rejected").field
    }

    #[test]
    fn a_tool_becomes_a_record() {
        let text = r#"{"name": "git_status", "description": "Shows status.",
            "inputSchema": {"type": "object"}}"#;
        let record = check(text).expect("a record");
        assert_eq!(record.model_name, "mcp__git__git_status");
        assert_eq!(record.summary, "git status: Shows status.");
        assert_eq!(record.definition, text);
        assert!(record.schema_tokens > record.summary_tokens);
    }

    #[test]
    fn rejections_name_the_field() {
        assert_eq!(field("3"), "tools[3]");
        assert_eq!(field(r#"{"inputSchema": {}}"#), "tools[3].name");
        assert_eq!(field(r#"{"name": 3, "inputSchema": {}}"#), "tools[3].name");
        assert_eq!(field(r#"{"name": "a\nb", "inputSchema": {}}"#), "tools[3].name");
        assert_eq!(field(r#"{"name": "t"}"#), "tools[3].inputSchema");
        assert_eq!(field(r#"{"name": "t", "inputSchema": {"type": 3}}"#), "tools[3].inputSchema");
        let cyclic = r##"{"name": "t", "inputSchema": {"$ref": "#"}}"##;
        assert_eq!(field(cyclic), "tools[3].inputSchema");
        let deep = format!("{{\"name\": \"t\", \"x\": {}1{}}}", "[".repeat(9), "]".repeat(9));
        assert!(check(&deep).expect_err("too deep").problem.contains("nested more than 8"));
        let long = format!("{{\"name\": \"{}\"}}", "x".repeat(1_000));
        assert!(check(&long).expect_err("too long").problem.contains("limits.max_schema_size"));
    }

    #[test]
    fn schemas_of_one_registration_are_bounded_together() {
        let limits = LimitsConfig::default();
        let server = ServerName::parse("git").expect("a name");
        let settings = HashMap::new();
        let work = Work(Cell::new(3_000));
        let check = ToolCheck {
            server: &server,
            settings: &settings,
            limits: &limits,
            is_trusted: false,
            work,
        };
        let tool = |schema: &str| format!(r#"{{"name": "t", "inputSchema": {schema}}}"#);
        let text = tool(r#"{"properties": {"a": {"pattern": "^[a-z]+$"}}}"#);
        let outcomes: Vec<_> = (0..9).map(|at| check.check(at, &text)).collect();
        assert!(outcomes[0].is_ok(), "{:?}", outcomes[0]);
        let rejected = outcomes[8].as_ref().expect_err("more than there is");
        assert_eq!(rejected.field, "tools[8].inputSchema");
        assert!(rejected.problem.contains("fewer tools at a time"), "{}", rejected.problem);
        // The wrong type would be found by compiling, but the budget for compiling is used up.
        let wrong = tool(r#"{"properties": {"a": {"pattern": "^[a-z]+$", "type": 3}}}"#);
        let rejected = check.check(9, &wrong).expect_err("more than there is");
        assert!(rejected.problem.contains("fewer tools at a time"), "{}", rejected.problem);
        assert!(self::check(&wrong).expect_err("no type").problem.contains("/type"));
    }

    #[test]
    fn a_registration_has_four_seconds_of_a_core() {
        let work = Work::default();
        let heaviest = 500_000;
        let taken = (0..1_000).take_while(|_| work.spend(heaviest).is_ok()).count();
        assert_eq!(taken, 80, "of 50 ms each, in units of 100 ns");
    }
}
