//! Places that are reserved for the MCP servers that were called last. A short message that leans on an earlier one often
//! goes on with what was called, and says too little to find the next tool among all servers.

use fixedbitset::FixedBitSet;

use crate::router::allow::Allowed;
use crate::router::intent::Intent;
use crate::router::query::RouteQuery;
use crate::router::ranking::rank::{Candidate, Embedded, FoundBy, sort};
use crate::router::ranking::recent;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;

/// Number of MCP servers, the last called ones, whose tools have reserved places.
const SERVERS: usize = 2;

/// Tenths of `top_k` that are reserved. Of 4 to 7 tenths, 6 were chosen on `tests/data/conversations/dev.jsonl`;
/// docs/conversations.md has what they are worth on others.
const TENTHS: usize = 6;

/// Marks the best tools of the MCP servers that were called last as [`Candidate::is_reserved`], and adds those that are
/// missing at the end. Does nothing if no intent leans on an earlier message, if words, a threshold for each tool or a learned
/// gate decide, or if nothing was called. Tools of untrusted servers get no reserved place, and named ones need none.
///
/// # Errors
/// [`Error::Internal`] when an embedding does not fit the index.
pub(super) fn reserve(
    snapshot: &Snapshot,
    embedded: &Embedded<'_>,
    query: &RouteQuery,
    allowed: &Allowed,
    candidates: &mut Vec<Candidate>,
) -> Result<(), Error> {
    let options = &query.options;
    let places = options.top_k * TENTHS / 10;
    let leans = query.intents.iter().any(Intent::is_context);
    let by_ratio = options.ratio.is_some() && options.learned.is_none();
    if places == 0 || !leans || !by_ratio || embedded.is_words_only(snapshot) {
        return Ok(());
    }
    let servers = recent::last_servers(snapshot, &query.state, SERVERS);
    let tools = trusted_tools(snapshot, allowed, &servers);
    if tools.is_clear() {
        return Ok(());
    }
    let least = candidates.last().map_or(f32::INFINITY, |one| one.score);
    let mut ranked = embedded.rank(snapshot, places, Some(&tools))?;
    // A name that many tools share means one of few here.
    ranked.retain(|one| one.found_by != FoundBy::Name);
    for one in ranked.into_iter().take(places) {
        match candidates.iter_mut().find(|known| known.slot == one.slot) {
            Some(known) => known.is_reserved = true,
            None => candidates.push(Candidate {
                score: one.score.min(least),
                leads: false,
                is_reserved: true,
                ..one
            }),
        }
    }
    sort(snapshot, candidates);
    Ok(())
}

/// Returns the allowed tools of these servers that are not untrusted.
fn trusted_tools(snapshot: &Snapshot, allowed: &Allowed, servers: &[&ServerName]) -> FixedBitSet {
    let slots = servers.iter().filter_map(|name| snapshot.servers.get(*name)).flatten().copied();
    let may_be_chosen = |slot: &u32| allowed.contains(*slot) && !snapshot.tool(*slot).untrusted;
    let mut tools = FixedBitSet::with_capacity(snapshot.tools.len());
    tools.extend(slots.filter(may_be_chosen).map(|slot| slot as usize));
    tools
}
