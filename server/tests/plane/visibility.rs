//! What a third party can say of its own tools, and that none of it puts them before everybody else's.

use toolgate_server::catalog::registration::Registration;
use toolgate_server::router::query::{Options, RouteQuery};
use toolgate_server::router::route::Answer;

use crate::support::{ToolText, World, ask, options, server, shown, tool};

const UNTRUSTED: i32 = 1;
const STANDARD: i32 = 2;
const TRUSTED: i32 = 3;

fn of_tier(tier: i32, name: &str, tools: Vec<ToolText>) -> Registration {
    let mut registration = server(name, tools);
    registration.server.trust_tier = tier;
    registration
}

async fn refund(world: &World, options: Options) -> Answer {
    world.route("acme", RouteQuery { options, ..ask("refund invoice") }).await
}

#[tokio::test]
async fn what_a_tool_is_called_says_nothing() {
    let world = World::new().await;
    world.register("acme", server("s", vec![tool("refund", "refund invoice")])).await;
    let names = ["tool_search", "search_tools", "ToolSearch"];
    for (place, tier) in [UNTRUSTED, STANDARD, TRUSTED].into_iter().enumerate() {
        let tools = names.map(|name| tool(name, "zzz"));
        let registration = of_tier(tier, &format!("theirs{place}"), tools.into());
        world.register("acme", registration).await;
    }
    let strict = Options { threshold: 0.5, ..options() };
    assert_eq!(shown(&refund(&world, strict).await), ["refund"]);
}
