//! Tests of MCP servers that are announced before their tools are known.

use toolgate_core::identity::ServerName;
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::router::query::{Options, RouteQuery};

use crate::support::{Setup, World, ask, found, granted, look_for, options, server, shown, tool};

/// Announces a server. Its other settings count only if it is new.
fn announced(name: &str, scopes: &[&str]) -> Registration {
    let mut registration = server(name, Vec::new());
    registration.body = Vec::new().into();
    registration.mode = toolgate_routing::catalog::plan::Mode::Merge;
    registration.server.pending = true;
    registration.server.required_scopes = scopes.iter().map(|s| (*s).to_owned()).collect();
    registration
}

async fn pending(world: &World) -> (Vec<String>, Vec<String>) {
    let routed = world.route("acme", ask("anything")).await;
    let searched = world.search("acme", look_for("+nothing")).await;
    (routed.pending, searched.pending)
}

#[tokio::test]
async fn announced_servers_are_named_until_their_tools_are_there() {
    let world = World::new().await;
    let none = Vec::<String>::new();
    world.register("acme", announced("slack", &[])).await;
    assert_eq!(pending(&world).await, (vec!["slack".to_owned()], vec!["slack".to_owned()]));
    let empty = world.search("acme", look_for("send message")).await;
    assert!(found(&empty).is_empty());
    assert!(empty.message.contains("still connecting: slack"), "{}", empty.message);
    let world = world.restarted(Setup::default()).await;
    assert_eq!(pending(&world).await.0, ["slack"], "a restart forgets nothing");
    // Naming the server is not an error, although it has no tools yet.
    let only = Options { servers: vec![ServerName::parse("slack").unwrap()], ..options() };
    let answer = world.route("acme", RouteQuery { options: only, ..ask("send") }).await;
    assert!(answer.active.is_empty());
    world.register("acme", server("slack", vec![tool("send", "send message")])).await;
    assert_eq!(pending(&world).await, (none.clone(), none));
    assert_eq!(shown(&world.route("acme", ask("send message")).await), ["send"]);
}

#[tokio::test]
async fn unregistering_ends_it_and_repeating_changes_nothing() {
    let world = World::new().await;
    let first = world.register("acme", announced("slack", &[])).await;
    assert_eq!(world.register("acme", announced("slack", &[])).await, first);
    world.unregister("acme", "slack").await.unwrap();
    assert!(pending(&world).await.0.is_empty());
}

#[tokio::test]
async fn tools_and_their_guards_stay_while_a_server_connects_again() {
    let world = World::new().await;
    let mut guarded = server("vault", vec![tool("key", "open vault")]);
    guarded.server.required_scopes = vec!["admin".to_owned()];
    world.register("acme", guarded).await;
    world.register("acme", server("s", vec![tool("x", "x")])).await;
    world.register("acme", announced("vault", &[])).await;
    let nobody = world.route("acme", ask("open vault")).await;
    assert_eq!((shown(&nobody), nobody.pending), (vec![], vec![]), "still guarded, still hidden");
    let admin = RouteQuery { state: granted(&["admin"]), ..ask("open vault") };
    let admin = world.route("acme", admin).await;
    assert_eq!((shown(&admin), admin.pending), (vec!["key".to_owned()], vec!["vault".to_owned()]));
}

#[tokio::test]
async fn a_guarded_announcement_is_hidden() {
    let world = World::new().await;
    world.register("acme", announced("vault", &["admin"])).await;
    assert!(pending(&world).await.0.is_empty());
    let admin = RouteQuery { state: granted(&["admin"]), ..ask("x") };
    assert_eq!(world.route("acme", admin).await.pending, ["vault"]);
    assert!(world.try_route("beta", ask("x")).await.is_err(), "another tenant has no catalog");
}

#[tokio::test]
async fn the_policy_hides_announcements_too() {
    let world = World::new().await;
    for name in ["slack", "vault", "closed", "shut"] {
        world.register("acme", announced(name, &[])).await;
    }
    let document = "rules:
      - {name: a, match: {servers: [vau*]}, required_scopes: [admin]}
      - {name: b, match: {servers: [closed]}, denied: true}
      - {name: d, match: {servers: [shut], tools: ['*']}, denied: true}
      - {name: c, match: {servers: [slack], tools: [send]}, denied: true}";
    world.set_policy("acme", document, "").await.unwrap();
    let slack = vec!["slack".to_owned()];
    assert_eq!(
        pending(&world).await,
        (slack.clone(), slack),
        "a rule on some tools hides no server"
    );
    let admin = RouteQuery { state: granted(&["admin"]), ..ask("x") };
    assert_eq!(world.route("acme", admin).await.pending, ["slack", "vault"]);
    let only = Options { servers: vec![ServerName::parse("closed").unwrap()], ..options() };
    let asked = world.try_route("acme", RouteQuery { options: only, ..ask("x") }).await;
    assert!(asked.is_err(), "as if it had never been announced");
}
