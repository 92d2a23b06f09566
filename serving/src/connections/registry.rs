//! Registry of open connections. It bounds their number, in total and by address, and picks the one to close when the
//! bound is reached. A connection without a valid credential has no right to its place. A tenant that holds most of the
//! places has no right to those that are idle.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::peer::Peer;

/// Limits on the number of connections and on their idle time.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Most connections of all peers together.
    pub max: usize,
    /// Most connections of one address, or of one /64 of IPv6; `None` for no such limit. Loopback is exempt, because a
    /// proxy or a sidecar may stand for everybody there.
    pub max_per_address: Option<usize>,
    /// Longest time without any request; `None` for no limit.
    pub idle: Option<Duration>,
    /// Longest time without any request for a connection that never made an authenticated call. With `None`, such
    /// connections are not closed to make room either.
    pub unproven_idle: Option<Duration>,
}

impl ConnectionLimits {
    /// Allows at most `max` connections, without any other limit.
    #[must_use]
    pub fn of(max: usize) -> Self {
        Self { max, max_per_address: None, idle: None, unproven_idle: None }
    }
}

/// Idle time after which a connection may be closed for another one.
const SPARE_AFTER: Duration = Duration::from_secs(30);

/// Reason that a connection was refused, or closed for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// The limit on all connections is reached.
    Full,
    /// The limit on connections of its address is reached.
    AddressFull,
    /// Its place was needed. It never made an authenticated call, or it was idle and its tenant holds most of the
    /// places.
    Replaced,
}

/// All open connections of a listener.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) limits: ConnectionLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    open: HashMap<u64, Entry>,
    /// Connections without an authenticated call; the oldest comes first.
    unproven: BTreeSet<u64>,
    addresses: HashMap<Network, OfAddress>,
    /// Connections by the tenant of the first credential that came over them.
    tenants: HashMap<Arc<str>, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Entry {
    network: Option<Network>,
    tenant: Option<Arc<str>>,
    peer: Peer,
}

#[derive(Debug, Default)]
struct OfAddress {
    open: usize,
    unproven: BTreeSet<u64>,
}

/// Unit that counts as one address: an address of IPv4, or the first 64 bits of one of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpAddr);

/// Slot of a connection; dropping it gives it back.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    registry: Arc<Registry>,
    id: u64,
}

/// Connection that was let in; `replaced` is true if another one was closed for it.
pub(super) struct Admitted {
    pub(super) place: ConnectionSlot,
    pub(super) peer: Peer,
    pub(super) replaced: bool,
}

impl Network {
    /// Returns the network of an address; `None` for loopback.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            address if address.is_loopback() => None,
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Some(Self(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()))
            }
            address => Some(Self(address)),
        }
    }
}

impl Registry {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    /// Lets a connection of this address in.
    ///
    /// # Errors
    /// The limit is reached, and every connection has a right to its place.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Admitted, ConnectionRefusal> {
        self.admit_at(address, Instant::now())
    }

    fn admit_at(
        self: &Arc<Self>,
        address: IpAddr,
        now: Instant,
    ) -> Result<Admitted, ConnectionRefusal> {
        let network = Network::of(address);
        let mut state = self.state();
        let of_address = network.and_then(|network| state.addresses.get(&network));
        let is_address_full = of_address
            .zip(self.limits.max_per_address)
            .is_some_and(|(known, most)| known.open >= most);
        let makes_room = self.limits.unproven_idle.is_some();
        // The same address comes first, so that one address can't push out others by opening ever more.
        let victim = match of_address {
            Some(known) if is_address_full => {
                let oldest = known.unproven.first().copied().filter(|_| makes_room);
                Some(oldest.ok_or(ConnectionRefusal::AddressFull)?)
            }
            _ if state.open.len() >= self.limits.max => {
                let oldest = || state.unproven.first().copied().or_else(|| state.spare(now));
                let victim = if makes_room { oldest() } else { None };
                Some(victim.ok_or(ConnectionRefusal::Full)?)
            }
            _ => None,
        };
        let closed = victim.and_then(|victim| state.remove(victim));
        if let Some(closed) = &closed {
            closed.peer.close();
        }
        let id = state.next;
        state.next += 1;
        let peer = Peer::new(id, network, Arc::downgrade(self));
        state.add(id, Entry { network, tenant: None, peer: peer.clone() });
        let place = ConnectionSlot { registry: Arc::clone(self), id };
        Ok(Admitted { place, peer, replaced: closed.is_some() })
    }

    /// Gives the connection a right to its place from now on, and counts it for the tenant.
    pub(super) fn prove(&self, id: u64, tenant: Option<&str>) {
        self.state().prove(id, tenant);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        drop(self.registry.state().remove(self.id));
    }
}

