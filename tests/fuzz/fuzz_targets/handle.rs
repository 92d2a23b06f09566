//! Fuzz target for active-set handles. Unsigned text is refused, signed content never panics, and a sealed set opens to
//! the same set, for its holder only.
#![no_main]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use libfuzzer_sys::fuzz_target;
use sha2::Sha256;
use toolgate_core::identity::TenantId;
use toolgate_routing::gate::handle::{ActiveSet, Holder, ShownTool, TOOLS_MAX};
use toolgate_routing::gate::key::HandleKey;

const KEY: [u8; 32] = *b"a key of 32 bytes for tests only";

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 3 {
        0 => unsigned(input),
        1 => signed(input),
        _ => sealed(input),
    }
});

fn unsigned(input: &[u8]) {
    let key = key();
    let tenant = tenant("acme");
    let holder = Holder { tenant: &tenant, principal: "" };
    if let Ok(text) = std::str::from_utf8(input) {
        assert!(ActiveSet::open(text, &key, holder).is_err(), "a forged handle was accepted");
    }
    assert!(ActiveSet::open(&URL_SAFE_NO_PAD.encode(input), &key, holder).is_err());
}

/// Signs any content with a valid tag, to reach the parser behind the signature check.
fn signed(content: &[u8]) {
    let key = key();
    let tenant = tenant("acme");
    let holder = Holder { tenant: &tenant, principal: "" };
    let mut bytes = content.to_vec();
    bytes.extend(tag(tenant.as_str(), "", content));
    let text = URL_SAFE_NO_PAD.encode(bytes);
    if let Ok(set) = ActiveSet::open(&text, &key, holder) {
        assert!(set.tools.len() <= TOOLS_MAX);
        assert_eq!(set.seal(&key, holder), text, "two texts say the same");
    }
}

fn sealed(input: &[u8]) {
    let key = key();
    let a = tenant("a");
    let b = tenant("b");
    let (numbers, rest) = input.split_at(input.len().min(17));
    let mut padded = [0_u8; 17];
    padded[..numbers.len()].copy_from_slice(numbers);
    let number = |at: usize| u64::from_be_bytes(padded[at..at + 8].try_into().expect("8 bytes"));
    let (entries, principal) = rest.as_chunks::<32>();
    let tool = |entry: &[u8; 32]| ShownTool {
        id: entry[..16].try_into().expect("16 bytes"),
        definition: entry[16..].try_into().expect("16 bytes"),
    };
    let tools = entries.iter().map(tool).collect();
    let now = UNIX_EPOCH + Duration::from_secs(number(0) >> 24);
    let set = ActiveSet::new(number(8), tools, now, Duration::from_secs(u64::from(padded[16])));
    assert_eq!(set.has_expired(now), padded[16] == 0);
    assert!(set.has_expired(SystemTime::now() + Duration::from_secs(u64::MAX >> 20)));
    let principal = String::from_utf8_lossy(principal);
    let text = set.seal(&key, Holder { tenant: &a, principal: &principal });
    let open = |tenant, principal| ActiveSet::open(&text, &key, Holder { tenant, principal });
    assert_eq!(open(&a, &principal), Ok(set));
    assert!(open(&b, &principal).is_err(), "another tenant's handle was accepted");
    assert!(open(&a, &format!("{principal}x")).is_err(), "another principal's was accepted");
}

/// Computes the documented signature without the product's code.
fn tag(tenant: &str, principal: &str, content: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).expect("any length will do");
    mac.update(b"toolgate active set\0");
    for name in [tenant, principal] {
        mac.update(&(name.len() as u64).to_be_bytes());
        mac.update(name.as_bytes());
    }
    mac.update(content);
    mac.finalize().into_bytes().to_vec()
}

fn key() -> HandleKey {
    HandleKey::from_bytes(&KEY).expect("32 bytes")
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}
