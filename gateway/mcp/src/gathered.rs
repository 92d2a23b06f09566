//! Prompts and resources of all servers, under names that say whose they are: `server__prompt`, `server+uri`, and
//! `ui://server/rest` for user interfaces.

use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_upstream::{Request, RequestError, ServerState};

use crate::caller::Caller;
use crate::config::Trust;
use crate::gateway::Gateway;
use crate::raw::RawObject;
use crate::vetting::{Extent, Items, Known, ListName};

/// Time of a server for its lists. Without an answer they are left out.
const LIST_TIME: Duration = Duration::from_secs(10);

/// Name of the turns in which the gateway looks at lists that all share. Names of principals have a slash.
const LOOK_TURN: &str = "gateway";

/// Codes and words by which servers say that they have no such method, where they don't say it by the code for it.
const UNSUPPORTED_CODES: [i64; 3] = [-32_000, -32_602, -32_603];
const UNSUPPORTED: [&str; 6] = [
    "method not found",
    "unknown method",
    "unsupported method",
    "not implemented",
    "not supported",
    "no handler",
];

/// Scheme of user interfaces, by which hosts know what to show (MCP Apps).
const UI: &str = "ui://";

/// Most pages of a server's list, and most bytes of its items.
const PAGES_MAX: usize = 100;
const LIST_BYTES_MAX: usize = 32 << 20;

/// Kind of things that are listed: the capability of a server, the method, the list in its result, and the field that gets the
/// server's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    /// Returns the kind of what a request fetches by its name; `None` for another request.
    pub(crate) fn fetched_by(method: &str) -> Option<Self> {
        match method {
            "prompts/get" => Some(Self::Prompts),
            "resources/read" => Some(Self::Resources),
            _ => None,
        }
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

    /// Returns the field of an item that names it.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// Returns the word for an item.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "resource template",
        }
    }

    /// Returns an item of a list under the name that says whose it is.
    fn renamed(self, server: &str, item: &RawValue) -> String {
        let Ok(mut object) = RawObject::parse(item.get().to_owned()) else {
            return item.get().to_owned();
        };
        match self {
            Self::Prompts => {
                if let Some(name) = object.text(self.key()).map(|name| format!("{server}__{name}"))
                {
                    object.set("name", &Value::from(name));
                }
            }
            Self::Resources | Self::Templates => rename_uri(server, self.key(), &mut object),
        }
        object.into_text()
    }
}

/// Returns the URI, or the template of one, by which hosts know a resource of a server: `server+uri`, or with the server before
/// the path where hosts go by the scheme.
fn shown_uri(server: &str, uri: &str) -> String {
    match uri.strip_prefix(UI) {
        Some(rest) => format!("{UI}{server}/{rest}"),
        None => format!("{server}+{uri}"),
    }
}

/// Returns the server and its own URI of a resource as hosts know it.
pub(crate) fn own_uri(shown: &str) -> Option<(&str, String)> {
    match shown.strip_prefix(UI) {
        Some(rest) => rest.split_once('/').map(|(server, rest)| (server, format!("{UI}{rest}"))),
        None => shown.split_once('+').map(|(server, uri)| (server, uri.to_owned())),
    }
}

