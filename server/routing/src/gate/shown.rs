//! Proof that a model was shown a tool's definition, for callers that keep no handle: a tag that rides in the tool's
//! name. It proves what was shown and grants nothing: visibility and arguments are checked at each call.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::Mac as _;

use super::calls::Call;
use super::handle::{ActiveSet, Holder, ShownTool, mac_for};
use super::key::HandleKey;
use super::names;
use super::visibility::{Visibilities, Visibility};
use crate::shard::snapshot::Snapshot;
use crate::shard::tool::Tool;
use toolgate_core::state::AgentState;

/// Characters of a tag, and bits of each: 30 bits in all.
const TAG_LENGTH: usize = 6;
const CHARACTER_BITS: u32 = 5;

/// Digits of a tag: those of Crockford's base32 in lower case, without the letters that look like digits.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Evidence of the tools that a model was shown.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// Handle that Route or a search returned.
    Handle(String),
    /// Tag of each call. A call without one is refused.
    Tags,
    /// Tag of each call, or none: a tool that the caller may see counts as shown.
    Catalog,
}

/// Returns the tag of a tool's definition as it is shown to a holder today: 6 characters. It is valid today and tomorrow
/// (UTC).
pub(super) fn tag(key: &HandleKey, holder: Holder<'_>, tool: &Tool, now: SystemTime) -> String {
    tag_of_day(key.bytes(), holder, tool, day(now))
}

/// Calls whose evidence is their tags, and what their verdicts depend on.
pub(super) struct TaggedCalls<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) state: &'a AgentState,
    pub(super) calls: &'a [Call],
    pub(super) key: &'a HandleKey,
    pub(super) holder: Holder<'a>,
    pub(super) now: SystemTime,
    /// True if every call needs a tag.
    pub(super) is_strict: bool,
}

impl TaggedCalls<'_> {
    /// Returns the set of tools that the calls prove to have been shown. A tool whose tag is wrong is in it with another
    /// definition, so that its call is refused as one of a changed tool.
    pub(super) fn active_set(&self) -> ActiveSet {
        let visibilities = Visibilities::of(self.snapshot, self.state);
        let is_visible = |slot| visibilities.tool(self.snapshot, slot) != Visibility::Hidden;
        let mut tools = Vec::new();
        for call in self.calls {
            let is_tagged = |slot| self.is_tagged(call, self.snapshot.tool(slot));
            let known = |slot| is_visible(slot) || is_tagged(slot);
            for slot in names::find(self.snapshot, &call.tool, known) {
                let tool = self.snapshot.tool(slot);
                if is_tagged(slot) || (call.shown_tag.is_empty() && !self.is_strict) {
                    tools.push(ShownTool::new(tool.key, &tool.hash));
                } else if !call.shown_tag.is_empty() {
                    tools.push(ShownTool::new(tool.key, &Default::default()));
                }
            }
        }
        ActiveSet {
            revision: self.snapshot.revision,
            expires: u64::MAX,
            tools,
            carried: Vec::new(),
            intent_embedding: None,
        }
    }

    fn is_tagged(&self, call: &Call, tool: &Tool) -> bool {
        let today = day(self.now);
        !call.shown_tag.is_empty()
            && self.key.verifying().any(|key| {
                [today, today.saturating_sub(1)]
                    .into_iter()
                    .any(|day| tag_of_day(key, self.holder, tool, day) == call.shown_tag)
            })
    }
}

fn day(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs() / DAY.as_secs())
}

fn tag_of_day(key: &[u8], holder: Holder<'_>, tool: &Tool, day: u64) -> String {
    let content = [&tool.key[..], &tool.hash[..], &day.to_be_bytes()[..]].concat();
    let digest = mac_for(b"toolgate shown tag\0", key, holder, &content).finalize().into_bytes();
    let bits = digest.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let digit = |place: usize| {
        let index = (bits >> (place as u32 * CHARACTER_BITS)) as usize % DIGITS.len();
        char::from(DIGITS[index])
    };
    (0..TAG_LENGTH).map(digit).collect()
}
