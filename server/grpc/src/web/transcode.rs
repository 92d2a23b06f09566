//! Translation of messages between protobuf and its JSON mapping (proto3) by their descriptors.

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions};

use super::failure::Failure;

/// Bytes above which a message is translated outside the async threads; about a tenth of a millisecond of work.
const LARGE: usize = 32 << 10;

/// Maximum number of objects, lists and elements in one JSON message. An element may take two bytes of text, but many
/// times as much memory. A registration of 2,048 tools has a fifth of this number; those within texts count too.
const ELEMENTS_MAX: usize = 100_000;

/// Encoding of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Json,
    Proto,
}

impl Codec {
    /// Returns the codec of a content type. Accepts a UTF-8 charset parameter.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
        let charset = parameters.trim().to_ascii_lowercase();
        let is_utf8 = charset.is_empty() || charset.trim_matches('"').ends_with("utf-8");
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/json" if is_utf8 => Some(Self::Json),
            "application/proto" => Some(Self::Proto),
            _ => None,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Proto => "application/proto",
        }
    }

    /// Translates the body to protobuf.
    pub(super) async fn read(
        self,
        message: MessageDescriptor,
        body: Bytes,
        share: impl Send + 'static,
    ) -> Result<Bytes, Failure> {
        match self {
            Self::Proto => Ok(body),
            Self::Json => off_thread(body.len(), share, move || from_json(message, &body)).await?,
        }
    }

    /// Translates a protobuf message to this codec.
    pub(super) async fn write(
        self,
        message: MessageDescriptor,
        body: Bytes,
        share: impl Send + 'static,
    ) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Proto => Ok(body.to_vec()),
            Self::Json => off_thread(body.len(), share, move || to_json(message, body)).await?,
        }
    }
}

/// Runs the work, on another thread if it is large. The work keeps its share of the memory until it is done, even if the caller
/// leaves.
async fn off_thread<T: Send + 'static>(
    bytes: usize,
    share: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    if bytes <= LARGE {
        return Ok(work());
    }
    let work = move || {
        let _share = share;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::internal())
}

fn from_json(message: MessageDescriptor, body: &[u8]) -> Result<Bytes, Failure> {
    let begun = |byte: &&u8| matches!(byte, b'{' | b'[' | b',');
    if body.iter().filter(begun).count() > ELEMENTS_MAX {
        return Err(Failure::too_many_elements(ELEMENTS_MAX));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    // Without this, a misspelt field would be ignored silently.
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let read = DynamicMessage::deserialize_with_options(message, &mut json, &options)
        .and_then(|message| json.end().map(|()| message));
    let message = read.map_err(|error| Failure::unreadable(&error.to_string()))?;
    Ok(message.encode_to_vec().into())
}

fn to_json(message: MessageDescriptor, body: Bytes) -> Result<Vec<u8>, Failure> {
    let message = DynamicMessage::decode(message, body).map_err(|_| Failure::internal())?;
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut json);
    let options = SerializeOptions::new();
    let written = message.serialize_with_options(&mut serializer, &options);
    written.map_err(|_| Failure::internal())?;
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bodies_of_many_elements_are_refused() {
        let methods = super::super::methods::Methods::of_contract();
        let route = methods.unary("/toolgate.v1.RouterService/Route").ok().expect("it is there");
        let body = |count: usize| format!("{{\"intents\": [{}{{}}]}}", "{},".repeat(count));
        assert!(from_json(route.input(), body(1_000).as_bytes()).is_ok());
        assert!(from_json(route.input(), body(ELEMENTS_MAX).as_bytes()).is_err());
    }

    #[test]
    fn content_types() {
        for json in ["application/json", "Application/JSON; charset=UTF-8", "application/json;"] {
            assert_eq!(Codec::of(json), Some(Codec::Json), "{json}");
        }
        assert_eq!(Codec::of("application/proto"), Some(Codec::Proto));
        for other in ["", "text/plain", "application/json; charset=latin1", "application/jsonx"] {
            assert_eq!(Codec::of(other), None, "{other}");
        }
    }
}
