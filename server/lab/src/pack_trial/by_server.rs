//! Effect of packs on servers that have none, and on servers that have one. The packs of one group of servers after
//! another are left out.

use std::collections::BTreeSet;

use super::bed::{Ask, Bed, Placed};
use super::hits::{Pair, hits, mean};
use super::left_out::leave_out;
use super::requests::Requests;
use crate::random::Random;
use toolgate_core::error::Error;
use toolgate_core::identity::ToolId;

/// Query with its expected tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Text of the query.
    pub text: String,
    /// Expected tools; any of them counts as a hit.
    pub relevant: Vec<ToolId>,
}

/// Hits of texts for servers whose packs are left out, and for the other servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ByServer {
    /// Hits of each text while the packs of its servers are left out.
    pub(super) left_out: Vec<Pair>,
    /// Hits of each text while those packs are present and others are left out.
    pub(super) others: Vec<Pair>,
    /// Number of queries that were skipped: they expect servers without a pack, or servers of several groups.
    pub(super) passed_over: usize,
}

/// Leaves out the packs of one group of servers at a time. `folds` is the number of groups, and `seed` decides which
/// pack is in which. Tests the `queries` if there are any, else the requests of the packs. A tested request is never
/// part of its tool's index. `without` holds the positions of the requests or queries without any pack.
///
/// # Errors
/// Returns an internal error if the index is defective.
pub(super) async fn by_server(
    bed: &Bed<'_>,
    requests: &Requests,
    queries: &[Query],
    without: &[Placed],
    folds: usize,
    seed: u64,
) -> Result<ByServer, Error> {
    let parts = deal(requests.packs(), folds, seed);
    if queries.is_empty() {
        of_requests(bed, requests, without, &parts, folds).await
    } else {
        of_queries(bed, requests, queries, without, &parts, folds).await
    }
}

/// Assigns each pack to a group.
fn deal(packs: usize, folds: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..packs).collect();
    Random::new(seed).shuffle(&mut order);
    let mut parts = vec![0; packs];
    for (place, pack) in order.into_iter().enumerate() {
        parts[pack] = place % folds;
    }
    parts
}

async fn of_requests(
    bed: &Bed<'_>,
    requests: &Requests,
    without: &[Placed],
    parts: &[usize],
    folds: usize,
) -> Result<ByServer, Error> {
    let mut found = ByServer::default();
    let mut others = vec![None; requests.all.len()];
    for part in 0..folds {
        let has_pack = |pack: usize| parts[pack] != part;
        let snapshot = bed.snapshot(&requests.kept(has_pack, |_| true)).await?;
        let own = requests.all.iter().zip(without).filter(|(one, _)| !has_pack(one.pack));
        let (asked, before): (Vec<Ask<'_>>, Vec<&Placed>) =
            own.map(|(one, before)| ((one.text.as_str(), &*one.own), before)).unzip();
        let placed = bed.places(&snapshot, &asked)?;
        found.left_out.extend(before.iter().zip(&placed).map(|(before, now)| pair(before, now)));
        // The requests of the preceding group are tested while this group is left out, so each is tested once.
        let is_next = |pack: usize| (parts[pack] + 1) % folds == part;
        leave_out(bed, requests, (&has_pack, &|one| is_next(one.pack)), &mut others).await?;
    }
    let placed = without.iter().zip(&others);
    found.others = placed.filter_map(|(before, now)| Some(pair(before, now.as_ref()?))).collect();
    Ok(found)
}

fn pair(without: &Placed, with: &Placed) -> Pair {
    Pair { without: hits(without), with: hits(with) }
}

async fn of_queries(
    bed: &Bed<'_>,
    requests: &Requests,
    queries: &[Query],
    without: &[Placed],
    parts: &[usize],
    folds: usize,
) -> Result<ByServer, Error> {
    let of_query = |query: &Query| -> Option<BTreeSet<usize>> {
        let pack = |id: &ToolId| requests.pack_of(&id.server).map(|pack| parts[pack]);
        query.relevant.iter().map(pack).collect()
    };
    let asked: Vec<Ask<'_>> =
        queries.iter().map(|query| (query.text.as_str(), &*query.relevant)).collect();
    let mut placed = Vec::with_capacity(folds);
    for part in 0..folds {
        let kept = requests.kept(|pack| parts[pack] != part, |_| true);
        placed.push(bed.places(&bed.snapshot(&kept).await?, &asked)?);
    }
    let mut found = ByServer::default();
    for (place, (query, before)) in queries.iter().zip(without).enumerate() {
        let own = of_query(query).filter(|own| own.len() == 1);
        let Some(own) = own else {
            found.passed_over += 1;
            continue;
        };
        let of = |is_left_out: bool| -> Vec<_> {
            let wanted = (0..folds).filter(|part| own.contains(part) == is_left_out);
            wanted.map(|part| hits(&placed[part][place])).collect()
        };
        let pair = |with| Pair { without: hits(before), with };
        found.left_out.extend(mean(&of(true)).map(pair));
        found.others.extend(mean(&of(false)).map(pair));
    }
    Ok(found)
}
