//! Bytes as text, for JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Serialization of hashes and keys in hexadecimal.
pub(super) mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&::hex::encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        let mut bytes = [0; N];
        let wrong = |_| D::Error::custom(format!("not {N} bytes in hexadecimal"));
        ::hex::decode_to_slice(text.as_bytes(), &mut bytes).map_err(wrong)?;
        Ok(bytes)
    }
}

/// Serialization of longer byte strings in base64.
pub(super) mod base64_text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::to_base64(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        super::from_base64(&text).ok_or_else(|| D::Error::custom("not base64"))
    }
}

fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for bytes in [vec![], vec![0], vec![0xff, 0x0a, 0x80]] {
            assert_eq!(from_base64(&to_base64(&bytes)), Some(bytes));
        }
    }
}
