//! Announcements of searchable tools to the model: the whole list once, then only the changes. They go at the end of
//! the history and stay there, so that the cached prefix before them remains valid. After a compaction, which removes
//! them, begin again with the whole list.

use std::collections::HashSet;

use toolgate_proto::v1::SummaryEntry;

use crate::layout::one_line;

/// Announcement for the model in this turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Announcement {
    /// True if this is the whole list.
    pub full: bool,
    /// Searchable tools that were not announced yet. An entry with an empty summary is announced by name only.
    pub added: Vec<SummaryEntry>,
    /// Announced names that are no longer searchable or loaded, in the order of their announcement.
    pub removed: Vec<String>,
    /// Every announced name that still exists. Pass it to [`announce`] in the next turn.
    pub announced: Vec<String>,
}

impl Announcement {
    /// Returns the text to append to the history. It is empty if nothing changed.
    #[must_use]
    pub fn text(&self) -> String {
        let tag = if self.full { "searchable-tools" } else { "searchable-tools-added" };
        let lines: Vec<String> = self.added.iter().map(line).collect();
        let added = tagged(tag, &lines);
        let removed = tagged("searchable-tools-removed", &self.removed);
        added.into_iter().chain(removed).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the changes since the last announcement. `searchable` are the tools that a search can find. `loaded` are the
/// names of the tools whose definitions the model has: they need no search, and are not reported as removed.
/// `announced` comes from the last announcement; pass `None` if nothing was announced yet.
#[must_use]
pub fn announce(
    searchable: &[SummaryEntry],
    loaded: &[&str],
    announced: Option<&[String]>,
) -> Announcement {
    let full = announced.is_none();
    let loaded: HashSet<&str> = loaded.iter().copied().collect();
    let named = searchable.iter().map(|entry| entry.model_name.as_str());
    let there: HashSet<&str> = named.chain(loaded.iter().copied()).collect();
    let mut told = HashSet::new();
    let known = announced.unwrap_or_default().iter().filter(|name| told.insert(name.as_str()));
    let (kept, removed): (Vec<String>, Vec<String>) =
        known.cloned().partition(|name| there.contains(name.as_str()));
    let mut added: Vec<SummaryEntry> = Vec::new();
    for entry in searchable {
        let name = entry.model_name.as_str();
        if !loaded.contains(name) && told.insert(name) {
            added.push(entry.clone());
        }
    }
    let announced = kept.into_iter().chain(added.iter().map(|entry| entry.model_name.clone()));
    Announcement { full, announced: announced.collect(), added, removed }
}

fn tagged(tag: &str, lines: &[String]) -> Option<String> {
    let body = lines.join("\n");
    (!lines.is_empty()).then(|| format!("<{tag}>\n{body}\n</{tag}>"))
}

/// Formats an entry as one line, even if its summary has several.
fn line(entry: &SummaryEntry) -> String {
    let summary = one_line(&entry.summary);
    if summary.is_empty() {
        return entry.model_name.clone();
    }
    format!("{}: {summary}", entry.model_name)
}
