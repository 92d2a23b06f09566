//! "Did you mean": the search for the known name nearest to an unknown one. Independent of the kind of names.

/// Returns the candidate that `name` was probably meant to be; `None` if none is near.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let allowed = (length / 4).clamp(1, 4);
    candidates
        // At least as many letters must be added or removed as the lengths differ.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the Levenshtein distance in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, to) in right.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, want) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3)] {
            assert_eq!(distance(left, right), want, "{left} {right}");
        }
    }

    #[test]
    fn only_near_names_are_offered() {
        let names = ["server.listen", "server.admin_listen", "log.level"];
        let near = |name| nearest(name, names.into_iter());
        assert_eq!(near("server.lisen"), Some("server.listen"));
        assert_eq!(near("log.levle"), Some("log.level"));
        assert_eq!(near("zebra"), None);
        assert_eq!(near(""), None);
    }
}
