//! Replicas of one gateway: what is bound to one of them is handed to it by the one that a host's request reaches.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolgate_upstream::plain_client;

use crate::definitions::READ_RESULT;
use crate::gateway::Gateway;
use crate::http::GatewayError;
use crate::results::Results;
use crate::sealed::{Place, SealingKeys};
use crate::sessions::EndedSessions;

/// Header of a request that another replica handed on. It is not handed on again.
const HANDED_ON: HeaderName = HeaderName::from_static("toolgate-handed-on");

/// Time to connect to another replica. One that is gone may not even refuse.
const CONNECT: Duration = Duration::from_secs(2);

/// Headers that are about one connection (RFC 9110, section 7.6.1), or that each connection sets anew.
const OF_CONNECTIONS: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Settings of one replica of a gateway.
pub struct Replica {
    /// Keys of what hosts carry for the gateway. All replicas have the same.
    pub keys: SealingKeys,
    /// URL by which other replicas reach this one; `None` if they can't.
    pub url: Option<String>,
    /// Sessions that hosts ended, where replicas share them.
    pub ended: Option<Arc<dyn EndedSessions>>,
}

/// Way to the other replicas.
#[derive(Clone)]
pub(crate) struct Others(reqwest::Client);

/// Parts of a message that may say which replica it is for.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<Id<'a>>,
    #[serde(borrow, default)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    #[expect(dead_code, reason = "numbers name no replica")]
    Other(serde_json::Value),
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default, rename = "requestState")]
    state: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Arguments of a tool that reads on in a result.
#[derive(Deserialize)]
struct Reading {
    handle: String,
}

/// Message that is bound to another replica.
#[derive(Debug, PartialEq)]
enum Bound {
    /// Next try of a call that waits there.
    Retry(Place),
    /// Answer to a question that it asks.
    Answer(Place),
    /// Call that reads on in a result which is kept there.
    Read {
        /// URL of the replica.
        url: String,
    },
}

impl Others {
    pub(crate) fn new() -> Result<Self, GatewayError> {
        let client = plain_client(CONNECT).map_err(std::io::Error::other)?;
        Ok(Self(client))
    }

    /// Hands a message to the replica that it is bound to, and returns that one's answer. `None` if it is for this one: or
    /// for one that can't be reached, where what waited for it is lost.
    pub(crate) async fn answer(
        &self,
        gateway: &Gateway,
        parts: &Parts,
        message: &Bytes,
    ) -> Option<Response> {
        let read = || read_elsewhere(message, |place| gateway.seal().opened_place(place));
        let bound = bound(message, |text| gateway.seal().elsewhere(text)).or_else(read)?;
        let url = match &bound {
            Bound::Retry(place) | Bound::Answer(place) => place.url.as_ref(),
            Bound::Read { url } => Some(url),
        };
        let url = url.filter(|_| !parts.headers.contains_key(&HANDED_ON));
        let answer = match url {
            Some(url) => self.handed_on(url, parts, message.clone()).await,
            None => None,
        };
        answer.or_else(|| match bound {
            Bound::Retry(_) | Bound::Read { .. } => None,
            Bound::Answer(_) => {
                let problem =
                    "the replica of the gateway that asks this is gone, and its call with it";
                let error = json!({"code": ErrorCode::INTERNAL_ERROR.0, "message": problem});
                let body = Json(json!({"jsonrpc": "2.0", "error": error}));
                Some((StatusCode::BAD_GATEWAY, body).into_response())
            }
        })
    }

    async fn handed_on(&self, url: &str, parts: &Parts, message: Bytes) -> Option<Response> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = passed_on(&parts.headers);
        headers.insert(HANDED_ON, HeaderValue::from_static("1"));
        let request = self.0.request(parts.method.clone(), format!("{url}{path}"));
        let answered = request.headers(headers).body(message).send().await;
        let answer = answered.map_err(|error| {
            tracing::warn!(%error, "a request could not be handed to its replica");
        });
        let answer = answer.ok()?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status();
        *response.headers_mut() = passed_on(answer.headers());
        *response.body_mut() = Body::from_stream(answer.bytes_stream());
        Some(response)
    }
}

