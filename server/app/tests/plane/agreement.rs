//! Tests on generated states, policies and catalogs. For every tool, Route, Gate and a slow reference evaluator must
//! agree. The reference shares no code with the others: it uses the `cel` crate's interpreter and plain loops.
//! `TOOLGATE_AGREEMENT_CASES` sets the number of cases.

mod generate;
mod reference;

use std::collections::BTreeMap;

use toolgate_core::state::AgentState;
use toolgate_routing::gate::calls::Call;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::query::{Options, RouteQuery};

use crate::support::{World, ask, call, options};
use generate::{Case, Random};
use reference::Reference;

const CASES_DEFAULT: usize = 5_000;

/// Number of states that are tested with each pair of a policy and a catalog.
const STATES: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stands {
    Open,
    Locked,
    Hidden,
}

type Visibilities = BTreeMap<String, Stands>;

#[tokio::test]
async fn route_gate_and_a_reference_agree() {
    let cases = std::env::var("TOOLGATE_AGREEMENT_CASES").ok();
    let cases = cases.map_or(CASES_DEFAULT, |text| text.parse().expect("a number"));
    let world = World::new().await;
    let mut random = Random::new(20_261_120);
    let mut seen: BTreeMap<Stands, usize> = BTreeMap::new();
    for n in 0..cases.div_ceil(STATES) {
        let tenant = format!("t{n}");
        let case = Case::generate(&mut random);
        for registration in case.registrations() {
            world.register(&tenant, registration).await;
        }
        let document = case.document();
        if let Err(error) = world.set_policy(&tenant, &document, "").await {
            panic!("{document}\n{error}");
        }
        let everything = handle_of_all(&world, &tenant, &case).await;
        let reference = Reference::new(&case);
        for _ in 0..STATES {
            let state = random.state();
            let expected = reference.visibilities(&state);
            let routed = routed(&world, &tenant, &state, &case).await;
            assert_eq!(routed, expected, "Route\n{document}\n{state:?}");
            let gated = gated(&world, &tenant, &everything, &state, &case).await;
            assert_eq!(gated, expected, "Gate\n{document}\n{state:?}");
            expected.values().for_each(|stands| *seen.entry(*stands).or_default() += 1);
        }
    }
    // Cases that are all alike would prove nothing.
    let tools: usize = seen.values().sum();
    assert!(seen.len() == 3 && seen.values().all(|count| count * 20 > tools), "{seen:?}");
}

/// Returns a handle that includes every tool, as if it was made before the policy was set.
async fn handle_of_all(world: &World, tenant: &str, case: &Case) -> String {
    let document = case.document();
    world.set_policy(tenant, "{}", "").await.unwrap();
    let unlocked = Random::everything();
    let names: Vec<_> = case.tools.iter().map(|tool| tool.model_name()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let found = world.schemas(tenant, &names, &unlocked, "").await.unwrap();
    assert_eq!(found.tools.len(), names.len(), "{:?}", found.refusals);
    world.set_policy(tenant, &document, "").await.unwrap();
    found.handle
}

async fn routed(world: &World, tenant: &str, state: &AgentState, case: &Case) -> Visibilities {
    let options = Options { explain: true, threshold: -1.0, top_k: 100, ..options() };
    let query = RouteQuery { options, state: state.clone(), ..ask("tool") };
    let answer = world.route(tenant, query).await;
    let name = |slot: u32| answer.snapshot.tool(slot).model_name.to_string();
    let mut visibilities: Visibilities =
        case.tools.iter().map(|tool| (tool.model_name(), Stands::Hidden)).collect();
    for active in &answer.active {
        visibilities.insert(name(active.chosen.slot), Stands::Open);
    }
    for refusal in &answer.refusals {
        assert_eq!(refusal.code, RefusalCode::PreconditionUnmet);
        assert!(!refusal.unlock.is_empty());
        visibilities.insert(name(refusal.slot.expect("a known tool")), Stands::Locked);
    }
    visibilities
}

async fn gated(
    world: &World,
    tenant: &str,
    handle: &str,
    state: &AgentState,
    case: &Case,
) -> Visibilities {
    let names: Vec<_> = case.tools.iter().map(|tool| tool.model_name()).collect();
    let calls: Vec<Call> = names.iter().map(|name| call(name)).collect();
    let (_, verdicts) = world.gate(tenant, handle, calls, state.clone()).await;
    let stands = |verdict: &toolgate_routing::gate::verdict::Verdict| match verdict {
        Ok(_) => Stands::Open,
        Err(refused) => match refused.code {
            RefusalCode::PreconditionUnmet => Stands::Locked,
            RefusalCode::ScopeMissing | RefusalCode::UnknownTool => Stands::Hidden,
            other => panic!("{other:?}: {}", refused.message),
        },
    };
    names.into_iter().zip(verdicts.iter().map(stands)).collect()
}
