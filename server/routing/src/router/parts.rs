//! The parts of a catalog that are searched one by one: tools of trusted and standard MCP servers, and untrusted ones, so
//! that whoever registers many tools alike does not take all places of a search.

use std::borrow::Cow;

use fixedbitset::FixedBitSet;

use crate::shard::snapshot::Snapshot;

/// Untrusted tools that one search looks at beside the others.
const UNTRUSTED_POOL: usize = 20;

/// Tools that are searched together.
pub(super) struct Part<'a> {
    /// Which of them may be found; `None` for all.
    pub(super) allowed: Option<Cow<'a, FixedBitSet>>,
    /// The most that are found.
    pub(super) pool: usize,
}

impl<'a> Part<'a> {
    /// The parts of the allowed tools, the one that sets the scale first; `pool` of that one are looked at.
    pub(super) fn all(
        snapshot: &Snapshot,
        allowed: Option<&'a FixedBitSet>,
        pool: usize,
    ) -> Vec<Self> {
        let whole = || vec![Self { allowed: allowed.map(Cow::Borrowed), pool }];
        if snapshot.untrusted.is_clear() {
            return whole();
        }
        let mut untrusted = snapshot.untrusted.clone();
        let mut others = untrusted.clone();
        others.toggle_range(..);
        if let Some(allowed) = allowed {
            untrusted.intersect_with(allowed);
            others.intersect_with(allowed);
        }
        if others.is_clear() || untrusted.is_clear() {
            return whole();
        }
        let part = |allowed, pool| Self { allowed: Some(Cow::Owned(allowed)), pool };
        vec![part(others, pool), part(untrusted, pool.min(UNTRUSTED_POOL))]
    }
}