impl State {
    fn add(&mut self, id: u64, entry: Entry) {
        self.unproven.insert(id);
        if let Some(network) = entry.network {
            let known = self.addresses.entry(network).or_default();
            known.open += 1;
            known.unproven.insert(id);
        }
        self.open.insert(id, entry);
    }

    fn prove(&mut self, id: u64, tenant: Option<&str>) {
        self.unproven.remove(&id);
        // It may already have been closed for another one.
        let Some(entry) = self.open.get_mut(&id) else { return };
        if let Some(known) = entry.network.and_then(|network| self.addresses.get_mut(&network)) {
            known.unproven.remove(&id);
        }
        if let Some(tenant) = tenant {
            let tenant: Arc<str> = tenant.into();
            entry.tenant = Some(Arc::clone(&tenant));
            self.tenants.entry(tenant).or_default().insert(id);
        }
    }

    /// Returns the connection that has been idle for longest, of a tenant that holds more than half of all. A
    /// connection between two calls does not count as idle.
    fn spare(&self, now: Instant) -> Option<u64> {
        let of_one = self.tenants.values().max_by_key(|held| held.len())?;
        if of_one.len() * 2 <= self.open.len() {
            return None;
        }
        let idle =
            of_one.iter().filter_map(|id| Some((self.open.get(id)?.peer.idle_since()?, *id)));
        let (since, id) = idle.min()?;
        (now.saturating_duration_since(since) >= SPARE_AFTER).then_some(id)
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.open.remove(&id)?;
        self.unproven.remove(&id);
        if let Some(network) = entry.network
            && let Some(known) = self.addresses.get_mut(&network)
        {
            known.open -= 1;
            known.unproven.remove(&id);
            if known.open == 0 {
                self.addresses.remove(&network);
            }
        }
        if let Some(tenant) = &entry.tenant
            && let Some(held) = self.tenants.get_mut(tenant)
        {
            held.remove(&id);
            if held.is_empty() {
                self.tenants.remove(tenant);
            }
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(max: usize, max_per_address: usize) -> Arc<Registry> {
        let unproven_idle = Some(Duration::from_secs(30));
        let max_per_address = Some(max_per_address);
        Registry::new(ConnectionLimits { max, max_per_address, idle: None, unproven_idle })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_oldest_that_never_made_a_call_goes_when_all_places_are_taken() {
        let registry = registry(3, 3);
        let mut open = Vec::new();
        for host in 1..=3 {
            open.push(registry.admit(address(&format!("192.0.2.{host}"))).expect("a place"));
        }
        open[0].peer.prove(Some("a"));
        let new = registry.admit(address("192.0.2.9")).expect("another goes");
        assert!(new.replaced);
        let closed: Vec<_> = open.iter().map(|one| one.peer.is_closed()).collect();
        assert_eq!(closed, [false, true, false]);
        for (known, tenant) in [(&open[2], "b"), (&new, "c")] {
            known.peer.prove(Some(tenant));
        }
        let refused = registry.admit(address("192.0.2.10")).err();
        assert_eq!(refused, Some(ConnectionRefusal::Full));
        drop(open);
        assert!(registry.admit(address("192.0.2.10")).is_ok_and(|admitted| !admitted.replaced));
    }

    #[test]
    fn a_tenant_with_most_places_loses_the_one_that_is_idle_for_longest() {
        let registry = registry(5, 5);
        let admit = |host: u8, tenant| {
            let admitted = registry.admit(address(&format!("192.0.2.{host}"))).expect("a place");
            admitted.peer.prove(Some(tenant));
            admitted
        };
        let modest = [admit(1, "modest"), admit(2, "modest")];
        let greedy = [admit(3, "greedy"), admit(4, "greedy"), admit(5, "greedy")];
        let under_way = greedy[0].peer.begin_request();
        drop(greedy[1].peer.begin_request());
        let refused = registry.admit(address("192.0.2.6")).err();
        assert_eq!(refused, Some(ConnectionRefusal::Full), "all asked something a moment ago");
        let later = Instant::now() + SPARE_AFTER;
        let new = registry.admit_at(address("192.0.2.6"), later).expect("a place");
        new.peer.prove(Some("new"));
        assert!(new.replaced);
        let closed = |held: &[Admitted]| -> Vec<bool> {
            held.iter().map(|one| one.peer.is_closed()).collect()
        };
        assert_eq!(closed(&greedy), [false, false, true], "one has a call, one had one later");
        let refused = registry.admit_at(address("192.0.2.7"), later).err();
        assert_eq!(refused, Some(ConnectionRefusal::Full), "nobody has more than half");
        assert_eq!(closed(&modest), [false, false]);
        drop((under_way, greedy, modest, new));
        let state = registry.state();
        assert!(state.tenants.is_empty() && state.open.is_empty(), "who has none is forgotten");
    }

    #[test]
    fn calls_under_way_are_not_cut_off_for_others() {
        let registry = registry(2, 2);
        let held: Vec<_> =
            (1..=2).map(|host| registry.admit(address(&format!("192.0.2.{host}")))).collect();
        let mut under_way = Vec::new();
        for admitted in held.iter().flatten() {
            admitted.peer.prove(Some("greedy"));
            under_way.push(admitted.peer.begin_request());
        }
        let admit = || registry.admit_at(address("192.0.2.3"), Instant::now() + SPARE_AFTER);
        assert_eq!(admit().err(), Some(ConnectionRefusal::Full));
        under_way.pop();
        assert!(admit().is_ok_and(|admitted| admitted.replaced));
    }

    #[test]
    fn one_address_has_its_part_and_pushes_out_only_its_own() {
        let registry = registry(100, 2);
        let other = registry.admit(address("198.51.100.1")).expect("a place");
        let many: Vec<_> =
            (0..50).map(|_| registry.admit(address("192.0.2.1")).expect("a place")).collect();
        assert!(!other.peer.is_closed());
        assert_eq!(many.iter().filter(|one| !one.peer.is_closed()).count(), 2);
        for one in many.iter().rev().take(2) {
            one.peer.prove(None);
        }
        let refused = registry.admit(address("192.0.2.1")).err();
        assert_eq!(refused, Some(ConnectionRefusal::AddressFull));
        drop(many);
        assert_eq!(registry.state().addresses.len(), 1, "who has none is forgotten");
    }

    #[test]
    fn who_has_shown_a_credential_may_be_idle_for_longer() {
        let short = Duration::from_secs(30);
        let long = Duration::from_secs(300);
        let limits = ConnectionLimits {
            unproven_idle: Some(short),
            idle: Some(long),
            ..ConnectionLimits::of(8)
        };
        let registry = Registry::new(limits);
        let admitted = registry.admit(address("192.0.2.1")).expect("a place");
        let before = admitted.peer.idle_until(&limits).expect("not for ever");
        admitted.peer.prove(None);
        let after = admitted.peer.idle_until(&limits).expect("not for ever");
        assert_eq!(after - before, long - short);
    }

    #[test]
    fn what_counts_as_one_address() {
        let same = |one, other| Network::of(address(one)) == Network::of(address(other));
        assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
        for loopback in ["127.0.0.1", "127.0.0.6", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(Network::of(address(loopback)), None, "{loopback}");
        }
    }

    #[test]
    fn nobody_is_closed_where_nobody_shows_credentials() {
        let registry = Registry::new(ConnectionLimits::of(1));
        let first = registry.admit(address("192.0.2.1")).expect("a place");
        assert_eq!(registry.admit(address("192.0.2.2")).err(), Some(ConnectionRefusal::Full));
        assert!(!first.peer.is_closed());
    }
}
