//! Parts of a catalog that are searched separately: untrusted tools, and the tools of trusted and standard MCP servers.
//! Separate searches keep a party that registers many similar tools from taking all places of a search.

use std::borrow::Cow;

use fixedbitset::FixedBitSet;

use crate::shard::snapshot::Snapshot;

/// Maximum number of untrusted tools that one search finds in addition to the others.
const UNTRUSTED_POOL: usize = 20;

/// Tools that are searched together.
pub(in crate::router) struct Part<'a> {
    /// Slots of the tools that may be found; `None` for all.
    pub(in crate::router) allowed: Option<Cow<'a, FixedBitSet>>,
    /// Maximum number of tools found.
    pub(in crate::router) pool: usize,
}

impl<'a> Part<'a> {
    /// Returns the parts of the allowed tools. The part that sets the scale of scores comes first and finds up to
    /// `pool` tools.
    pub(in crate::router) fn all(
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
