//! Active-set handle: a signed record of the tools that a model was shown, with which any replica can check a call. The
//! signature covers the tenant and the principal, so the text does not repeat them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::key::HandleKey;
use toolgate_core::identity::{TenantId, ToolKey};
use toolgate_core::quantized_embedding::{DIMENSIONS_MAX, QuantizedEmbedding};
use toolgate_store::{ContentHash, PrincipalKey, Revision};

/// Maximum tools of one handle: all of a large catalog if nothing is deferred, at 43 bytes each.
pub const TOOLS_MAX: usize = 1_024;

/// Maximum Route calls for which a tool that the model asked for stays.
pub const HELD_MAX: u8 = 3;

/// Versions of the format: without a quantized embedding, and with one before the tools (encoder, number of values, values).
const VERSION: u8 = 1;
const WITH_EMBEDDING: u8 = 2;
/// The same with carried tools: their number stands before the tools, and they behind them.
const CARRYING: u8 = 3;
const CARRYING_WITH_EMBEDDING: u8 = 4;
const HEADER: usize = 1 + 8 + 8;
const TAG: usize = 32;
const HALF: usize = 16;
const ENTRY: usize = 2 * HALF;
/// Bits that are flipped in an entry's last byte: the lowest marks a signature, the next two count Route calls.
const SIGNATURE: u8 = 1;
const HELD: u8 = 0b110;
const HELD_BY: u8 = 1;
/// Maximum bytes of a handle's base64 text.
const TEXT_MAX: usize = (HEADER + 8 + 2 + DIMENSIONS_MAX + 2 + TOOLS_MAX * ENTRY + TAG) * 4 / 3 + 4;

/// Owner of a handle.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// Tenant of the owner.
    pub tenant: &'a TenantId,
    /// Principal within the tenant. Empty while authentication is off.
    pub principal: &'a str,
}

/// Tool in a handle: the first half of SHA-256 of its identity, and of its definition. They hold 128 and 125 bits:
/// forging either needs a second preimage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShownTool {
    /// Identity of the tool.
    pub id: ToolKey,
    /// First half of the definition's hash. The lowest three bits also hold the form and the Route calls.
    pub definition: [u8; HALF],
}

impl ShownTool {
    /// Creates an entry for a tool whose definition was shown.
    #[must_use]
    pub fn new(id: ToolKey, definition: &ContentHash) -> Self {
        Self { id, definition: first_half(definition) }
    }

    /// Creates an entry for a tool whose signature was shown instead of the definition.
    #[must_use]
    pub fn by_signature(id: ToolKey, definition: &ContentHash) -> Self {
        let mut half = first_half(definition);
        half[HALF - 1] ^= SIGNATURE;
        Self { id, definition: half }
    }

    /// Returns the entry with a number of Route calls, 0 to 3, for which the tool stays regardless of their intents.
    #[must_use]
    pub fn held_for(mut self, routes: u8) -> Self {
        self.definition[HALF - 1] ^= routes.min(HELD_MAX) << HELD_BY;
        self
    }

    /// Returns true if the entry is for this definition, in any form.
    #[must_use]
    pub fn is_of(&self, definition: &ContentHash) -> bool {
        let mut form = self.definition;
        form.iter_mut().zip(definition).for_each(|(ours, theirs)| *ours ^= theirs);
        form[HALF - 1] &= !(SIGNATURE | HELD);
        form == [0; HALF]
    }

    /// Returns true if the tool was shown as the signature of this definition.
    #[must_use]
    pub fn is_signature_of(&self, definition: &ContentHash) -> bool {
        self.is_of(definition) && self.form(definition) & SIGNATURE != 0
    }

    /// Returns the number of Route calls for which the tool stays, or 0 if the entry is for another definition.
    #[must_use]
    pub fn routes_held(&self, definition: &ContentHash) -> u8 {
        if self.is_of(definition) { (self.form(definition) & HELD) >> HELD_BY } else { 0 }
    }

    fn form(&self, definition: &ContentHash) -> u8 {
        self.definition[HALF - 1] ^ definition[HALF - 1]
    }
}

/// Content of a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveSet {
    /// Catalog revision from which the set was chosen.
    pub revision: Revision,
    /// Time of expiry, in seconds since 1970 (UTC).
    pub expires: u64,
    /// Tools in their order.
    pub tools: Vec<ShownTool>,
    /// Tools beside the active set whose definitions the request still has from earlier turns. They may be called; the next
    /// active set is not chosen by them.
    pub carried: Vec<ShownTool>,
    /// QuantizedEmbedding of the intent for which the tools were chosen. Present if calls are remembered.
    pub intent_embedding: Option<QuantizedEmbedding>,
}

