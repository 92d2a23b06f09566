//! Trial of each request while its tool has all other requests but this one. One request of every tool is left out at
//! the same time. The right tool lacks the tested request, and the other tools also lack one of theirs, so no tool
//! gains an advantage.

use super::bed::{Ask, Bed, Placed};
use super::requests::{Request, Requests};
use toolgate_core::error::Error;

/// Returns the position of the right tool for each request that `wanted` selects, and `None` for the others.
///
/// # Errors
/// Returns an internal error if the index is defective.
pub async fn left_one_out(
    bed: &Bed<'_>,
    requests: &Requests,
    wanted: impl Fn(&Request) -> bool,
) -> Result<Vec<Option<Placed>>, Error> {
    let mut placed = vec![None; requests.all.len()];
    leave_out(bed, requests, (&|_| true, &wanted), &mut placed).await?;
    Ok(placed)
}

/// Filter of the packs in use, and filter of the requests to test.
pub(super) type Chosen<'a> = (&'a dyn Fn(usize) -> bool, &'a dyn Fn(&Request) -> bool);

/// Tests the chosen requests with the chosen packs, and writes their positions into `placed`.
pub(super) async fn leave_out(
    bed: &Bed<'_>,
    requests: &Requests,
    (packs, wanted): Chosen<'_>,
    placed: &mut [Option<Placed>],
) -> Result<(), Error> {
    let numbered = || requests.all.iter().enumerate().filter(|(_, request)| wanted(request));
    let rounds = numbered().map(|(_, request)| request.round + 1).max().unwrap_or(0);
    for round in 0..rounds {
        let kept = requests.kept(packs, |request| request.round != round);
        let snapshot = bed.snapshot(&kept).await?;
        let (places, asked): (Vec<usize>, Vec<Ask<'_>>) = numbered()
            .filter(|(_, request)| request.round == round)
            .map(|(place, request)| (place, (request.text.as_str(), &*request.own)))
            .unzip();
        for (place, found) in places.into_iter().zip(bed.places(&snapshot, &asked)?) {
            placed[place] = Some(found);
        }
    }
    Ok(())
}
