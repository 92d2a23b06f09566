//! "Did you mean": the search for the known name nearest to an unknown one. Independent of the kind of names.

use strsim::osa_distance;

/// Returns the candidate that `name` was probably meant to be; `None` if none is near.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let allowed = (length / 4).clamp(1, 4);
    candidates
        // At least as many letters must be added or removed as the lengths differ.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        // Two letters in the other order are one mistake.
        .map(|candidate| (osa_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_offered() {
        let names = ["server.listen", "server.admin_listen", "log.level"];
        let near = |name| nearest(name, names.into_iter());
        assert_eq!(near("server.lisen"), Some("server.listen"));
        assert_eq!(near("log.levle"), Some("log.level"));
        assert_eq!(nearest("gti", ["time", "git"].into_iter()), Some("git"));
        assert_eq!(
            nearest("got", ["go", "git"].into_iter()),
            Some("go"),
            "the first of the near ones"
        );
        assert_eq!(near("log.levél"), Some("log.level"), "characters are counted, not bytes");
        assert_eq!(near("zebra"), None);
        assert_eq!(near(""), None);
    }
}
