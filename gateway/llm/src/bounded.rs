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
/// own, if that gives one.
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

impl<K: Copy + Hash + Eq, V> Bounded<K, V> {
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

    /// Returns true if a tenant has an entry.
    pub(crate) fn has_any_of(&self, tenant: &str) -> bool {
        self.entries.values().any(|entry| *entry.tenant == *tenant)
    }

    /// Keeps an entry of so many bytes in the place of the one of its key. It is not kept, and no other is lost for it, if it is
    /// larger than all that is held, or if no other tenant holds more than this one would.
    pub(crate) fn insert(&mut self, tenant: &Arc<str>, key: K, value: V, bytes: usize) {
        self.remove(&key);
        if self.bounds.has_no_place(self.entries.len(), self.bytes, bytes).is_some() {
            // Half at once, so that this is rare.
            let half = |entries: usize| entries.div_ceil(2);
            let Ok(victims) = give_way(self.bounds, self.held(), Newcomer { tenant, bytes }, half)
            else {
                return;
            };
            for victim in victims {
                self.remove(&victim);
            }
        }
        self.clock += 1;
        self.bytes += bytes;
        let entry = Entry { tenant: Arc::clone(tenant), value, bytes, used: self.clock };
        self.entries.insert(key, entry);
    }

    /// Forgets an entry.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    fn held(&self) -> Vec<Held<'_, K>> {
        let held = self.entries.iter().map(|(key, entry)| Held {
            key: *key,
            tenant: &entry.tenant,
            bytes: entry.bytes,
            used: entry.used,
            may_go: true,
        });
        held.collect()
    }
}

/// Bound that has no place for one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scarce {
    Entries,
    Bytes,
}

/// Entry that is held while a place is looked for.
#[derive(Debug)]
pub(crate) struct Held<'a, K> {
    pub(crate) key: K,
    pub(crate) tenant: &'a Arc<str>,
    pub(crate) bytes: usize,
    /// Time of its last use; later ones are larger.
    pub(crate) used: u64,
    /// True if it may give its place.
    pub(crate) may_go: bool,
}

/// Entry that wants a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Newcomer<'a> {
    pub(crate) tenant: &'a Arc<str>,
    pub(crate) bytes: usize,
}

impl Bounds {
    /// Returns the bound that has no place for one more of so many bytes.
    fn has_no_place(self, entries: usize, held: usize, bytes: usize) -> Option<Scarce> {
        if entries >= self.entries {
            return Some(Scarce::Entries);
        }
        (held + bytes > self.bytes).then_some(Scarce::Bytes)
    }
}

/// Returns the keys of the entries that give their places to a newcomer: of the tenant that has most, those that were not used
/// for longest. `at_once` says how many of so many go at a time.
///
/// # Errors
/// The bound for which there is no place, whatever gives way. Nothing should be lost for the newcomer then.
pub(crate) fn give_way<K>(
    bounds: Bounds,
    mut held: Vec<Held<'_, K>>,
    newcomer: Newcomer<'_>,
    at_once: fn(usize) -> usize,
) -> Result<Vec<K>, Scarce> {
    let Newcomer { tenant, bytes } = newcomer;
    if bytes > bounds.bytes {
        return Err(Scarce::Bytes);
    }
    held.sort_unstable_by_key(|entry| entry.used);
    let mut victims = Vec::new();
    loop {
        let all = held.iter().map(|entry| entry.bytes).sum();
        let Some(scarce) = bounds.has_no_place(held.len(), all, bytes) else { return Ok(victims) };
        let amount = |bytes| if scarce == Scarce::Entries { 1 } else { bytes };
        let amounts = held.iter().map(|entry| (entry.tenant, amount(entry.bytes)));
        let victim = gives_way(amounts, tenant, amount(bytes));
        let may_go = |entry: &Held<'_, K>| entry.may_go && *entry.tenant == victim;
        let count = at_once(held.iter().filter(|entry| may_go(entry)).count());
        let mut gone = 0;
        let going = held.extract_if(.., |entry| {
            let goes = gone < count && may_go(entry);
            gone += usize::from(goes);
            goes
        });
        victims.extend(going.map(|entry| entry.key));
        if gone == 0 {
            return Err(scarce);
        }
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
        assert_eq!(left, [true, false, false, true, true], "half of them");
        assert_eq!(bounded.len(), 3);
    }

    #[test]
    fn nothing_is_lost_for_an_entry_that_finds_no_place() {
        let mut bounded = Bounded::new(Bounds { entries: 100, bytes: 100 });
        bounded.insert(&tenant("a"), 1, (), 45);
        bounded.insert(&tenant("a"), 2, (), 45);
        bounded.insert(&tenant("c"), 3, (), 60);
        assert!(bounded.get(&3).is_none(), "one of 45 is less than it would have");
        assert!(bounded.get(&1).is_some() && bounded.get(&2).is_some());
        bounded.insert(&tenant("c"), 3, (), 40);
        assert!(bounded.get(&3).is_some(), "the older of 45 gives way");
        assert!(bounded.get(&1).is_none() && bounded.get(&2).is_some());
    }
}
