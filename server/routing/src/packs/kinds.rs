//! Kinds of requests for one tool. People want a tool for different reasons, and the mean of all requests is near to
//! none of them in particular. The embeddings are grouped into a few kinds, and the centroid of each is kept.

/// Maximum number of kinds of one tool.
pub(super) const KINDS_MAX: usize = 3;

/// Rounds of grouping. The ten requests of a tool need fewer.
const ROUNDS: usize = 20;

/// Returns the centroids of the kinds at unit length, one after another: at most [`KINDS_MAX`] rows. Equal embeddings
/// give equal centroids in every run. Empty if the embeddings differ in length.
pub(super) fn of(vectors: &[Vec<f32>]) -> Vec<f32> {
    let dimensions = vectors.first().map_or(0, Vec::len);
    if vectors.iter().any(|vector| vector.len() != dimensions) {
        return Vec::new();
    }
    let mut centroids = distant(vectors);
    for _ in 0..ROUNDS {
        let mut sums = vec![vec![0.0_f32; dimensions]; centroids.len()];
        for vector in vectors {
            let sum = &mut sums[nearest(&centroids, vector).0];
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
        }
        // A kind that lost all of its requests keeps its centroid.
        let moved = sums.into_iter().zip(&centroids);
        let moved: Vec<_> =
            moved.map(|(sum, old)| unit(&sum).unwrap_or_else(|| old.clone())).collect();
        if moved == centroids {
            break;
        }
        centroids = moved;
    }
    centroids.concat()
}

/// Returns the mean, over some requests, of the overlap with the nearest of the centroids; 0 without either.
pub(super) fn nearness(centroids: &[f32], requests: &[Vec<f32>]) -> f32 {
    let best = |request: &Vec<f32>| {
        let rows = centroids.chunks_exact(request.len().max(1));
        rows.map(|row| product(row, request)).reduce(f32::max)
    };
    requests.iter().filter_map(best).sum::<f32>() / requests.len().max(1) as f32
}

/// Returns the first embedding and then, again and again, the one that is farthest from those chosen.
fn distant(vectors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let mut chosen: Vec<Vec<f32>> = vectors.iter().take(1).cloned().collect();
    while chosen.len() < KINDS_MAX.min(vectors.len()) {
        let by_nearness =
            |a: &&Vec<f32>, b: &&Vec<f32>| nearest(&chosen, a).1.total_cmp(&nearest(&chosen, b).1);
        let Some(farthest) = vectors.iter().min_by(by_nearness) else { break };
        chosen.push(farthest.clone());
    }
    chosen
}

/// Returns the place of the nearest centroid, the first among equals, and the overlap with it.
fn nearest(centroids: &[Vec<f32>], vector: &[f32]) -> (usize, f32) {
    let overlaps = centroids.iter().map(|centroid| product(centroid, vector)).enumerate();
    overlaps.fold((0, f32::NEG_INFINITY), |best, one| if one.1 > best.1 { one } else { best })
}

/// Returns the vector at unit length, or `None` if it has no direction.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = product(vector, vector).sqrt();
    let has_direction = length.is_finite() && length > f32::EPSILON;
    has_direction.then(|| vector.iter().map(|value| value / length).collect())
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_kind_share_a_centroid() {
        let at = |degrees: f32| vec![degrees.to_radians().cos(), degrees.to_radians().sin()];
        let found = of(&[at(0.0), at(10.0), at(90.0), at(100.0), at(200.0), at(20.0)]);
        let mut angles: Vec<f32> = found
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[x, y]| y.atan2(*x).to_degrees().rem_euclid(360.0).round())
            .collect();
        angles.sort_by(f32::total_cmp);
        assert_eq!(angles, [10.0, 95.0, 200.0]);
    }

    #[test]
    fn few_requests_are_kinds_of_their_own() {
        assert_eq!(of(&[vec![0.0, 1.0]]), [0.0, 1.0]);
        assert_eq!(of(&[vec![0.0, 1.0], vec![1.0, 0.0]]), [0.0, 1.0, 1.0, 0.0]);
        assert!(of(&[]).is_empty() && of(&[vec![1.0], vec![]]).is_empty());
        let same = of(&vec![vec![1.0, 0.0]; 5]);
        assert!(same.iter().all(|value| value.is_finite()), "{same:?}");
    }

    #[test]
    fn nearness_is_that_of_the_nearest_kind() {
        let kinds = [1.0, 0.0, 0.0, 1.0];
        let requests = [vec![0.6, 0.8], vec![1.0, 0.0]];
        assert!((nearness(&kinds, &requests) - 0.9).abs() < 1e-6);
        assert!(nearness(&[], &requests).abs() < 1e-6 && nearness(&kinds, &[]).abs() < 1e-6);
    }
}
