//! Headers as Envoy sends them, and the changes that make others of them.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use crate::wire::v3::header_value_option::HeaderAppendAction;
use crate::wire::v3::{self, HeaderMutation, HeaderValueOption};

/// Headers of the connection, which are Envoy's to keep.
const OF_CONNECTIONS: [HeaderName; 7] = [
    header::CONNECTION,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Head of a request or an answer. It holds keys, so that it has no `Debug`.
#[derive(Default)]
pub(crate) struct Head {
    pub(crate) headers: HeaderMap,
    pub(crate) method: Option<Method>,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) status: Option<StatusCode>,
}

impl Head {
    /// Reads headers. What is no header is left alone. `None` if there are more than a map holds.
    pub(crate) fn read(sent: &v3::HttpHeaders) -> Option<Self> {
        let mut head = Self::default();
        for one in sent.headers.iter().flat_map(|map| &map.headers) {
            let value =
                if one.raw_value.is_empty() { one.value.as_bytes() } else { &one.raw_value };
            match one.key.as_str() {
                ":method" => head.method = Method::from_bytes(value).ok(),
                ":path" => head.path = String::from_utf8_lossy(value).into_owned(),
                ":status" => head.status = StatusCode::from_bytes(value).ok(),
                name => {
                    if let (Ok(name), Ok(value)) =
                        (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
                    {
                        head.headers.try_append(name, value).ok()?;
                    }
                }
            }
        }
        Some(head)
    }

    /// Returns the path and the query.
    pub(crate) fn place(&self) -> (&str, Option<&str>) {
        match self.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&self.path, None),
        }
    }
}

/// Returns the changes that make `after` of `before`.
pub(crate) fn changes(before: &HeaderMap, after: &HeaderMap) -> HeaderMutation {
    let is_changeable = |name: &&HeaderName| !OF_CONNECTIONS.contains(name);
    let gone = before.keys().filter(is_changeable).filter(|name| !after.contains_key(*name));
    let mut changes = HeaderMutation {
        remove_headers: gone.map(|name| name.as_str().to_owned()).collect(),
        ..HeaderMutation::default()
    };
    for name in after.keys().filter(is_changeable) {
        if before.get_all(name) == after.get_all(name) {
            continue;
        }
        for (at, value) in after.get_all(name).iter().enumerate() {
            changes.set_headers.push(set(name.as_str(), value.as_bytes(), at > 0));
        }
    }
    changes
}

/// Returns the changes that take out what is for Toolgate alone; `None` if there is nothing of it.
pub(crate) fn without_own(headers: &HeaderMap) -> Option<HeaderMutation> {
    let names = headers.keys().map(HeaderName::as_str);
    let own: Vec<_> =
        names.filter(|name| name.starts_with("x-toolgate")).map(str::to_owned).collect();
    let changes = HeaderMutation { remove_headers: own, ..HeaderMutation::default() };
    (!changes.remove_headers.is_empty()).then_some(changes)
}

/// Adds a status to changes.
pub(crate) fn set_status(changes: &mut HeaderMutation, status: StatusCode) {
    changes.set_headers.push(set(":status", status.as_str().as_bytes(), false));
}

fn set(name: &str, value: &[u8], is_further: bool) -> HeaderValueOption {
    let action = if is_further {
        HeaderAppendAction::AppendIfExistsOrAdd
    } else {
        HeaderAppendAction::OverwriteIfExistsOrAdd
    };
    HeaderValueOption {
        header: Some(v3::HeaderValue {
            key: name.to_owned(),
            value: String::new(),
            raw_value: Bytes::copy_from_slice(value),
        }),
        append_action: action.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn heads_are_read_from_either_field_of_a_value() {
        let value = |key: &str, value: &str, raw: &'static str| v3::HeaderValue {
            key: key.to_owned(),
            value: value.to_owned(),
            raw_value: Bytes::from_static(raw.as_bytes()),
        };
        let sent = v3::HttpHeaders {
            headers: Some(v3::HeaderMap {
                headers: vec![
                    value(":method", "", "POST"),
                    value(":path", "/v1/messages?beta=true", ""),
                    value("x-api-key", "", "k"),
                    value("not a name", "", "x"),
                ],
            }),
            end_of_stream: false,
        };
        let head = Head::read(&sent).expect("a head");
        assert_eq!(head.method, Some(Method::POST));
        assert_eq!(head.place(), ("/v1/messages", Some("beta=true")));
        assert_eq!(head.headers, map(&[("x-api-key", "k")]));
    }

    #[test]
    fn more_headers_than_a_map_holds_are_no_head() {
        let one = |number: usize| v3::HeaderValue {
            key: format!("x-{number}"),
            value: "1".to_owned(),
            raw_value: Bytes::new(),
        };
        let headers = (0..1 << 16).map(one).collect();
        let sent =
            v3::HttpHeaders { headers: Some(v3::HeaderMap { headers }), end_of_stream: false };
        assert!(Head::read(&sent).is_none());
    }

    #[test]
    fn only_what_differs_is_changed() {
        let before = map(&[
            ("accept-encoding", "gzip"),
            ("x-toolgate-key", "k"),
            ("te", "trailers"),
            ("same", "1"),
            ("same", "2"),
        ]);
        let after = map(&[
            ("accept-encoding", "identity"),
            ("same", "1"),
            ("same", "2"),
            ("new", "1"),
            ("new", "2"),
        ]);
        let changes = changes(&before, &after);
        assert_eq!(changes.remove_headers, ["x-toolgate-key"]);
        let set: Vec<_> = changes
            .set_headers
            .iter()
            .map(|one| (one.header.as_ref().expect("a header"), one.append_action()))
            .map(|(header, action)| (header.key.as_str(), &header.raw_value[..], action))
            .collect();
        assert_eq!(
            set,
            [
                ("accept-encoding", &b"identity"[..], HeaderAppendAction::OverwriteIfExistsOrAdd),
                ("new", b"1", HeaderAppendAction::OverwriteIfExistsOrAdd),
                ("new", b"2", HeaderAppendAction::AppendIfExistsOrAdd),
            ]
        );
    }
}
