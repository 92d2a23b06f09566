//! Searches that led to calls: which tools each principal was shown by its newest searches, until a call or time decides
//! whether they were of use. It is kept in memory only: what is open when the process ends is counted as neither.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::amounts::Amounts;
use toolgate_core::identity::{TenantId, ToolKey};

/// Calls behind a search among which one of a tool that it showed makes it a hit.
const HIT_WITHIN: usize = 5;

/// Maximum number of open searches of a principal.
const OPEN_MAX: usize = HIT_WITHIN + 1;

/// Time after which a search without such a call is a miss.
const OPEN_FOR: Duration = Duration::from_secs(60 * 60);

/// Maximum number of tools that are kept of a search. A search by names may show hundreds.
const TOOLS_MAX: usize = 32;

/// Number of independent locks.
const PARTS: usize = 16;

/// Maximum number of principals with open searches in each part.
const PRINCIPALS_MAX: usize = 1_024;

/// Open searches of all principals.
#[derive(Default)]
pub(super) struct Searches {
    parts: [Mutex<Part>; PARTS],
    hasher: RandomState,
}

#[derive(Default)]
struct Part {
    tenants: HashMap<TenantId, Principals>,
    /// Number of principals of all tenants.
    principals: usize,
}

/// Open searches of a tenant's principals, oldest first.
type Principals = HashMap<Box<str>, VecDeque<OpenSearch>>;

struct OpenSearch {
    at: Instant,
    tools: Vec<ToolKey>,
    /// Calls since the search, of other tools.
    calls: usize,
}

impl Searches {
    /// Notes a search that showed these tools. Returns what it decides.
    pub(super) fn searched(
        &self,
        tenant: &TenantId,
        principal: &str,
        tools: impl Iterator<Item = ToolKey>,
        now: Instant,
    ) -> Amounts {
        let tools: Vec<ToolKey> = tools.take(TOOLS_MAX).collect();
        let mut decided = Amounts { searches: 1, ..Amounts::default() };
        if tools.is_empty() {
            decided.search_misses = 1;
            return decided;
        }
        let mut part = self.part(tenant);
        let search = OpenSearch { at: now, tools, calls: 0 };
        let open = part.open(tenant, principal);
        open.push_back(search);
        if open.len() > OPEN_MAX {
            open.pop_front();
            decided.search_misses = 1;
        }
        decided
    }

    /// Notes allowed calls, in their order. Returns what they decide.
    pub(super) fn called(
        &self,
        tenant: &TenantId,
        principal: &str,
        tools: impl Iterator<Item = ToolKey>,
    ) -> Amounts {
        let mut decided = Amounts::default();
        let mut part = self.part(tenant);
        let Some(open) = part.known(tenant, principal) else { return decided };
        for tool in tools {
            let before = open.len();
            open.retain(|search| !search.tools.contains(&tool));
            decided.search_hits += (before - open.len()) as u64;
            open.iter_mut().for_each(|search| search.calls += 1);
            let undecided = open.len();
            open.retain(|search| search.calls < HIT_WITHIN);
            decided.search_misses += (undecided - open.len()) as u64;
        }
        if open.is_empty() {
            part.forget(tenant, principal);
        }
        decided
    }

    /// Returns the misses by tenant of searches that were open for too long.
    pub(super) fn expired(&self, now: Instant) -> Vec<(TenantId, Amounts)> {
        self.parts.iter().flat_map(|part| part.lock().expired(now)).collect()
    }

    fn part(&self, tenant: &TenantId) -> MutexGuard<'_, Part> {
        let hash = self.hasher.hash_one(tenant) as usize;
        self.parts[hash % PARTS].lock()
    }
}

impl Part {
    fn known(&mut self, tenant: &TenantId, principal: &str) -> Option<&mut VecDeque<OpenSearch>> {
        self.tenants.get_mut(tenant)?.get_mut(principal)
    }

    /// Returns the open searches of a principal, for whom another leaves if there are too many.
    fn open(&mut self, tenant: &TenantId, principal: &str) -> &mut VecDeque<OpenSearch> {
        if self.known(tenant, principal).is_none() {
            if self.principals >= PRINCIPALS_MAX {
                self.make_room();
            }
            self.principals += 1;
        }
        let principals = self.tenants.entry(tenant.clone()).or_default();
        principals.entry(principal.into()).or_default()
    }

    /// Forgets the principal of the largest tenant that searched the longest ago. Its searches are never decided.
    fn make_room(&mut self) {
        let largest = self.tenants.iter().max_by_key(|(_, principals)| principals.len());
        let Some((tenant, principals)) = largest else { return };
        let idlest = principals.iter().min_by_key(|(_, open)| open.back().map(|search| search.at));
        let Some((principal, _)) = idlest else { return };
        let tenant = tenant.clone();
        let principal = principal.clone();
        self.forget(&tenant, &principal);
    }

