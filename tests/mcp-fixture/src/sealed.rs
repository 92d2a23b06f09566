//! State that a client carries between two rounds of a request and can't change unnoticed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Not a secret: the state holds nothing, tests only change it.
const KEY: &[u8] = b"state of the fixture";

/// Text with a MAC in front.
pub(crate) fn seal(text: &str) -> String {
    format!("{}.{text}", hex::encode(mac_of(text).finalize().into_bytes()))
}

/// The text of a sealed state; none if it was not sealed here.
pub(crate) fn open(sealed: &str) -> Option<&str> {
    let (mac, text) = sealed.split_once('.')?;
    let mac = hex::decode(mac).ok()?;
    mac_of(text).verify_slice(&mac).ok()?;
    Some(text)
}

fn mac_of(text: &str) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(KEY).expect("HMAC takes keys of any length").chain_update(text)
}

#[cfg(test)]
mod tests {
    use super::{open, seal};

    #[test]
    fn a_sealed_state_is_opened_and_a_changed_one_is_not() {
        let sealed = seal("step1");
        assert_eq!(open(&sealed), Some("step1"));
        assert_eq!(open(&format!("{sealed}-TAMPERED")), None);
        assert_eq!(open("step1"), None);
    }
}
