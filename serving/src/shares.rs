//! Division of a limited amount, such as places or bytes, by connection and by tenant. No connection and no tenant can
//! take all of it, not even the first.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// Ratio of an owner's share to the amount that is still free, at most: dynamic thresholds (Choudhury and Hahne,
/// IEEE/ACM Transactions on Networking 6(2), 1998), the rule that admission uses for calls. One owner alone gets four
/// fifths, and an owner that holds nothing always finds some.
const OF_WHAT_IS_FREE: usize = 4;

/// Holder of a share, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// Number of the connection.
    pub connection: Option<u64>,
    /// Tenant whose credential the request carries.
    pub tenant: Option<Arc<str>>,
}

/// Amount that owners share.
#[derive(Debug, Clone)]
pub struct Shares {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    of_connections: HashMap<u64, usize>,
    of_tenants: HashMap<Arc<str>, usize>,
}

/// Part of the amount; dropping it gives it back.
#[derive(Debug)]
pub struct Share {
    state: Arc<Mutex<State>>,
    owner: Owner,
    amount: usize,
}

impl Shares {
    /// Creates an amount that is entirely free.
    #[must_use]
    pub fn new(total: usize) -> Self {
        let state =
            State { free: total, of_connections: HashMap::new(), of_tenants: HashMap::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Takes `amount` for `owner`; returns `None` when less is free, or when the owner has its whole share.
    #[must_use]
    pub fn take(&self, owner: &Owner, amount: usize) -> Option<Share> {
        let mut state = self.state.lock();
        if !state.may_take(owner, amount) {
            return None;
        }
        state.add(owner, amount);
        Some(Share { state: Arc::clone(&self.state), owner: owner.clone(), amount })
    }

    /// Returns the amount that is free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.state.lock().free
    }
}

impl Share {
    /// Returns the amount that this share holds.
    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Grows the share by `more`. Returns false, and changes nothing, when the limit forbids it.
    pub fn grow(&mut self, more: usize) -> bool {
        let mut state = self.state.lock();
        let grown = state.may_take(&self.owner, more);
        if grown {
            state.add(&self.owner, more);
            self.amount += more;
        }
        grown
    }

    /// Splits off `amount`, or everything if it holds less.
    #[must_use]
    pub fn split(&mut self, amount: usize) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self { state: Arc::clone(&self.state), owner: self.owner.clone(), amount }
    }

    /// Counts the share for `tenant` too; returns false when that tenant has its whole share. A share that already
    /// counts for a tenant does not change.
    pub fn count_for(&mut self, tenant: &Arc<str>) -> bool {
        if self.owner.tenant.is_some() {
            return true;
        }
        let mut state = self.state.lock();
        let held = state.of_tenants.get(tenant).copied().unwrap_or_default();
        // The amount of this share would be free without it.
        let free = state.free.saturating_add(self.amount);
        if held >= free.saturating_mul(OF_WHAT_IS_FREE) {
            return false;
        }
        *state.of_tenants.entry(Arc::clone(tenant)).or_default() += self.amount;
        self.owner.tenant = Some(Arc::clone(tenant));
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.state.lock().give_back(&self.owner, self.amount);
    }
}

impl State {
    fn may_take(&self, owner: &Owner, amount: usize) -> bool {
        let due = self.free.saturating_mul(OF_WHAT_IS_FREE);
        let of_connection = owner.connection.and_then(|id| self.of_connections.get(&id));
        let of_tenant = owner.tenant.as_ref().and_then(|tenant| self.of_tenants.get(tenant));
        let has_due = [of_connection, of_tenant].into_iter().flatten().any(|held| *held >= due);
        amount == 0 || (amount <= self.free && !has_due)
    }

    fn add(&mut self, owner: &Owner, amount: usize) {
        self.free -= amount;
        if let Some(id) = owner.connection {
            *self.of_connections.entry(id).or_default() += amount;
        }
        if let Some(tenant) = &owner.tenant {
            *self.of_tenants.entry(Arc::clone(tenant)).or_default() += amount;
        }
    }

    fn give_back(&mut self, owner: &Owner, amount: usize) {
        self.free += amount;
        if let Some(id) = owner.connection {
            lessen(&mut self.of_connections, &id, amount);
        }
        if let Some(tenant) = &owner.tenant {
            lessen(&mut self.of_tenants, tenant, amount);
        }
    }
}

/// Lessens what `owner` holds, and removes an owner that holds nothing.
fn lessen<K: Hash + Eq>(held: &mut HashMap<K, usize>, owner: &K, amount: usize) {
    if let Some(known) = held.get_mut(owner) {
        *known = known.saturating_sub(amount);
        if *known == 0 {
            held.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(connection: u64, tenant: Option<&str>) -> Owner {
        Owner { connection: Some(connection), tenant: tenant.map(Arc::from) }
    }

    fn take_all(shares: &Shares, owner: &Owner) -> Vec<Share> {
        std::iter::from_fn(|| shares.take(owner, 1)).collect()
    }

    #[test]
    fn one_connection_leaves_some_for_others() {
        let shares = Shares::new(100);
        let greedy = take_all(&shares, &owner(1, None));
        assert_eq!(greedy.len(), 80);
        let other = take_all(&shares, &owner(2, None));
        assert_eq!(other.len(), 16);
        drop((greedy, other));
        assert_eq!(shares.free(), 100);
        let state = shares.state.lock();
        assert!(state.of_connections.is_empty(), "who holds nothing is forgotten");
    }

    #[test]
    fn one_tenant_leaves_some_for_others_however_many_connections_it_has() {
        let shares = Shares::new(100);
        let greedy: Vec<_> =
            (0..100).filter_map(|id| shares.take(&owner(id, Some("greedy")), 1)).collect();
        assert_eq!(greedy.len(), 80);
        assert!(shares.take(&owner(200, Some("other")), 1).is_some());
    }

    #[test]
    fn a_tenant_that_is_known_later_counts_all_the_same() {
        let shares = Shares::new(100);
        let tenant: Arc<str> = "greedy".into();
        let mut held = Vec::new();
        for id in 0..200 {
            let Some(mut share) = shares.take(&owner(id, None), 1) else { continue };
            if share.count_for(&tenant) {
                held.push(share);
            }
        }
        assert_eq!(held.len(), 80);
        let mut other = shares.take(&owner(300, None), 1).expect("some is left");
        assert!(other.count_for(&"other".into()));
    }

    #[test]
    fn what_is_split_or_grown_is_given_back_once() {
        let shares = Shares::new(10);
        let mut share = shares.take(&owner(1, Some("a")), 4).expect("there is enough");
        let part = share.split(3);
        assert_eq!((share.amount(), part.amount(), shares.free()), (1, 3, 6));
        assert!(share.grow(2) && !share.grow(5));
        drop(part);
        assert_eq!(shares.free(), 7);
        drop(share);
        assert_eq!(shares.free(), 10);
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let shares = Shares::new(10);
        assert!(shares.take(&owner(1, None), 11).is_none());
        assert!(shares.take(&owner(1, None), 10).is_some());
        assert!(shares.take(&Owner::default(), 0).is_some());
    }
}