/// Reason why a handle is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// Handle that this service did not issue for this tenant and principal.
    #[error("not issued by this service for this tenant")]
    Invalid,
}

impl ActiveSet {
    /// Creates an active set that expires `ttl` after `now`. Tools beyond [`TOOLS_MAX`] are left out.
    #[must_use]
    pub fn new(revision: Revision, tools: Vec<ShownTool>, now: SystemTime, ttl: Duration) -> Self {
        let mut tools = tools;
        tools.truncate(TOOLS_MAX);
        let expires = seconds(now).saturating_add(ttl.as_secs());
        Self { revision, expires, tools, carried: Vec::new(), intent_embedding: None }
    }

    /// Returns the set with carried tools. Those for which [`TOOLS_MAX`] leaves no room are left out.
    #[must_use]
    pub fn carrying(self, carried: Vec<ShownTool>) -> Self {
        let mut carried = carried;
        carried.truncate(TOOLS_MAX.saturating_sub(self.tools.len()));
        Self { carried, ..self }
    }

    /// Returns all tools that may be called: the active set, and the carried ones.
    pub fn callable(&self) -> impl Iterator<Item = &ShownTool> {
        self.tools.iter().chain(&self.carried)
    }

    /// Returns the set with the quantized embedding of the intent it was chosen for.
    #[must_use]
    pub fn with_embedding(self, intent_embedding: Option<QuantizedEmbedding>) -> Self {
        Self { intent_embedding, ..self }
    }

    /// Returns true if the set has expired at `now`.
    #[must_use]
    pub fn has_expired(&self, now: SystemTime) -> bool {
        seconds(now) >= self.expires
    }