    fn forget(&mut self, tenant: &TenantId, principal: &str) {
        let Some(principals) = self.tenants.get_mut(tenant) else { return };
        if principals.remove(principal).is_some() {
            self.principals -= 1;
        }
        if principals.is_empty() {
            self.tenants.remove(tenant);
        }
    }

    fn expired(&mut self, now: Instant) -> Vec<(TenantId, Amounts)> {
        let mut expired = Vec::new();
        for (tenant, principals) in &mut self.tenants {
            let mut misses = 0;
            principals.retain(|_, open| {
                let before = open.len();
                open.retain(|search| now.duration_since(search.at) < OPEN_FOR);
                misses += (before - open.len()) as u64;
                !open.is_empty()
            });
            if misses > 0 {
                let amounts = Amounts { search_misses: misses, ..Amounts::default() };
                expired.push((tenant.clone(), amounts));
            }
        }
        self.tenants.retain(|_, principals| !principals.is_empty());
        self.principals = self.tenants.values().map(HashMap::len).sum();
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("a tenant")
    }

    fn key(tool: u8) -> ToolKey {
        let mut key = ToolKey::default();
        key[0] = tool;
        key
    }

    struct World {
        searches: Searches,
        begin: Instant,
    }

    impl World {
        fn new() -> Self {
            Self { searches: Searches::default(), begin: Instant::now() }
        }

        /// Returns the searches, hits and misses of a search.
        fn search(&self, of: (&str, &str), tools: &[u8]) -> (u64, u64, u64) {
            let keys = tools.iter().map(|tool| key(*tool));
            told(&self.searches.searched(&tenant(of.0), of.1, keys, self.begin))
        }

        fn call(&self, of: (&str, &str), tools: &[u8]) -> (u64, u64, u64) {
            let keys = tools.iter().map(|tool| key(*tool));
            told(&self.searches.called(&tenant(of.0), of.1, keys))
        }

        fn principals(&self) -> usize {
            self.searches.parts.iter().map(|part| part.lock().principals).sum()
        }
    }

    fn told(amounts: &Amounts) -> (u64, u64, u64) {
        (amounts.searches, amounts.search_hits, amounts.search_misses)
    }

    const ANN: (&str, &str) = ("acme", "ann");

    #[test]
    fn a_call_within_five_makes_a_search_a_hit_once() {
        let world = World::new();
        assert_eq!(world.search(ANN, &[1, 2]), (1, 0, 0));
        assert_eq!(world.call(ANN, &[9, 9, 9, 9, 2]), (0, 1, 0));
        assert_eq!(world.call(ANN, &[2]), (0, 0, 0));
        world.search(ANN, &[1]);
        assert_eq!(world.call(ANN, &[9, 9, 9, 9, 9, 1]), (0, 0, 1));
        world.search(ANN, &[1]);
        world.search(ANN, &[1, 3]);
        assert_eq!(world.call(ANN, &[1]), (0, 2, 0));
        assert_eq!(world.principals(), 0);
    }

    #[test]
    fn a_search_is_its_principals() {
        let world = World::new();
        world.search(ANN, &[1]);
        assert_eq!(world.call(("acme", "bob"), &[1]), (0, 0, 0));
        assert_eq!(world.call(("other", "ann"), &[1]), (0, 0, 0));
        assert_eq!(world.call(ANN, &[1]), (0, 1, 0));
    }

    #[test]
    fn what_shows_nothing_or_is_passed_by_is_a_miss() {
        let world = World::new();
        assert_eq!(world.search(ANN, &[]), (1, 0, 1));
        for _ in 0..OPEN_MAX {
            assert_eq!(world.search(ANN, &[1]), (1, 0, 0));
        }
        assert_eq!(world.search(ANN, &[2]), (1, 0, 1));
    }

    #[test]
    fn an_hour_without_a_call_is_a_miss() {
        let world = World::new();
        world.search(ANN, &[1]);
        world.search(("acme", "bob"), &[1]);
        assert!(world.searches.expired(world.begin + OPEN_FOR / 2).is_empty());
        let expired = world.searches.expired(world.begin + OPEN_FOR);
        let expired: Vec<_> = expired.iter().map(|(of, amounts)| (of, told(amounts))).collect();
        assert_eq!(expired, [(&tenant("acme"), (0, 0, 2))]);
        assert_eq!(world.call(ANN, &[1]), (0, 0, 0));
        assert_eq!(world.principals(), 0);
    }

    #[test]
    fn principals_are_bounded_and_the_largest_tenant_gives_way() {
        let world = World::new();
        let mut part = Part::default();
        let open = |part: &mut Part, of: &str, principal: &str| {
            let search = OpenSearch { at: world.begin, tools: vec![key(1)], calls: 0 };
            part.open(&tenant(of), principal).push_back(search);
        };
        open(&mut part, "small", "ann");
        for principal in 0..PRINCIPALS_MAX * 2 {
            open(&mut part, "large", &principal.to_string());
        }
        assert_eq!(part.principals, PRINCIPALS_MAX);
        assert!(part.known(&tenant("small"), "ann").is_some());
    }
}
