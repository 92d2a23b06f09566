//! Servers that go on though their files can't be read amid a change of the configuration.

use toolgate_upstream::Entry;

/// Puts the entry that runs in the place of one that would wait, where the file of the gateway has the same entry as before. A
/// variable can't be lost while the gateway runs, so that a file of its values is lacked: the values that it has are kept until
/// the next change.
pub(crate) fn keep_running(
    entries: &mut [Entry],
    is_unchanged: impl Fn(&str) -> bool,
    running: impl Fn(&str) -> Option<Entry>,
) {
    for entry in entries {
        let Some(problem) = entry.waits_for.take() else { continue };
        let kept = is_unchanged(&entry.name)
            .then(|| running(&entry.name))
            .flatten()
            .filter(|kept| kept.waits_for.is_none());
        match kept {
            Some(kept) => {
                let server = &entry.name;
                tracing::warn!(server, problem, "the server goes on with the values that it has");
                *entry = kept;
            }
            None => entry.waits_for = Some(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_upstream::{Limits, Upstream};

    use super::*;

    fn entry(command: &str, waits_for: Option<&str>) -> Entry {
        Entry {
            name: "a".to_owned(),
            upstream: Upstream::parse(command).expect("a command"),
            limits: Limits::default(),
            waits_for: waits_for.map(str::to_owned),
        }
    }

    #[test]
    fn a_server_whose_file_is_lost_goes_on() {
        let held = entry("x unset", Some("/token can't be read"));
        let runs = entry("x secret", None);
        let kept = |is_unchanged: bool, running: Option<&Entry>, new: &Entry| {
            let mut entries = [new.clone()];
            keep_running(&mut entries, |_| is_unchanged, |_| running.cloned());
            entries[0].clone()
        };
        assert_eq!(kept(true, Some(&runs), &held), runs);
        // Another entry, a server that did not run and a new one wait.
        assert_eq!(kept(false, Some(&runs), &held), held);
        assert_eq!(kept(true, Some(&held), &held), held);
        assert_eq!(kept(true, None, &held), held);
        // What is read again counts.
        let renewed = entry("x new", None);
        assert_eq!(kept(true, Some(&runs), &renewed), renewed);
    }
}