    /// Encodes the handle: base64url of version, expiry, revision, the quantized embedding if there is one, the number of
    /// carried tools if there are any, the tools and an HMAC-SHA-256 tag (RFC 2104).
    #[must_use]
    pub fn seal(&self, key: &HandleKey, holder: Holder<'_>) -> String {
        let mut bytes = Vec::with_capacity(HEADER + self.tools.len() * ENTRY + TAG);
        bytes.push(match (self.intent_embedding.is_some(), self.carried.is_empty()) {
            (false, true) => VERSION,
            (true, true) => WITH_EMBEDDING,
            (false, false) => CARRYING,
            (true, false) => CARRYING_WITH_EMBEDDING,
        });
        bytes.extend(self.expires.to_be_bytes());
        bytes.extend(self.revision.to_be_bytes());
        if let Some(intent_embedding) = &self.intent_embedding {
            let length = u16::try_from(intent_embedding.bytes().len());
            bytes.extend(intent_embedding.encoder());
            bytes.extend(length.expect("quantized embeddings have fewer dimensions").to_be_bytes());
            bytes.extend(intent_embedding.bytes());
        }
        if !self.carried.is_empty() {
            let number = u16::try_from(self.carried.len());
            bytes.extend(number.expect("a handle has fewer tools").to_be_bytes());
        }
        for tool in self.callable() {
            bytes.extend(tool.id);
            bytes.extend(tool.definition);
        }
        let tag = mac(key.bytes(), holder, &bytes).finalize().into_bytes();
        bytes.extend(tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a handle and verifies its signature. It does not check expiry: see [`ActiveSet::has_expired`].
    ///
    /// # Errors
    /// [`HandleError::Invalid`] for anything that [`ActiveSet::seal`] did not make for this holder with this key or the
    /// one before it. The comparison takes constant time.
    pub fn open(text: &str, key: &HandleKey, holder: Holder<'_>) -> Result<Self, HandleError> {
        if text.len() > TEXT_MAX {
            return Err(HandleError::Invalid);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| HandleError::Invalid)?;
        let length = bytes.len().checked_sub(TAG).ok_or(HandleError::Invalid)?;
        let (content, tag) = bytes.split_at(length);
        let signed = |key: &[u8]| mac(key, holder, content).verify_slice(tag).is_ok();
        if !key.verifying().any(signed) {
            return Err(HandleError::Invalid);
        }
        Self::read(content).ok_or(HandleError::Invalid)
    }

    fn read(content: &[u8]) -> Option<Self> {
        let (version, rest) = content.split_first()?;
        let (expires, rest) = rest.split_first_chunk::<8>()?;
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let (intent_embedding, rest) = match *version {
            VERSION | CARRYING => (None, rest),
            WITH_EMBEDDING | CARRYING_WITH_EMBEDDING => read_embedding(rest)
                .map(|(intent_embedding, rest)| (Some(intent_embedding), rest))?,
            _ => return None,
        };
        let is_carrying = matches!(*version, CARRYING | CARRYING_WITH_EMBEDDING);
        let (carried, rest) = if is_carrying { read_number(rest)? } else { (0, rest) };
        let (entries, remainder) = rest.as_chunks::<ENTRY>();
        if !remainder.is_empty() || entries.len() > TOOLS_MAX {
            return None;
        }
        let tool = |entry: &[u8; ENTRY]| {
            let (id, definition) = entry.split_first_chunk::<HALF>()?;
            Some(ShownTool { id: *id, definition: definition.try_into().ok()? })
        };
        let (tools, carried) = entries.split_at_checked(entries.len().checked_sub(carried)?)?;
        Some(Self {
            expires: u64::from_be_bytes(*expires),
            revision: Revision::from_be_bytes(*revision),
            tools: tools.iter().map(tool).collect::<Option<_>>()?,
            carried: carried.iter().map(tool).collect::<Option<_>>()?,
            intent_embedding,
        })
    }
}

/// Reads the number of carried tools, which is not 0.
fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<2>()?;
    let number = u16::from_be_bytes(*number);
    (number > 0).then_some((number.into(), rest))
}

fn read_embedding(bytes: &[u8]) -> Option<(QuantizedEmbedding, &[u8])> {
    let (encoder, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (values, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    Some((QuantizedEmbedding::read(*encoder, values)?, rest))
}

impl Holder<'_> {
    /// Returns a pseudonym for the principal, for use in stored data. Without the key, it does not reveal the
    /// principal. The same principal has different pseudonyms in different tenants. All zero while authentication is
    /// off.
    #[must_use]
    pub fn principal_key(self, key: &HandleKey) -> PrincipalKey {
        if self.principal.is_empty() {
            return PrincipalKey::default();
        }
        let digest: [u8; 32] =
            mac_for(b"toolgate principal\0", key.bytes(), self, &[]).finalize().into_bytes().into();
        digest.first_chunk().copied().unwrap_or_default()
    }
}

fn mac(key: &[u8], holder: Holder<'_>, content: &[u8]) -> Hmac<Sha256> {
    mac_for(b"toolgate active set\0", key, holder, content)
}

pub(super) fn mac_for(
    use_of: &[u8],
    key: &[u8],
    holder: Holder<'_>,
    content: &[u8],
) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(use_of);
    // Lengths precede the names, so that no two holders give the same input.
    for name in [holder.tenant.as_str(), holder.principal] {
        mac.update(&(name.len() as u64).to_be_bytes());
        mac.update(name.as_bytes());
    }
    mac.update(content);
    mac
}

fn first_half(hash: &ContentHash) -> [u8; HALF] {
    hash.first_chunk().copied().unwrap_or_default()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("a tenant")
    }

    fn key(byte: u8) -> HandleKey {
        HandleKey::from_bytes(&[byte; 32]).expect("a key")
    }

    fn set(tools: usize) -> ActiveSet {
        let byte = |i: usize| u8::try_from(i % 251).unwrap_or(0);
        let tool = |i| ShownTool { id: [byte(i); HALF], definition: [byte(i + 1); HALF] };
        let tools = (0..tools).map(tool).collect();
        ActiveSet::new(7, tools, SystemTime::UNIX_EPOCH, Duration::from_secs(60))
    }

    #[test]
    fn a_handle_says_what_was_sealed() {
        let key = key(1);
        let a = tenant("a");
        let holder = Holder { tenant: &a, principal: "p" };
        let intent_embedding = |dimensions| QuantizedEmbedding::of([3; 8], &vec![0.5; dimensions]);
        for intent_embedding in
            [None, intent_embedding(1), intent_embedding(384), intent_embedding(DIMENSIONS_MAX)]
        {
            for tools in [0, 1, 10, TOOLS_MAX] {
                for carried in [0, 1, TOOLS_MAX] {
                    let carried = self::set(carried).tools;
                    let set = set(tools).with_embedding(intent_embedding.clone());
                    let set = set.carrying(carried);
                    assert_eq!(ActiveSet::open(&set.seal(&key, holder), &key, holder), Ok(set));
                }
            }
        }
        assert_eq!(set(TOOLS_MAX + 1).tools.len(), TOOLS_MAX);
    }

