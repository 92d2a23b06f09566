//! Memory that is bounded in number and in bytes, so that no tenant takes another's place.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Most that a memory holds, of all tenants together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) entries: usize,
    /// Bytes as [`Bounded::insert`] is told of them.
    pub(crate) bytes: usize,
}

/// Entries of tenants, by a key. Where there is no place for one more, the tenant that has most loses the older half of its
/// own.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    bounds: Bounds,
    entries: HashMap<K, Entry<V>>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    tenant: Arc<str>,
    value: V,
    bytes: usize,
    used: u64,
}

/// Amount that one tenant holds, in the measure that is scarce.
struct Holding<'a> {
    tenant: &'a Arc<str>,
    amount: usize,
}

impl<K: Hash + Eq, V> Bounded<K, V> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, entries: HashMap::new(), bytes: 0, clock: 0 }
    }

    /// Returns an entry, which counts as used.
    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(&mut entry.value)
    }

    /// Returns true if there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps an entry of so many bytes in the place of the one of its key. It is not kept if it is larger than all that is
    /// held, or if no other tenant holds more than this one would.
    pub(crate) fn insert(&mut self, tenant: &Arc<str>, key: K, value: V, bytes: usize) {
        self.remove(&key);
        if bytes > self.bounds.bytes {
            return;
        }
        while self.is_full_for(bytes) {
            if !self.make_place(tenant, bytes) {
                return;
            }
        }
        self.clock += 1;
        self.bytes += bytes;
        let entry = Entry { tenant: Arc::clone(tenant), value, bytes, used: self.clock };
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    fn is_full_for(&self, bytes: usize) -> bool {
        self.has_all_entries() || self.bytes + bytes > self.bounds.bytes
    }

    fn has_all_entries(&self) -> bool {
        self.entries.len() >= self.bounds.entries
    }

    /// Drops the older half of the tenant that gives way. Returns false if that is `tenant`, and it has none.
    fn make_place(&mut self, tenant: &Arc<str>, bytes: usize) -> bool {
        let by_number = self.has_all_entries();
        let amount = |bytes| if by_number { 1 } else { bytes };
        let held = self.entries.values().map(|entry| (&entry.tenant, amount(entry.bytes)));
        let victim = gives_way(held, tenant, amount(bytes));
        let of_victim = self.entries.values().filter(|entry| entry.tenant == victim);
        // Half at once, so that this is rare.
        let mut used: Vec<u64> = of_victim.map(|entry| entry.used).collect();
        used.sort_unstable();
        let Some(last) = used.get(used.len() / 2).copied() else { return false };
        let bytes = &mut self.bytes;
        self.entries.retain(|_, entry| {
            let stays = entry.tenant != victim || entry.used > last;
            *bytes -= if stays { 0 } else { entry.bytes };
            stays
        });
        true
    }
}

/// Returns the tenant that gives way when `own` wants `more` and finds no place: the one that holds most. Where none holds more
/// than `own` would, it is `own` itself. So no tenant loses to one that has as much.
pub(crate) fn gives_way<'a>(
    held: impl Iterator<Item = (&'a Arc<str>, usize)>,
    own: &Arc<str>,
    more: usize,
) -> Arc<str> {
    let mut holdings: HashMap<&str, Holding<'_>> = HashMap::new();
    for (tenant, amount) in held {
        holdings.entry(tenant).or_insert(Holding { tenant, amount: 0 }).amount += amount;
    }
    let wanted = holdings.get(&**own).map_or(0, |holding| holding.amount) + more;
    let most = holdings.into_values().max_by_key(|holding| holding.amount);
    most.filter(|most| most.amount > wanted)
        .map_or_else(|| Arc::clone(own), |most| Arc::clone(most.tenant))
}

#[cfg(test)]
impl<K, V> Bounded<K, V> {
    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    #[test]
    fn no_tenant_loses_to_one_that_has_as_much() {
        let gives_way = |held: &[(&str, usize)], own: &str| {
            let named: Vec<_> = held.iter().map(|(name, amount)| (tenant(name), *amount)).collect();
            let held = named.iter().map(|(name, amount)| (name, *amount));
            super::gives_way(held, &tenant(own), 1).to_string()
        };
        assert_eq!(gives_way(&[("a", 4)], "b"), "a");
        assert_eq!(gives_way(&[("a", 4)], "a"), "a");
        assert_eq!(gives_way(&[("a", 2), ("b", 1)], "b"), "b");
        assert_eq!(gives_way(&[("a", 1), ("b", 1), ("a", 2)], "b"), "a");
        assert_eq!(gives_way(&[("a", 1), ("b", 1), ("c", 2)], "d"), "c");
        assert_eq!(gives_way(&[("a", 1), ("b", 1)], "c"), "c", "who has least is not heard first");
    }

    #[test]
    fn entries_are_bounded_by_bytes_with_shares_by_tenant() {
        let mut bounded = Bounded::new(Bounds { entries: 100, bytes: 1_000 });
        bounded.insert(&tenant("b"), 0, "b's", 100);
        for number in 1..=50 {
            bounded.insert(&tenant("a"), number, "a's", 300);
            assert!(bounded.bytes <= 1_000, "{}", bounded.bytes);
        }
        assert!(bounded.get(&0).is_some(), "who holds least loses nothing");
        assert!(bounded.get(&50).is_some(), "the newest is there");
        bounded.insert(&tenant("b"), 100, "b's", 1_001);
        assert!(bounded.get(&100).is_none(), "it is larger than all");
        assert!(bounded.get(&50).is_some(), "nothing is lost for it");
        bounded.insert(&tenant("b"), 50, "another", 10);
        let held: usize = bounded.entries.values().map(|entry| entry.bytes).sum();
        assert_eq!(bounded.bytes, held);
    }

    #[test]
    fn entries_are_bounded_by_number_and_the_older_go_first() {
        let mut bounded = Bounded::new(Bounds { entries: 4, bytes: 1_000 });
        for number in 0..4 {
            bounded.insert(&tenant("a"), number, (), 1);
        }
        assert!(bounded.get(&0).is_some());
        bounded.insert(&tenant("a"), 4, (), 1);
        let left: Vec<bool> = (0..5).map(|number| bounded.get(&number).is_some()).collect();
        assert_eq!(left, [true, false, false, false, true]);
        assert_eq!(bounded.len(), 2);
    }
}