/// Returns the replica that a message is bound to, where `elsewhere` knows the one of a sealed text.
fn bound(message: &[u8], elsewhere: impl Fn(&str) -> Option<Place>) -> Option<Bound> {
    let message: Message<'_> = serde_json::from_slice(message).ok()?;
    match (message.method, message.id, message.params) {
        (Some(_), _, Some(Params { state: Some(state), .. })) => {
            elsewhere(&state).map(Bound::Retry)
        }
        (None, Some(Id::Text(id)), _) => elsewhere(&id).map(Bound::Answer),
        _ => None,
    }
}

/// Returns the replica that keeps the result which a message reads on in, where `elsewhere` knows the one of a sealed place.
fn read_elsewhere(message: &[u8], elsewhere: impl Fn(&str) -> Option<String>) -> Option<Bound> {
    let message: Message<'_> = serde_json::from_slice(message).ok()?;
    let params = message.params.filter(|_| message.method.as_deref() == Some("tools/call"))?;
    let name: String = serde_json::from_str(params.name?.get()).ok()?;
    let arguments = params.arguments.filter(|_| name == READ_RESULT)?;
    let Reading { handle } = serde_json::from_str(arguments.get()).ok()?;
    let url = elsewhere(Results::place_of(handle.trim())?)?;
    Some(Bound::Read { url })
}

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    for name in OF_CONNECTIONS {
        passed.remove(name);
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_retries_and_answers_are_bound_to_a_replica() {
        let place = Place { name: "far".to_owned(), url: None };
        let elsewhere = |text: &str| (text == "far").then(|| place.clone());
        let bound = |message: &str| bound(message.as_bytes(), elsewhere);
        let retry =
            r#"{"method": "tools/call", "id": 1, "params": {"requestState": "far", "x": 1}}"#;
        assert_eq!(bound(retry), Some(Bound::Retry(place.clone())));
        let answer = r#"{"id": "far", "result": {"params": 1}}"#;
        assert_eq!(bound(answer), Some(Bound::Answer(place.clone())));
        for other in [
            r#"{"method": "tools/call", "id": "far", "params": {}}"#,
            r#"{"method": "tools/call", "id": 1, "params": {"requestState": "near"}}"#,
            r#"{"method": "ping", "id": 1}"#,
            r#"{"id": 1, "result": {}}"#,
            "[]",
            "no JSON",
        ] {
            assert_eq!(bound(other), None, "{other}");
        }
    }

    #[test]
    fn a_result_is_read_where_it_is_kept() {
        let elsewhere = |place: &str| (place == "far").then(|| "http://far".to_owned());
        let bound = |name: &str, handle: &str| {
            let arguments = json!({"handle": handle, "offset": 1});
            let params = json!({"name": name, "arguments": arguments});
            let message = json!({"method": "tools/call", "id": 1, "params": params}).to_string();
            read_elsewhere(message.as_bytes(), elsewhere)
        };
        let far = Some(Bound::Read { url: "http://far".to_owned() });
        assert_eq!(bound("read_result", "r_1.far"), far);
        assert_eq!(bound("read_result", "r_1.near"), None);
        assert_eq!(bound("read_result", "r_1"), None);
        assert_eq!(bound("call_tool", "r_1.far"), None);
    }

    #[test]
    fn headers_of_a_connection_stay_with_it() {
        let headers = [("host", "a"), ("connection", "close"), ("authorization", "Bearer x")];
        let headers = headers
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
        let passed = passed_on(&headers.into_iter().collect());
        assert!(passed.contains_key("authorization") && passed.contains_key("host"));
        assert!(!passed.contains_key("connection"));
    }
}
