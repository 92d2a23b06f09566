//! Prompts and resources of a server that is put off: listed when it is started to list its tools, and kept until its first call.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_telemetry::McpSpan;

use crate::connection::{Connection, Outgoing};

/// Time of a server for all its lists. Without an answer they are left out.
const LIST_TIME: Duration = Duration::from_secs(10);

/// Most pages of a list.
const PAGES_MAX: usize = 100;

/// Lists that are kept: the capability of a server, the method, and the list in its result.
const LISTS: [(&str, &str, &str); 3] = [
    ("prompts", "prompts/list", "prompts"),
    ("resources", "resources/list", "resources"),
    ("resources", "resources/templates/list", "resourceTemplates"),
];

/// List of a server that waits for its first call.
#[derive(Debug)]
pub struct KeptList {
    /// Items, as the server wrote them.
    pub items: Vec<Box<RawValue>>,
    /// False if the list could not be asked for, or not to its end.
    pub is_whole: bool,
}

/// Items of a server's lists, by method.
pub(super) type KeptLists = HashMap<&'static str, Vec<Box<RawValue>>>;

/// Returns the lists of a server. One that fails is left out, and told.
pub(super) async fn lists(connection: &Connection, server: &str) -> KeptLists {
    let until = Instant::now() + LIST_TIME;
    let capabilities = connection.capabilities();
    let mut kept = KeptLists::new();
    for (capability, method, list) in LISTS {
        if capabilities.get(capability).is_none() {
            continue;
        }
        match items(connection, method, list, until).await {
            Ok(items) => drop(kept.insert(method, items)),
            Err(problem) => tracing::warn!(server, problem, method, "a list is left out"),
        }
    }
    kept
}

async fn items(
    connection: &Connection,
    method: &str,
    list: &str,
    until: Instant,
) -> Result<Vec<Box<RawValue>>, String> {
    let mut items = Vec::new();
    let mut params = Map::new();
    for _page in 0..PAGES_MAX {
        let outgoing = Outgoing {
            method: method.to_owned(),
            params: params.clone(),
            progress: None,
            principal: None,
            asking: None,
            idle: LIST_TIME,
            deadline: until,
            span: McpSpan::untraced(),
        };
        let page = connection.call(outgoing).await.map_err(|error| error.to_string())?;
        let page: HashMap<String, &RawValue> =
            serde_json::from_str(page.get()).map_err(|error| error.to_string())?;
        let listed = page.get(list).map(|listed| serde_json::from_str(listed.get()));
        let listed: Option<Vec<Box<RawValue>>> = listed.and_then(Result::ok);
        items.extend(listed.unwrap_or_default());
        let cursor = page.get("nextCursor").map(|cursor| serde_json::from_str(cursor.get()));
        let cursor: Option<String> = cursor.and_then(Result::ok);
        match cursor.filter(|cursor| !cursor.is_empty()) {
            Some(cursor) => drop(params.insert("cursor".to_owned(), Value::from(cursor))),
            None => return Ok(items),
        }
    }
    Err(format!("it has more than {PAGES_MAX} pages"))
}