fn rename_uri(server: &str, field: &str, object: &mut RawObject) {
    if let Some(shown) = object.text(field).map(|uri| shown_uri(server, &uri)) {
        object.set(field, &Value::from(shown));
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
pub(crate) async fn list(gateway: &Gateway, caller: &Caller, kind: Kind) -> Vec<String> {
    let servers = gateway.servers_of(&caller.tenant).into_iter().filter(|status| {
        let is_there = matches!(status.state, ServerState::Ready | ServerState::Idle);
        is_there && has(gateway, &status.name, kind.capability())
    });
    let turn = caller.turn_name();
    let lists = servers.map(|status| list_of(gateway, caller, kind, status.name, &turn));
    join_all(lists).await.into_iter().flatten().collect()
}

/// Returns the things of one server. `turn` is the name under which it is asked.
async fn list_of(
    gateway: &Gateway,
    caller: &Caller,
    kind: Kind,
    server: String,
    turn: &str,
) -> Vec<String> {
    // What waits is no principal's own connection.
    let is_own = gateway.server(&server).is_some_and(|server| server.is_per_principal());
    let kept = gateway.fleet().kept_list(&server, kind.method()).filter(|_| !is_own);
    let listed = match kept {
        Some(kept) => kept.is_whole.then_some(Items { items: kept.items, extent: Extent::Whole }),
        None => asked_list(gateway, caller, kind, &server, turn).await,
    };
    // What nobody saw is looked at the next time.
    let Some(listed) = listed else { return Vec::new() };
    let items = vetted(gateway, caller, kind, &server, listed).await;
    items.iter().map(|item| kind.renamed(&server, item)).collect()
}

/// Returns what is known of a prompt or resource of a server. Of a resource that its server's list lacks, which was given in part, the
/// templates say it too.
pub(crate) async fn known(
    gateway: &Gateway,
    caller: &Caller,
    server: &str,
    kind: Kind,
    name: &str,
) -> Known {
    let known = known_of_list(gateway, caller, server, kind, name).await;
    if kind != Kind::Resources || known != Known::Missed {
        return known;
    }
    let resources = list_name(gateway, caller, Kind::Resources, server);
    if gateway.vetting().is_overfull(&resources) {
        return known;
    }
    // They are looked at, if nobody did.
    let _of_templates = known_of_list(gateway, caller, server, Kind::Templates, name).await;
    let templates = list_name(gateway, caller, Kind::Templates, server);
    if gateway.vetting().fits_template(&templates, name) { Known::Clear } else { known }
}

/// Returns true if a list of a server that all share left a resource out, or a template of one, as far as was looked at.
pub(crate) fn is_withheld(gateway: &Gateway, server: &str, uri: &str) -> bool {
    let trust = trust_of(gateway, server);
    [Kind::Resources, Kind::Templates].into_iter().any(|kind| {
        let list = ListName { server: server.to_owned(), kind, owner: None };
        matches!(gateway.vetting().known(&list, trust, uri), Known::Withheld(_))
    })
}

/// Returns what a list of a server says of one of its items. It is asked for if nobody had it yet, or if it was given in part a while
/// ago.
async fn known_of_list(
    gateway: &Gateway,
    caller: &Caller,
    server: &str,
    kind: Kind,
    name: &str,
) -> Known {
    let list = list_name(gateway, caller, kind, server);
    let trust = trust_of(gateway, server);
    let vetting = gateway.vetting();
    let lacks_list =
        gateway.fleet().listing(server).is_some() && !has(gateway, server, kind.capability());
    if !lacks_list && vetting.needs_look(&list, trust, name) {
        let look = async {
            let turn = look_turn(&list, caller);
            let listed = list_of(gateway, caller, kind, server.to_owned(), &turn).await;
            tracing::debug!(server, items = listed.len(), "a list was looked at before a request");
        };
        let is_needed = || vetting.needs_look(&list, trust, name);
        Box::pin(vetting.looks().look(&list, is_needed, look)).await;
    }
    match vetting.known(&list, trust, name) {
        Known::Unseen if lacks_list => Known::Clear,
        known => known,
    }
}

/// Returns the name under which a list is looked at. All who come wait for one look at a list that they share, so that it waits behind
/// nobody's calls.
fn look_turn(list: &ListName, caller: &Caller) -> String {
    if list.owner.is_some() { caller.turn_name() } else { LOOK_TURN.to_owned() }
}

fn trust_of(gateway: &Gateway, server: &str) -> Trust {
    gateway.server(server).map_or(Trust::Standard, |server| server.trust)
}

/// Returns the name of a server's list, as a caller is given it.
fn list_name(gateway: &Gateway, caller: &Caller, kind: Kind, server: &str) -> ListName {
    let config = gateway.server(server);
    let is_own = config.is_some_and(|server| server.is_per_principal());
    ListName { server: server.to_owned(), kind, owner: is_own.then(|| caller.owner()) }
}

/// Returns the items of a server's list without those whose texts would quarantine a tool.
async fn vetted(
    gateway: &Gateway,
    caller: &Caller,
    kind: Kind,
    server: &str,
    listed: Items,
) -> Vec<Box<RawValue>> {
    let list = list_name(gateway, caller, kind, server);
    gateway.vetting().keep(list, trust_of(gateway, server), listed).await
}

/// Takes what [`vetted`] leaves out from a page of a list as its server gave it. `is_first` is true for the first page.
pub(crate) async fn vet_page(
    gateway: &Gateway,
    caller: &Caller,
    kind: Kind,
    server: &str,
    page: &mut RawObject,
    is_first: bool,
) {
    // Some hosts take the first of two lists.
    page.keep_last(kind.list());
    page.keep_last("nextCursor");
    let items: Vec<_> = page.items(kind.list()).into_iter().map(ToOwned::to_owned).collect();
    let count = items.len();
    let has_more = page.text("nextCursor").is_some_and(|cursor| !cursor.is_empty());
    let extent = if is_first && !has_more { Extent::Whole } else { Extent::Page };
    let listed = Items { items, extent };
    let kept = vetted(gateway, caller, kind, server, listed).await;
    if kept.len() < count {
        let kept: Vec<&str> = kept.iter().map(|item| item.get()).collect();
        page.set_items(kind.list(), &kept);
    }
}

/// Asks a server for its list; `None` if it can't be asked.
async fn asked_list(
    gateway: &Gateway,
    caller: &Caller,
    kind: Kind,
    server: &str,
    turn: &str,
) -> Option<Items> {
    let deadline = Instant::now() + LIST_TIME;
    let mut read = Pages::default();
    let mut params = Map::new();
    for _page in 0..PAGES_MAX {
        let request = Request {
            method: kind.method().to_owned(),
            params: params.clone(),
            principal: turn.to_owned(),
            progress: None,
            asker: None,
            requester: caller.requester(),
            sent: None,
            process: None,
        };
        let answer = gateway.fleet().request(server, request, deadline).await;
        let page = match answer.map(RawObject::of) {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => {
                tracing::warn!(server, %error, "a list is no JSON object");
                return Some(read.part());
            }
            Err(error) if params.is_empty() && says_no_list(&error) => {
                // It has no such list.
                return Some(Items { items: Vec::new(), extent: Extent::Whole });
            }
            Err(error) => {
                tracing::warn!(server, %error, method = kind.method(), "a list is left out");
                return read.after(&error);
            }
        };
        if !read.add(&page, kind) {
            tracing::warn!(server, method = kind.method(), "a list ends before 32 MiB");
            return Some(read.part());
        }
        match page.text("nextCursor").filter(|cursor| !cursor.is_empty()) {
            Some(cursor) => params.insert("cursor".to_owned(), Value::from(cursor)),
            None => return Some(Items { extent: Extent::Whole, ..read.part() }),
        };
    }
    tracing::warn!(server, method = kind.method(), "a list ends after {PAGES_MAX} pages");
    Some(read.part())
}

/// Returns true if a server answers so that it has no such list.
fn says_no_list(error: &RequestError) -> bool {
    let RequestError::Server { code, message, .. } = error else { return false };
    if *code == i64::from(ErrorCode::METHOD_NOT_FOUND.0) {
        return true;
    }
    let message = message.to_lowercase();
    UNSUPPORTED_CODES.contains(code) && UNSUPPORTED.iter().any(|said| message.contains(said))
}

/// Items of a list whose pages are read one by one.
#[derive(Default)]
struct Pages {
    items: Vec<Box<RawValue>>,
    bytes: usize,
}

impl Pages {
    /// Adds a page, and returns whether it is within the bound; else it is left out.
    fn add(&mut self, page: &RawObject, kind: Kind) -> bool {
        let items = page.items(kind.list());
        self.bytes += items.iter().map(|item| item.get().len()).sum::<usize>();
        let fits = self.bytes <= LIST_BYTES_MAX;
        if fits {
            self.items.extend(items.into_iter().map(ToOwned::to_owned));
        }
        fits
    }

    /// Returns what a list counts as whose next page failed; `None` if that says nothing of it, so that it is looked at again.
    fn after(self, error: &RequestError) -> Option<Items> {
        // A busy server may have it all the same.
        let is_answer =
            matches!(error, RequestError::Server { .. } | RequestError::TooLarge { .. });
        (is_answer || !self.items.is_empty()).then(|| self.part())
    }

    fn part(self) -> Items {
        Items { items: self.items, extent: Extent::Part }
    }
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
    let prompt = text.split_once("__").map(|(server, name)| (server, name.to_owned()));
    let mut found = [prompt, own_uri(&text)].into_iter().flatten();
    let (server, rest) = found.find(|(server, _)| gateway.sees(&caller.tenant, server))?;
    *named = Value::from(rest);
    Some(server.to_owned())
}

/// Sets the server's name before the URIs of a resource that was read.
pub(crate) fn rename_contents(server: &str, result: &mut RawObject) {
    if result.get("contents").is_some() {
        let contents = result.items("contents");
        let contents: Vec<String> =
            contents.iter().map(|content| Kind::Resources.renamed(server, content)).collect();
        result.set_items("contents", &contents);
    }
}

/// Sets the server's name before the URIs of resources that a result of a tool links or embeds.
pub(crate) fn rename_links(server: &str, result: &mut RawObject) {
    let items = result.items("content");
    let renamed: Vec<Option<String>> =
        items.iter().map(|item| with_shown_uri(server, item.get())).collect();
    if renamed.iter().all(Option::is_none) {
        return;
    }
    let item = |(item, renamed): (&&RawValue, Option<String>)| {
        renamed.unwrap_or_else(|| item.get().to_owned())
    };
    let items: Vec<String> = items.iter().zip(renamed).map(item).collect();
    result.set_items("content", &items);
}

/// Returns an item of content with the URI by which hosts know its resource; `None` for other content.
fn with_shown_uri(server: &str, item: &str) -> Option<String> {
    if !item.contains("\"resource") {
        return None;
    }
    let mut object = RawObject::parse(item.to_owned()).ok()?;
    if object.is("type", "resource_link") {
        rename_uri(server, "uri", &mut object);
        return Some(object.into_text());
    }
    if !object.is("type", "resource") {
        return None;
    }
    let mut resource = RawObject::parse(object.get("resource")?.to_owned()).ok()?;
    rename_uri(server, "uri", &mut resource);
    object.set_json("resource", resource.into_text());
    Some(object.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_whose_a_thing_is() {
        let renamed = |kind: Kind, item: &str| {
            let item = RawValue::from_string(item.to_owned()).expect("JSON");
            kind.renamed("fs", &item)
        };
        let prompt = renamed(Kind::Prompts, r#"{"name": "review", "weight": 1e400}"#);
        assert_eq!(prompt, r#"{"name":"fs__review","weight":1e400}"#);
        let template = renamed(Kind::Templates, r#"{"uriTemplate": "file:///{path}"}"#);
        assert_eq!(template, r#"{"uriTemplate":"fs+file:///{path}"}"#);
        let mut read = RawObject::parse(r#"{"contents": [{"uri": "a:b", "text": "c"}]}"#);
        let read = read.as_mut().expect("an object");
        rename_contents("fs", read);
        assert_eq!(read.clone().into_text(), r#"{"contents":[{"uri":"fs+a:b","text":"c"}]}"#);
    }

    #[test]
    fn uris_lead_back_to_their_server_and_user_interfaces_keep_their_scheme() {
        for (uri, shown) in [
            ("file:///a+b", "fs+file:///a+b"),
            ("ui://widget/a.html", "ui://fs/widget/a.html"),
            ("ui://widget", "ui://fs/widget"),
        ] {
            assert_eq!(shown_uri("fs", uri), shown);
            assert_eq!(own_uri(shown), Some(("fs", uri.to_owned())));
        }
        assert_eq!(own_uri("file:///a"), None);
    }

    #[test]
    fn resources_that_a_result_names_are_named_as_they_are_read() {
        let renamed = |text: &'static str| {
            let mut result = RawObject::parse(text).expect("an object");
            rename_links("fs", &mut result);
            result.into_text()
        };
        let linked = r#"{"content":[{"type":"resource_link","uri":"a:b"},{"type":"resource","resource":{"uri":"ui://x/y","n":1.10}}]}"#;
        let shown = r#"{"content":[{"type":"resource_link","uri":"fs+a:b"},{"type":"resource","resource":{"uri":"ui://fs/x/y","n":1.10}}]}"#;
        assert_eq!(renamed(linked), shown);
        let plain = r#"{"content":[ {"type":"text","text":"no link"} ]}"#;
        assert_eq!(renamed(plain), plain);
    }

    #[test]
    fn a_list_is_bounded_however_many_pages_it_has() {
        let page = |bytes: usize| {
            let text = format!(r#"{{"prompts":["{}"]}}"#, "x".repeat(bytes - 2));
            RawObject::parse(text).expect("an object")
        };
        let mut pages = Pages::default();
        assert!(pages.add(&page(LIST_BYTES_MAX - 10), Kind::Prompts));
        assert!(pages.add(&page(10), Kind::Prompts));
        assert!(!pages.add(&page(10), Kind::Prompts));
        assert_eq!(pages.part().items.len(), 2);
    }

    #[test]
    fn a_busy_server_has_said_nothing_of_its_list() {
        let after = |error: &RequestError, items: &str| {
            let mut pages = Pages::default();
            let page = RawObject::parse(format!(r#"{{"prompts":[{items}]}}"#));
            pages.add(&page.expect("an object"), Kind::Prompts);
            pages.after(error).map(|listed| (listed.items.len(), listed.extent))
        };
        let late = RequestError::Timeout { after: LIST_TIME };
        let failed = RequestError::Server { code: -32_603, message: String::new(), data: None };
        assert_eq!(after(&late, ""), None);
        assert_eq!(after(&late, "{}"), Some((1, Extent::Part)));
        assert_eq!(after(&failed, ""), Some((0, Extent::Part)));
        assert_eq!(after(&RequestError::TooLarge { limit: 1 }, ""), Some((0, Extent::Part)));
        assert_eq!(after(&RequestError::Unknown, ""), None);
    }

    #[test]
    fn servers_say_in_several_ways_that_they_have_no_such_list() {
        let says = |code, message: &str| {
            says_no_list(&RequestError::Server { code, message: message.to_owned(), data: None })
        };
        assert!(says(-32_601, "no"));
        assert!(says(-32_603, "Method not found: resources/list"));
        assert!(says(-32_602, "resources/list is Not Supported"));
        assert!(says(-32_000, "not implemented"));
        assert!(!says(-32_603, "the list is broken"));
        assert!(!says(-32_001, "not implemented"));
        assert!(!says_no_list(&RequestError::Unknown));
    }

    #[test]
    fn a_look_at_what_all_share_waits_behind_nobodys_calls() {
        let caller = |principal: &str| Caller {
            tenant: "acme".into(),
            principal: principal.into(),
            ..Caller::default()
        };
        let turn = |principal: &str, is_own: bool| {
            let caller = caller(principal);
            let owner = is_own.then(|| caller.owner());
            let list = ListName { server: "sea".to_owned(), kind: Kind::Prompts, owner };
            look_turn(&list, &caller)
        };
        assert_eq!(turn("ann", false), turn("bob", false));
        assert!(["ann", "bob", ""].iter().all(|one| caller(one).turn_name() != turn("ann", false)));
        assert_eq!(turn("ann", true), "acme/ann");
    }

    #[test]
    fn methods_have_a_kind() {
        assert_eq!(Kind::of("resources/templates/list"), Some(Kind::Templates));
        assert_eq!(Kind::of("tools/list"), None);
    }
}
