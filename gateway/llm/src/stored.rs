//! Answers of OpenAI's Responses that the provider keeps, as hosts fetch and delete them: a turn with hidden requests has several,
//! and the host knows the first one's ID.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::Value;
use url::Url;

use crate::exchange::{Read, ask_for_plain, is_compressed, read};
use crate::kept::Behind;
use crate::responses::{joined, opened, put_tools, remove_calls, remove_tools, restore_input};
use crate::upstream::{Failure, Head};
use crate::way::{Answer, Payload, Way};
use crate::{headers, raw};

/// Path of a request for a kept answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredPath<'a> {
    /// Provider's path before the ID, and behind it.
    before: &'a str,
    after: &'a str,
    pub(crate) id: &'a str,
    wish: Wish,
}

/// Wish of a host that names a kept answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// The answer itself.
    Fetch,
    /// The items that it was asked with.
    Input,
    /// Its end.
    Delete,
}

/// Request for the answers of a turn that the provider keeps.
pub(crate) struct Stored {
    pub(crate) way: Way,
    /// Head of the host's request.
    pub(crate) head: Head,
    pub(crate) behind: Behind,
    /// URL of the same request for each of the turn's answers, in their order.
    pub(crate) urls: Vec<Url>,
    /// Text of the tools that the answers tell the host, if it is remembered.
    pub(crate) tools: Option<Arc<str>>,
}

/// Answer of the provider that was read.
struct Found {
    headers: HeaderMap,
    text: String,
}

impl<'a> StoredPath<'a> {
    /// Finds the kept answer that a request to OpenAI is for. `None` if it is for none.
    pub(crate) fn find(method: &Method, path: &'a str, query: Option<&str>) -> Option<Self> {
        let at = path.find("/responses/")? + "/responses/".len();
        let (before, named) = path.split_at(at);
        let (id, after) = named.split_at(named.find('/').unwrap_or(named.len()));
        // Events are those of an answer in the background, which is not rewritten.
        let mut parts = query.into_iter().flat_map(|query| query.split('&'));
        let is_stream = parts.any(|part| part == "stream=true");
        let wish = match after {
            "" if method == Method::GET && !is_stream => Wish::Fetch,
            "" if method == Method::DELETE => Wish::Delete,
            "/input_items" if method == Method::GET => Wish::Input,
            _ => return None,
        };
        (!id.is_empty()).then_some(Self { before, after, id, wish })
    }

    /// Returns the path of the same request for another answer.
    pub(crate) fn of(&self, id: &str) -> String {
        format!("{}{id}{}", self.before, self.after)
    }
}

impl Stored {
    /// Answers the request that a path stands for.
    pub(crate) async fn answer(self, path: StoredPath<'_>) -> Response {
        let provider = self.head.provider;
        let answered = match path.wish {
            Wish::Fetch => self.fetched().await,
            Wish::Input => self.input().await,
            Wish::Delete => self.deleted().await,
        };
        answered.unwrap_or_else(|failure| {
            tracing::warn!(provider = provider.name(), "{}", failure.message);
            provider.error(failure.status, &failure.message)
        })
    }

