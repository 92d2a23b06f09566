//! Prompts and resources of all servers, under names that say whose they are: `server__prompt` and `server+uri`.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_upstream::{Request, ServerState};

use crate::caller::Caller;
use crate::gateway::Gateway;

/// Time of a server for its lists. Without an answer they are left out.
const LIST_TIME: Duration = Duration::from_secs(10);

/// Most pages of a server's list.
const PAGES_MAX: usize = 100;

/// Kind of things that are listed: the capability of a server, the method, the list in its result, and the field that gets the
/// server's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl Kind {
    pub(crate) fn of(method: &str) -> Option<Self> {
        [Self::Prompts, Self::Resources, Self::Templates]
            .into_iter()
            .find(|kind| kind.method() == method)
    }

    fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    fn capability(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// Returns the name of the list in a result.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn rename(self, server: &str, item: &mut Value) {
        let field = match self {
            Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        };
        let separator = if self == Self::Prompts { "__" } else { "+" };
        if let Some(name) = item.get_mut(field)
            && let Some(text) = name.as_str()
        {
            *name = Value::from(format!("{server}{separator}{text}"));
        }
    }
}

/// Returns true if a server of a tenant that is there has a capability.
pub(crate) fn is_offered(gateway: &Gateway, tenant: &str, capability: &str) -> bool {
    let servers = gateway.servers_of(tenant);
    servers.iter().any(|status| has(gateway, &status.name, capability))
}

/// Returns true if a server tells when one of its resources changes.
pub(crate) fn is_followable(gateway: &Gateway, server: &str) -> bool {
    // The one connection that follows has the operator's credential.
    if gateway.server(server).is_none_or(|server| server.is_per_principal()) {
        return false;
    }
    let listing = gateway.fleet().listing(server);
    listing.is_some_and(|listing| listing.capabilities["resources"]["subscribe"] == true)
}

fn has(gateway: &Gateway, server: &str, capability: &str) -> bool {
    let listing = gateway.fleet().listing(server);
    listing.is_some_and(|listing| listing.capabilities.get(capability).is_some())
}

/// Returns the things of the caller's servers that are there, in the order of the servers. Those of a server that waits for
/// its first call are as it listed them last: a host that lists them starts nothing.
pub(crate) async fn list(gateway: &Gateway, caller: &Caller, kind: Kind) -> Vec<Value> {
    let servers = gateway.servers_of(&caller.tenant).into_iter().filter(|status| {
        let is_there = matches!(status.state, ServerState::Ready | ServerState::Idle);
        is_there && has(gateway, &status.name, kind.capability())
    });
    let lists = servers.map(|status| list_of(gateway, caller, kind, status.name));
    join_all(lists).await.into_iter().flatten().collect()
}

async fn list_of(gateway: &Gateway, caller: &Caller, kind: Kind, server: String) -> Vec<Value> {
    // What waits is no principal's own connection.
    let is_own = gateway.server(&server).is_some_and(|server| server.is_per_principal());
    let kept = gateway.fleet().kept_list(&server, kind.method()).filter(|_| !is_own);
    let mut items = match kept {
        Some(kept) => kept,
        None => asked_list(gateway, caller, kind, &server).await,
    };
    for item in &mut items {
        kind.rename(&server, item);
    }
    items
}

/// Asks a server for its list.
async fn asked_list(gateway: &Gateway, caller: &Caller, kind: Kind, server: &str) -> Vec<Value> {
    let deadline = Instant::now() + LIST_TIME;
    let mut items = Vec::new();
    let mut params = Map::new();
    for _page in 0..PAGES_MAX {
        let request = Request {
            method: kind.method().to_owned(),
            params: params.clone(),
            principal: caller.turn_name(),
            progress: None,
            asker: None,
            requester: caller.requester(),
        };
        let answer = gateway.fleet().request(server, request, deadline).await;
        let page: Value = match answer.map(|result| serde_json::from_str(result.get())) {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => {
                tracing::warn!(server, %error, "a list is no JSON");
                break;
            }
            Err(error) => {
                tracing::warn!(server, %error, method = kind.method(), "a list is left out");
                break;
            }
        };
        items.extend(page[kind.list()].as_array().cloned().unwrap_or_default());
        match page["nextCursor"].as_str().filter(|cursor| !cursor.is_empty()) {
            Some(cursor) => params.insert("cursor".to_owned(), Value::from(cursor)),
            None => break,
        };
    }
    items
}

/// Takes the server's name off the prompt or resource that a request names, and returns it; `None` if it names none of the
/// caller's servers.
pub(crate) fn take_server(
    gateway: &Gateway,
    caller: &Caller,
    method: &str,
    params: &mut Map<String, Value>,
) -> Option<String> {
    let named = match method {
        "prompts/get" => params.get_mut("name")?,
        "resources/read" => params.get_mut("uri")?,
        "completion/complete" => {
            let reference = params.get_mut("ref")?;
            let field = if reference["type"] == "ref/prompt" { "name" } else { "uri" };
            reference.get_mut(field)?
        }
        _ => return None,
    };
    let text = named.as_str()?.to_owned();
    let separators = ["__", "+"];
    let found = separators.iter().find_map(|separator| {
        let (server, rest) = text.split_once(separator)?;
        let is_seen = gateway.sees(&caller.tenant, server);
        is_seen.then(|| (server.to_owned(), rest.to_owned()))
    });
    let (server, rest) = found?;
    *named = Value::from(rest);
    Some(server)
}

/// Sets the server's name before the URIs of a resource that was read.
pub(crate) fn rename_contents(server: &str, result: &mut Value) {
    let contents = result.get_mut("contents").and_then(Value::as_array_mut);
    for content in contents.into_iter().flatten() {
        Kind::Resources.rename(server, content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_say_whose_a_thing_is() {
        let mut prompt = json!({"name": "review", "title": "Review"});
        Kind::Prompts.rename("git", &mut prompt);
        assert_eq!(prompt, json!({"name": "git__review", "title": "Review"}));
        let mut template = json!({"uriTemplate": "file:///{path}"});
        Kind::Templates.rename("fs", &mut template);
        assert_eq!(template["uriTemplate"], "fs+file:///{path}");
        let mut read = json!({"contents": [{"uri": "a:b", "text": "c"}]});
        rename_contents("fs", &mut read);
        assert_eq!(read["contents"][0]["uri"], "fs+a:b");
    }

    #[test]
    fn methods_have_a_kind() {
        assert_eq!(Kind::of("resources/templates/list"), Some(Kind::Templates));
        assert_eq!(Kind::of("tools/list"), None);
    }
}
