//! The face that shows every tool, for hosts that search by themselves.

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use toolgate_client::v1;

use crate::caller::Caller;
use crate::definitions::read_result;
use crate::discovering::shown_name;
use crate::gateway::Gateway;
use crate::lists::{self, List, ListKey};
use crate::raw::RawObject;

/// Longest name of a tool. Hosts put a prefix before it, and providers take 64 characters.
const NAME_MAX: usize = 55;

/// Characters of the hash at the end of a name that was cut.
const HASH: usize = 7;

/// Definitions of a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Definitions {
    /// As their servers wrote them but for the names: no result is cut.
    Whole,
    /// Without their output schemas, since a result that is cut has no structured content.
    WithoutOutput,
    /// The same, and at the end the tool that reads on in a result that was cut.
    WithReading,
}

impl Definitions {
    /// Returns the definitions of a face that cuts results to `limit` bytes and shows nothing beside the tools of servers.
    pub(crate) fn of_limit(limit: usize) -> Self {
        if limit == usize::MAX { Self::Whole } else { Self::WithReading }
    }

    /// Returns the definitions beside the gateway's own tools, which read on in results that were cut to `limit` bytes.
    pub(crate) fn beside_own(limit: usize) -> Self {
        if limit == usize::MAX { Self::Whole } else { Self::WithoutOutput }
    }

    /// Returns the name of the form in keys of lists.
    fn key(self) -> &'static str {
        match self {
            Self::Whole => "all",
            Self::WithoutOutput => "all without output schemas",
            Self::WithReading => "all with read_result",
        }
    }
}

/// Returns the list of all tools that a caller may see, in the order of the names. The plane is asked each time what
/// the caller may see; for definitions only if they are not known yet.
///
/// # Errors
/// The problem, if the plane can't say.
pub(crate) async fn definitions(
    gateway: &Gateway,
    caller: &Caller,
    form: Definitions,
) -> Result<List, String> {
    let named = gateway.visible(None, caller).await?;
    let known = gateway.lists().get(&key_of(form, caller, shown(gateway, caller, &named)));
    if let Some(list) = known {
        return Ok(list);
    }
    // What is listed may have changed since, so the names of this answer count.
    let listed = gateway.described(caller).await?;
    let tools: Vec<_> = shown(gateway, caller, &listed).collect();
    let mut definitions = Vec::new();
    for tool in &tools {
        let name = name_of(&tool.model_name);
        definitions.push((definition(tool, &name, form)?, name));
    }
    definitions.sort_by(|(_, one), (_, other)| one.cmp(other));
    let mut definitions: Vec<String> = definitions.into_iter().map(|(text, _)| text).collect();
    if form == Definitions::WithReading {
        // On the first page: a host that reads no other must be able to read what is cut.
        definitions.insert(0, read_result().to_string());
    }
    let list = List::of(&definitions);
    gateway.lists().keep(key_of(form, caller, tools), list.clone());
    Ok(list)
}

/// Returns the definition of a tool as its server wrote it, but for its name and what the form leaves out.
fn definition(tool: &v1::Tool, name: &str, form: Definitions) -> Result<String, String> {
    let definition = RawObject::parse(tool.definition_json.clone());
    let mut definition = definition
        .map_err(|error| format!("{}: its definition is no JSON: {error}", tool.model_name))?;
    definition.set("name", &Value::from(name));
    if form != Definitions::Whole {
        definition.remove("outputSchema");
    }
    Ok(definition.into_text())
}

/// Returns the list of those of these tools that a caller may see, in their order.
///
/// # Errors
/// The problem, if the plane can't say.
pub(crate) async fn named(
    gateway: &Gateway,
    caller: &Caller,
    names: &[String],
    form: Definitions,
) -> Result<List, String> {
    let every = definitions(gateway, caller, form).await?;
    let every: Vec<&RawValue> =
        serde_json::from_slice(&every.text).map_err(|error| error.to_string())?;
    let named = |name: &String| {
        every.iter().find(|tool| {
            let shown = name_of(name);
            RawObject::parse(tool.get().to_owned()).is_ok_and(|tool| tool.is("name", &shown))
        })
    };
    let named: Vec<&str> = names.iter().filter_map(named).map(|tool| tool.get()).collect();
    Ok(List::of(&named))
}

