//! Each request as an intent, its tool having all requests but this one. One request of every tool is left out at a
//! time: its own tool does without it, as it should, and the others do without one of theirs, so that nobody gains by it.

use super::bed::{Ask, Bed, Placed};
use super::requests::{Request, Requests};
use toolgate_core::error::Error;

/// Where the tools of those requests stand that `wanted` names; `None` for the others.
///
/// # Errors
/// A defect of the index.
pub async fn left_one_out(
    bed: &Bed<'_>,
    requests: &Requests,
    wanted: impl Fn(&Request) -> bool,
) -> Result<Vec<Option<Placed>>, Error> {
    let mut placed = vec![None; requests.all.len()];
    leave_out(bed, requests, (&|_| true, &wanted), &mut placed).await?;
    Ok(placed)
}

/// Which packs there are, and which requests are asked.
pub(super) type Chosen<'a> = (&'a dyn Fn(usize) -> bool, &'a dyn Fn(&Request) -> bool);

/// The same with the packs of some places alone.
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
