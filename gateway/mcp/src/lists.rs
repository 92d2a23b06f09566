//! Lists of tools, written once: the text of a list that many ask for is kept.

use std::collections::VecDeque;

use axum::body::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::raw::list_of;

/// Most bytes of the texts of lists that are kept.
const KEPT_MAX: usize = 32 << 20;

/// Most lists that are kept.
const LISTS_MAX: usize = 256;

/// SHA-256 of what a list is made of.
pub(crate) type ListKey = [u8; 32];

/// Texts of lists that somebody asked for, JSON arrays, the latest first.
#[derive(Default)]
pub(crate) struct Lists(Mutex<VecDeque<KeptList>>);

/// Text of a list, a JSON array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) text: Bytes,
    /// Number of its items.
    pub(crate) count: usize,
}

struct KeptList {
    key: ListKey,
    list: List,
}

impl List {
    /// Returns the list of JSON texts.
    pub(crate) fn of(items: &[impl AsRef<str>]) -> Self {
        Self { text: Bytes::from(list_of(items)), count: items.len() }
    }
}

impl Lists {
    pub(crate) fn get(&self, key: &ListKey) -> Option<List> {
        let mut lists = self.0.lock();
        let place = lists.iter().position(|kept| kept.key == *key)?;
        let kept = lists.remove(place)?;
        let list = kept.list.clone();
        lists.push_front(kept);
        Some(list)
    }

    pub(crate) fn keep(&self, key: ListKey, list: List) {
        let mut lists = self.0.lock();
        lists.retain(|kept| kept.key != key);
        lists.push_front(KeptList { key, list });
        let mut bytes = 0;
        let fits = |kept: &KeptList| {
            bytes += kept.list.text.len();
            bytes <= KEPT_MAX
        };
        let kept = lists.iter().take(LISTS_MAX).map(fits).take_while(|fits| *fits).count();
        lists.truncate(kept);
    }
}

/// Returns the key of a list that is made of these texts, in their order.
pub(crate) fn key<'t>(texts: impl IntoIterator<Item = &'t str>) -> ListKey {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_that_were_asked_for_last_are_kept() {
        let lists = Lists::default();
        let large = List { text: Bytes::from(vec![b'x'; KEPT_MAX / 2]), count: 1 };
        let keys = ["a", "b", "c"].map(|name| key([name]));
        lists.keep(keys[0], large.clone());
        lists.keep(keys[1], large.clone());
        assert!(lists.get(&keys[0]).is_some(), "both fit");
        lists.keep(keys[2], large);
        let kept = keys.map(|key| lists.get(&key).is_some());
        assert_eq!(kept, [true, false, true]);
        for number in 0..=LISTS_MAX {
            lists.keep(key([number.to_string().as_str()]), List::of(&[""; 0]));
        }
        assert_eq!(lists.0.lock().len(), LISTS_MAX);
        assert!(lists.get(&key(["0"])).is_none());
    }

    #[test]
    fn keys_know_where_a_text_ends() {
        assert_ne!(key(["ab", "c"]), key(["a", "bc"]));
        assert_eq!(key(["ab", "c"]), key(["ab", "c"]));
    }
}