    #[test]
    fn an_entry_says_its_form_and_how_long_it_stays() {
        let [one, other] = [[0xA5; 32], [0x5A; 32]];
        for routes in 0..=HELD_MAX {
            let whole = ShownTool::new([1; HALF], &one).held_for(routes);
            let brief = ShownTool::by_signature([1; HALF], &one).held_for(routes);
            for (shown, is_signature) in [(whole, false), (brief, true)] {
                assert!(shown.is_of(&one) && !shown.is_of(&other));
                assert_eq!(shown.is_signature_of(&one), is_signature);
                assert_eq!((shown.routes_held(&one), shown.routes_held(&other)), (routes, 0));
            }
        }
    }

    #[test]
    fn other_holders_and_keys_are_refused() {
        let other = key(2);
        let key = key(1);
        let a = tenant("a");
        let ab = tenant("ab");
        let text = set(3).seal(&key, Holder { tenant: &a, principal: "bc" });
        let open = |key: &HandleKey, tenant, principal| {
            ActiveSet::open(&text, key, Holder { tenant, principal })
        };
        assert!(open(&key, &a, "bc").is_ok());
        assert!(open(&key, &ab, "c").is_err());
        assert!(open(&key, &a, "").is_err());
        assert!(open(&other, &a, "bc").is_err());
    }

    #[test]
    fn the_key_before_verifies_and_never_signs() {
        let old = key(1);
        let new = key(2);
        let a = tenant("a");
        let holder = Holder { tenant: &a, principal: "p" };
        let of_old = set(3).seal(&old, holder);
        let rotated = new.clone().after(old.clone());
        assert_eq!(ActiveSet::open(&of_old, &rotated, holder), Ok(set(3)));
        let of_rotated = set(3).seal(&rotated, holder);
        assert_eq!(ActiveSet::open(&of_rotated, &new, holder), Ok(set(3)));
        assert!(ActiveSet::open(&of_rotated, &old, holder).is_err());
        assert!(ActiveSet::open(&of_old, &new, holder).is_err());
        let other = Holder { tenant: &a, principal: "q" };
        assert!(ActiveSet::open(&of_old, &rotated, other).is_err());
    }

    #[test]
    fn a_handle_is_longer_by_an_imprint_only_where_there_is_one() {
        let key = key(1);
        let a = tenant("a");
        let holder = Holder { tenant: &a, principal: "" };
        let bytes =
            |set: &ActiveSet| URL_SAFE_NO_PAD.decode(set.seal(&key, holder)).expect("base64");
        let plain = bytes(&set(3));
        assert_eq!((plain[0], plain.len()), (1, HEADER + 3 * ENTRY + TAG));
        let intent_embedding = QuantizedEmbedding::of([3; 8], &[0.5; 384]);
        let with = bytes(&set(3).with_embedding(intent_embedding));
        assert_eq!((with[0], with.len()), (2, plain.len() + 8 + 2 + 384));
    }

    #[test]
    fn principals_are_told_apart_and_not_by_name() {
        let one = key(1);
        let other = key(2);
        let a = tenant("a");
        let b = tenant("b");
        let of =
            |key: &HandleKey, tenant, principal| Holder { tenant, principal }.principal_key(key);
        let all = [of(&one, &a, "p"), of(&one, &a, "q"), of(&one, &b, "p"), of(&other, &a, "p")];
        for (place, key) in all.iter().enumerate() {
            assert!(!all[..place].contains(key) && *key != [0; 8], "{place}");
        }
        assert_eq!(of(&one, &a, ""), [0; 8]);
    }

    #[test]
    fn expiry() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(!set(1).has_expired(at(59)));
        assert!(set(1).has_expired(at(60)));
    }

    proptest! {
        #[test]
        fn forged_text_is_refused(text in ".{0,400}", flip in 0usize..1_000, bit in 0u8..6) {
            let key = key(7);
            let a = tenant("a");
            let holder = Holder { tenant: &a, principal: "" };
            prop_assert!(ActiveSet::open(&text, &key, holder).is_err());
            let sealed = set(4).seal(&key, holder);
            let mut bytes = URL_SAFE_NO_PAD.decode(&sealed).expect("base64");
            let at = flip % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert!(ActiveSet::open(&URL_SAFE_NO_PAD.encode(bytes), &key, holder).is_err());
        }
    }
}
