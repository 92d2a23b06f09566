//! Tests of the caps of a policy's defaults and of untrusted MCP servers.

use super::*;
use crate::test_catalog::{TestTool, candidate, snapshot, tool};
use toolgate_core::policy::Choosing;

/// Returns six tools: slots 0 to 3 of `far`, 4 and 5 of `own`.
fn tools() -> [TestTool; 6] {
    [
        tool("far", "a"),
        tool("far", "b"),
        tool("far", "c"),
        tool("far", "d"),
        tool("own", "e"),
        tool("own", "f"),
    ]
}

/// Gives the six tools at most `places` places, in the order of their slots.
fn shared<'a>(caps: Caps<'a>, snapshot: &'a Snapshot, places: usize) -> Vec<u32> {
    let ordered = (0..6).map(|slot| candidate(slot, 0.5));
    caps.share(snapshot, ordered, places).iter().map(|one| one.slot).collect()
}

#[test]
fn a_policy_caps_the_tools_of_each_mcp_server() {
    let snapshot = snapshot(&tools(), &[]);
    for (max, slots) in [(1, vec![0, 4]), (2, vec![0, 1, 4, 5]), (0, vec![])] {
        let defaults = Choosing { max_per_server: Some(max), ..Choosing::default() };
        let policy = Policy { defaults, rules: Vec::new() };
        let caps = Caps::new(&policy, UntrustedCaps::default(), 10);
        assert_eq!(shared(caps, &snapshot, 10), slots, "{max}");
    }
}

#[test]
fn without_caps_the_places_go_by_rank() {
    let snapshot = snapshot(&tools(), &[]);
    let policy = Policy::default();
    let caps = Caps::new(&policy, UntrustedCaps::default(), 3);
    assert_eq!(shared(caps, &snapshot, 3), [0, 1, 2]);
    assert!(!Caps::exist(&snapshot));
}

#[test]
fn untrusted_tools_have_half_of_the_places_while_others_want_them() {
    let snapshot = snapshot(&tools(), &["far"]);
    assert!(Caps::exist(&snapshot));
    let policy = Policy::default();
    let share =
        |places| shared(Caps::new(&policy, UntrustedCaps::default(), places), &snapshot, places);
    assert_eq!(share(4), [0, 1, 4, 5], "two of four");
    assert_eq!(share(2), [0, 4], "one of two");
    assert_eq!(share(1), [0], "never less than one");
    assert_eq!(share(6), [0, 1, 2, 4, 5, 3], "the rest where nobody else wants a place");
}

#[test]
fn one_untrusted_mcp_server_has_a_cap_of_its_own() {
    let snapshot = snapshot(&tools(), &["far"]);
    let policy = Policy::default();
    let strict = UntrustedCaps { per_server: 1, active: 5 };
    assert_eq!(shared(Caps::new(&policy, strict, 10), &snapshot, 10), [0, 4, 5]);
    let mut caps = Caps::new(&policy, strict, 10);
    assert_eq!(caps.reached(&snapshot, 0), None);
    caps.count(&snapshot, 0);
    assert_eq!(caps.reached(&snapshot, 1), Some("safety.untrusted_max_per_server"));
    assert_eq!(caps.reached(&snapshot, 4), None);
    let mut few = Caps::new(&policy, UntrustedCaps { per_server: 5, active: 1 }, 10);
    few.count(&snapshot, 0);
    assert_eq!(few.reached(&snapshot, 1), Some("safety.untrusted_max_active"));
}