/// Returns the key of the list of these tools.
fn key_of<'l>(
    form: Definitions,
    caller: &'l Caller,
    tools: impl IntoIterator<Item = &'l v1::Tool>,
) -> ListKey {
    let tools = tools.into_iter();
    let texts = tools.flat_map(|tool| [&tool.server, &tool.name, &tool.model_name, &tool.hash]);
    lists::key([form.key(), &*caller.tenant].into_iter().chain(texts.map(String::as_str)))
}

/// Returns the model-facing name of the tool that this face shows under a name that was cut; `None` for other names.
pub(crate) async fn whole_name(gateway: &Gateway, caller: &Caller, name: &str) -> Option<String> {
    if name.len() != NAME_MAX {
        return None;
    }
    let listed = gateway.visible(None, caller).await.ok()?;
    let mut names = shown(gateway, caller, &listed).map(|tool| &tool.model_name);
    names.find(|whole| name_of(whole) == name).cloned()
}

/// Returns the server and the name of the tool that this face shows under a name.
pub(crate) async fn tool_of(
    gateway: &Gateway,
    caller: &Caller,
    name: &str,
) -> Option<(String, String)> {
    let listed = gateway.visible(None, caller).await.ok()?;
    let mut tools = shown(gateway, caller, &listed);
    let tool = tools.find(|tool| name_of(&tool.model_name) == name)?;
    Some((tool.server.clone(), tool.name.clone()))
}

/// Returns those of the listed tools that this face shows.
fn shown<'l>(
    gateway: &Gateway,
    caller: &Caller,
    listed: &'l [v1::Tool],
) -> impl Iterator<Item = &'l v1::Tool> {
    listed
        .iter()
        .filter(move |tool| !tool.quarantined && gateway.lets_in(caller, &tool.server, &tool.name))
}

/// Returns the name under which this face shows a tool: one that is too long ends with a hash of the whole.
fn name_of(model_name: &str) -> String {
    let name = shown_name(model_name);
    if name.len() <= NAME_MAX {
        return name.to_owned();
    }
    let digest = hex::encode(Sha256::digest(name.as_bytes()));
    let kept = name.floor_char_boundary(NAME_MAX - HASH - 1);
    format!("{}_{}", &name[..kept], &digest[..HASH])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_schemas_are_shown_where_results_are_whole() {
        let definition_json = r#"{"name":"rows","outputSchema":{"type":"object"},"x":1.0}"#;
        let tool = v1::Tool { definition_json: definition_json.to_owned(), ..Default::default() };
        let shown = |limit| {
            definition(&tool, "rep__rows", Definitions::beside_own(limit)).expect("a definition")
        };
        assert_eq!(shown(32 << 10), r#"{"name":"rep__rows","x":1.0}"#);
        let whole = r#"{"name":"rep__rows","outputSchema":{"type":"object"},"x":1.0}"#;
        assert_eq!(shown(usize::MAX), whole);
        assert_eq!(Definitions::of_limit(usize::MAX), Definitions::Whole);
        assert_eq!(Definitions::of_limit(1), Definitions::WithReading);
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        assert_eq!(name_of("mcp__git__git_status"), "git__git_status");
        let long = |end: &str| name_of(&format!("mcp__{}{end}", "x".repeat(58)));
        assert_eq!(long("a").len(), NAME_MAX);
        assert_ne!(long("a"), long("b"));
        assert_eq!(long("a"), long("a"));
        assert_eq!(name_of(&format!("mcp__{}", "y".repeat(NAME_MAX))), "y".repeat(NAME_MAX));
    }
}
