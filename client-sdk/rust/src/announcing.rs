//! Telling the model what it can search for: the whole list once, then only what changed. Announcements go at
//! the end of the history and stay there, so that the cached prefix before them holds. After a compaction, when
//! they are gone, begin again.

use std::collections::HashSet;

use toolgate_proto::v1::SummaryEntry;

use crate::layout::one_line;

/// What to tell the model this turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Announcement {
    /// True when this is the whole list.
    pub full: bool,
    /// What can be searched for and was not announced; an empty summary stands for the name alone.
    pub added: Vec<SummaryEntry>,
    /// Names that were announced and are neither searchable nor loaded now, in their order.
    pub removed: Vec<String>,
    /// Every name that the model has been told of and that is still there; for the next turn.
    pub announced: Vec<String>,
}

impl Announcement {
    /// The text to append to the history; empty when there is nothing to tell.
    #[must_use]
    pub fn text(&self) -> String {
        let tag = if self.full { "searchable-tools" } else { "searchable-tools-added" };
        let lines: Vec<String> = self.added.iter().map(line).collect();
        let added = tagged(tag, &lines);
        let removed = tagged("searchable-tools-removed", &self.removed);
        added.into_iter().chain(removed).collect::<Vec<_>>().join("\n")
    }
}

/// What changed since the last announcement. `searchable` are the tools that a search can find, `loaded` the
/// names of those whose definitions the model has: they need no search, and are not reported as removed.
/// `announced` is the last announcement's; `None` when the model has been told nothing.
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

/// One line each, whatever a summary holds.
fn line(entry: &SummaryEntry) -> String {
    let summary = one_line(&entry.summary);
    if summary.is_empty() {
        return entry.model_name.clone();
    }
    format!("{}: {summary}", entry.model_name)
}
