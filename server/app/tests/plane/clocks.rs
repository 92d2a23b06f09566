//! Tests that the store's clock counts, whatever the host's clock says.

use std::time::Duration;

use toolgate_core::state::AgentState;
use toolgate_routing::gate::verdict::RefusalCode;

use crate::support::{Setup, World, ask, call, server, tool};

/// Time by which the store's clock is ahead of this process, which would decide differently.
const AHEAD: Duration = Duration::from_secs(24 * 3_600);
const TTL: Duration = Duration::from_secs(3_600);

fn setup(store_ahead: Duration) -> Setup {
    Setup { store_ahead, handle_ttl: TTL, ..Setup::default() }
}

#[tokio::test]
async fn a_handle_lives_as_long_as_it_may_by_the_store_s_clock() {
    let world = World::with(setup(AHEAD)).await;
    world.register("acme", server("s", vec![tool("refund", "refund invoice")])).await;
    let handle = world.route("acme", ask("refund")).await.handle;
    let name = "mcp__s__refund";
    let taken = async |later: Duration| {
        let restarted = world.restarted(setup(AHEAD + later)).await;
        restarted.gate_one("acme", &handle, call(name), AgentState::default()).await
    };
    assert!(taken(TTL / 2).await.is_ok());
    let refused = taken(TTL + Duration::from_secs(1)).await.expect_err("its time is over");
    assert_eq!(refused.code, RefusalCode::HandleExpired);
}