    /// Returns the turn as the host saw it, of all of its answers.
    async fn fetched(mut self) -> Result<Response, Failure> {
        let mut whole = Value::Null;
        let urls = std::mem::take(&mut self.urls);
        for (at, url) in urls.iter().enumerate() {
            let Found { headers, text } = match self.read(url).await? {
                Ok(found) => found,
                Err(other) => return Ok(other),
            };
            let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
                return Ok(response(headers, text));
            };
            opened(&mut value, &self.behind.names);
            let is_last = at + 1 == urls.len();
            if !is_last {
                // The host got none of its calls: one was refused.
                remove_calls(&mut value);
            }
            whole = if at == 0 { value } else { joined(&whole, value) };
            if is_last {
                self.restore_tools(&mut whole);
                return Ok(response(headers, raw::graft(&whole, &text)));
            }
        }
        let message = "the answer is not known any more".to_owned();
        Err(Failure { status: StatusCode::NOT_FOUND, message })
    }

    fn restore_tools(&self, answer: &mut Value) {
        match &self.tools {
            Some(tools) => {
                put_tools(answer, tools);
            }
            None => remove_tools(answer),
        }
    }

    /// Returns the items that the answer was asked with, as the host wrote them.
    async fn input(mut self) -> Result<Response, Failure> {
        let url = self.head.url.clone();
        let Found { headers, text } = match self.read(&url).await? {
            Ok(found) => found,
            Err(other) => return Ok(other),
        };
        let Ok(mut list) = serde_json::from_str::<Value>(&text) else {
            return Ok(response(headers, text));
        };
        restore_input(&mut list, &self.behind.names);
        Ok(response(headers, raw::graft(&list, &text)))
    }

    /// Deletes each answer of the turn, that which the host knows last: where one fails before, the host can ask again.
    async fn deleted(mut self) -> Result<Response, Failure> {
        let urls = std::mem::take(&mut self.urls);
        for url in urls.iter().skip(1).rev() {
            let answer = self.send(url).await?;
            if !answer.status.is_success() && answer.status != StatusCode::NOT_FOUND {
                return Ok(passing(answer));
            }
        }
        let url = self.head.url.clone();
        Ok(passing(self.send(&url).await?))
    }

    /// Sends the request to a URL, and reads the answer. `Err` holds one that the host gets as it is.
    async fn read(&mut self, url: &Url) -> Result<Result<Found, Response>, Failure> {
        let answer = self.send(url).await?;
        if answer.status != StatusCode::OK || is_compressed(&answer) {
            return Ok(Err(passing(answer)));
        }
        let mut headers = headers::of_answer(answer.status, answer.headers.clone());
        headers.remove(header::CONTENT_LENGTH);
        Ok(match read(answer).await? {
            Read::Text(text) => Ok(Found { headers, text }),
            Read::Other(pieces) => {
                let mut response = Response::new(Body::from_stream(pieces));
                *response.headers_mut() = headers;
                Err(response)
            }
        })
    }

    async fn send(&mut self, url: &Url) -> Result<Answer, Failure> {
        let mut head = Head { url: url.clone(), ..self.head.clone() };
        ask_for_plain(&mut head.headers);
        self.way.send(&head, Payload::Whole(Bytes::new())).await
    }
}

fn response(headers: HeaderMap, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.headers_mut() = headers;
    response
}

/// Hands on an answer as it came.
fn passing(answer: Answer) -> Response {
    let mut response = Response::new(Body::from_stream(answer.pieces));
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers::of_answer(answer.status, answer.headers);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_kept_answers_are_known() {
        let find =
            |method: Method, path: &'static str, query| StoredPath::find(&method, path, query);
        let wish = |method, path, query| find(method, path, query).map(|found| found.wish);
        let path = "/v1/responses/resp_1";
        assert_eq!(wish(Method::GET, path, None), Some(Wish::Fetch));
        assert_eq!(wish(Method::GET, path, Some("include[]=x")), Some(Wish::Fetch));
        assert_eq!(wish(Method::GET, path, Some("a=b&stream=true")), None);
        assert_eq!(wish(Method::DELETE, path, None), Some(Wish::Delete));
        assert_eq!(wish(Method::POST, path, None), None);
        let input = "/v1/responses/resp_1/input_items";
        assert_eq!(wish(Method::GET, input, Some("limit=2")), Some(Wish::Input));
        for (method, other) in [
            (Method::POST, "/v1/responses/resp_1/cancel"),
            (Method::GET, "/v1/responses/"),
            (Method::GET, "/v1/responses"),
            (Method::GET, "/v1/models/m"),
        ] {
            assert_eq!(wish(method, other, None), None, "{other}");
        }
        let found = find(Method::GET, input, None).expect("one");
        assert_eq!(found.id, "resp_1");
        assert_eq!(found.of("resp_2"), "/v1/responses/resp_2/input_items");
    }
}
