//! Tests of every API that an agent can reach, on two catalogs: one with tools that the policy hides, and one that
//! never had them. Each answer must be exactly the same for both.

use std::fmt::Write as _;
use std::sync::Arc;

use toolgate_app::plane::listing::ToolPage;
use toolgate_core::identity::ServerName;
use toolgate_core::state::AgentState;
use toolgate_routing::router::answers::explain::Refusal;
use toolgate_routing::router::answers::pool::PoolDelta;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::route::{Active, Answer};
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_store::ToolCursor;

use crate::support::{Mode, World, ask, call, found, look_for, options, server, tenant, tool};

/// Policy in which `denied` exists for nobody, and `scoped` and all of `vault` only for agents with a scope that none
/// has here.
const DOCUMENT: &str = "rules:
  - {name: never, match: {tools: [denied]}, denied: true, pinned: true, always_load: true}
  - {name: staff, match: {tools: [scoped]}, required_scopes: [staff], pinned: true}
  - {name: vault, match: {servers: [vault]}, required_scopes: [vault]}";

/// Names that a caller may try, of hidden tools and of none.
const GUESSES: [&str; 9] = [
    "mcp__s__denied",
    "mcp__s__scoped",
    "mcp__vault__key",
    "s/denied",
    "s/scoped",
    "vault/key",
    "denied",
    "key",
    "mcp__s__never_there",
];

async fn world(with_hidden: bool) -> World {
    let world = World::new().await;
    let mut tools = vec![tool("open", "refund invoice"), tool("locked", "refund").after("planned")];
    // The number of changes is the same either way, so that revisions are the same.
    let mut vault = Vec::new();
    if with_hidden {
        tools.push(tool("denied", "refund invoice"));
        tools.push(tool("scoped", "refund invoice"));
        vault.push(tool("key", "refund invoice"));
    }
    world.register("acme", server("vault", vault)).await;
    world.register("acme", server("s", tools)).await;
    world.set_policy("acme", DOCUMENT, "").await.unwrap();
    world
}

fn name(snapshot: &Snapshot, slot: u32) -> String {
    snapshot.tool(slot).model_name.to_string()
}

/// Renders refusals without slots. Slots also count hidden tools, and never leave the service.
fn refused(snapshot: &Snapshot, refusals: &[Refusal]) -> String {
    let mut text = String::new();
    for refusal in refusals {
        let name = refusal.slot.map_or_else(|| refusal.asked_for.clone(), |s| name(snapshot, s));
        writeln!(text, "{name} {:?} {} {:?}", refusal.code, refusal.message, refusal.unlock)
            .unwrap();
    }
    text
}

fn routed(answer: &Answer) -> String {
    let snapshot = &answer.snapshot;
    let mut text = String::new();
    for active in &answer.active {
        let chosen = &active.chosen;
        let name = name(snapshot, chosen.slot);
        let overlap = chosen.overlap;
        let score = chosen.score;
        writeln!(text, "{name} {:?} {overlap} {score} {}", chosen.found_by, active.tokens).unwrap();
    }
    text += &refused(snapshot, &answer.refusals);
    writeln!(text, "{:?} {:?}", answer.account, answer.degraded).unwrap();
    let deferral = &answer.deferral;
    let change = &answer.change;
    writeln!(text, "{deferral:?} {change:?} {:?}", answer.pending).unwrap();
    text + &answer.pool.as_ref().map_or_else(String::new, |delta| pool(snapshot, delta))
}

fn pool(snapshot: &Snapshot, delta: &PoolDelta) -> String {
    let added: Vec<_> = delta.added.iter().map(|slot| name(snapshot, *slot)).collect();
    format!("{} {added:?} {:?} {}\n", delta.full, delta.removed, delta.pool_tokens)
}

async fn route(world: &World, options: Options) -> String {
    let query = RouteQuery {
        options: Options { explain: true, threshold: -1.0, ..options },
        known_pool_revision: Some(0),
        ..ask("refund invoice with mcp__s__denied, scoped, key and vault")
    };
    match world.try_route("acme", query).await {
        Ok(answer) => routed(&answer),
        Err(error) => format!("{error}"),
    }
}

async fn gate(world: &World, guess: &str) -> String {
    let answer = world.route("acme", ask("refund invoice")).await;
    let verdict = world.gate_one("acme", &answer.handle, call(guess), AgentState::default()).await;
    match verdict {
        Ok(allowed) => format!("{allowed:?}"),
        Err(refused) => format!("{refused:?}"),
    }
}

async fn schemas(world: &World, guess: &str) -> String {
    let found =
        world.schemas("acme", &[guess, "s/open"], &AgentState::default(), "").await.unwrap();
    let tools: Vec<_> =
        found.tools.iter().map(|tool| name(&found.snapshot, tool.chosen.slot)).collect();
    format!("{tools:?} {}", refused(&found.snapshot, &found.refusals))
}

async fn search(world: &World, query: &str) -> String {
    let answer = world.search("acme", look_for(query)).await;
    let counts = (answer.searched, answer.lacking_required);
    let scored = |active: &Active| (active.chosen.overlap, active.chosen.score);
    let scores: Vec<_> = answer.tools.iter().map(scored).collect();
    let tools = (found(&answer), scores);
    let message = &answer.message;
    let refused = refused(&answer.snapshot, &answer.refusals);
    format!("{:?} {tools:?} {message} {counts:?}\n{refused}", answer.form)
}

/// Searches that would find hidden tools, except those that name only one.
const SEARCHES: [&str; 7] = [
    "vault",
    "mcp__",
    "mcp__vault__",
    "refund",
    "+refund +denied",
    "+nothing key scoped",
    "which tool pays money back",
];

/// Lists tools in pages of one, so that the ends of pages are compared too.
async fn listed(world: &World, filter: Option<&str>) -> String {
    let server = filter.map(|name| ServerName::parse(name).unwrap());
    let mut page = ToolPage { server, after: None, size: 1 };
    let mut text = String::new();
    loop {
        let state = AgentState::default();
        let names = world.plane.list_names(&tenant("acme"), page.clone(), state.clone()).await;
        writeln!(text, "names: {names:?}").unwrap();
        let rows = match world.plane.list_tools(&tenant("acme"), page.clone(), Some(state)).await {
            Ok(rows) => rows,
            Err(error) => return format!("{text}{error}"),
        };
        let Some(record) = rows.first().map(|row| &row.record) else { return text };
        let server = record.server.as_str();
        let name = record.name.as_str();
        writeln!(text, "{server}/{name}").unwrap();
        page.after = Some(ToolCursor { server: server.to_owned(), name: name.to_owned() });
    }
}

/// Returns the answer of each API, by its name.
async fn surfaces(world: &World) -> Vec<(String, String)> {
    let named = |list: &str| vec![list.to_owned()];
    let mut said = vec![("Route".to_owned(), route(world, options()).await)];
    for guess in GUESSES {
        let pinned = Options { pinned: named(guess), ..options() };
        said.push((format!("Route, pinned {guess}"), route(world, pinned).await));
        let excluded = Options { excluded: named(guess), ..options() };
        said.push((format!("Route, excluded {guess}"), route(world, excluded).await));
        said.push((format!("Gate {guess}"), gate(world, guess).await));
        said.push((format!("BatchGetToolSchemas {guess}"), schemas(world, guess).await));
        for query in [guess.to_owned(), format!("select:{guess}"), format!("+{guess}")] {
            said.push((format!("SearchTools {query}"), search(world, &query).await));
        }
    }
    for query in SEARCHES {
        said.push((format!("SearchTools {query}"), search(world, query).await));
    }
    said.push(("ListTools".to_owned(), listed(world, None).await));
    for filter in ["vault", "s", "none"] {
        said.push((format!("ListTools {filter}"), listed(world, Some(filter)).await));
        let servers = vec![ServerName::parse(filter).unwrap()];
        let filtered = Options { servers, ..options() };
        said.push((format!("Route, server {filter}"), route(world, filtered).await));
    }
    for since in [None, Some(0), Some(1), Some(2), Some(99)] {
        let (snapshot, delta) = world.pool("acme", &AgentState::default(), since).await;
        let snapshot: Arc<Snapshot> = snapshot;
        said.push((format!("GetSummaryPool {since:?}"), pool(&snapshot, &delta)));
    }
    said
}

#[tokio::test]
async fn hidden_tools_are_nowhere() {
    // Without the encoder, tools are ranked by words, and by the rarity of these words.
    for mode in [Mode::Works, Mode::Fails] {
        let mut said = Vec::new();
        for with_hidden in [true, false] {
            let world = world(with_hidden).await;
            world.encoder.set(mode);
            said.push(surfaces(&world).await);
        }
        assert_eq!(said[0].len(), said[1].len());
        for (hidden, absent) in said[0].iter().zip(&said[1]) {
            assert_eq!(hidden, absent);
        }
    }
    // The comparison can fail: an agent with the scopes sees more.
    let world = world(true).await;
    let state = crate::support::granted(&["staff", "vault"]);
    let (_, seen) = world.pool("acme", &state, None).await;
    let (_, unseen) = world.pool("acme", &AgentState::default(), None).await;
    assert_eq!((seen.added.len(), unseen.added.len()), (4, 2));
    let page = ToolPage { server: None, after: None, size: 10 };
    let listed = async |agent| world.plane.list_tools(&tenant("acme"), page.clone(), agent).await;
    let counts = [None, Some(state), Some(AgentState::default())];
    let mut seen = Vec::new();
    for agent in counts {
        seen.push(listed(agent).await.unwrap().len());
    }
    assert_eq!(seen, [5, 4, 2], "everything, with the scopes, without");
}

#[tokio::test]
async fn names_alone_are_those_of_the_whole_list() {
    let world = world(true).await;
    for state in [AgentState::default(), crate::support::granted(&["staff", "vault"])] {
        for server in [None, Some("s"), Some("vault")] {
            let server = server.map(|name| ServerName::parse(name).expect("a name"));
            for size in 1..6 {
                let mut page = ToolPage { server: server.clone(), after: None, size };
                loop {
                    let plane = &world.plane;
                    let whole =
                        plane.list_tools(&tenant("acme"), page.clone(), Some(state.clone())).await;
                    let names =
                        plane.list_names(&tenant("acme"), page.clone(), state.clone()).await;
                    let (Ok(whole), Ok(names)) = (&whole, &names) else {
                        assert!(whole.is_err() && names.is_err(), "{page:?}");
                        break;
                    };
                    let of_whole = whole.iter().map(|row| {
                        let record = &row.record;
                        (record.server.clone(), record.name.clone(), Some(record.hash))
                    });
                    let of_names = names
                        .iter()
                        .map(|tool| (tool.id.server.clone(), tool.id.name.clone(), tool.hash));
                    assert_eq!(of_whole.collect::<Vec<_>>(), of_names.collect::<Vec<_>>());
                    let Some(last) = names.last().filter(|_| names.len() == size as usize) else {
                        break;
                    };
                    page.after = Some(ToolCursor {
                        server: last.id.server.as_str().to_owned(),
                        name: last.id.name.as_str().to_owned(),
                    });
                }
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_and_a_hidden_name_are_refused_alike() {
    let world = world(true).await;
    for ask in 0..3 {
        let answer = async |guess: &str| {
            let said = match ask {
                0 => gate(&world, guess).await,
                1 => schemas(&world, guess).await,
                _ => search(&world, &format!("select:{guess}")).await,
            };
            said.replace(guess, "NAME")
        };
        for guess in GUESSES {
            // The unknown name is as near to visible tools' names as the guess, because suggestions depend on that: none
            // of them has the first letter of a guess in its place.
            let begin = guess.rfind(['_', '/']).map_or(0, |at| at + 1);
            let unknown = format!("{}q{}", &guess[..begin], &guess[begin + 1..]);
            assert_eq!(answer(guess).await, answer(&unknown).await, "{guess}");
        }
    }
}

#[tokio::test]
async fn what_happens_to_hidden_tools_is_not_told() {
    let world = world(true).await;
    let (snapshot, _) = world.pool("acme", &AgentState::default(), None).await;
    let left = vec![tool("open", "refund invoice"), tool("locked", "refund").after("planned")];
    world.register("acme", server("s", left)).await;
    world.unregister("acme", "vault").await.unwrap();
    let (_, delta) = world.pool("acme", &AgentState::default(), Some(snapshot.revision)).await;
    assert!(delta.full && delta.removed.is_empty(), "{delta:?}");
}

/// Tests two servers with a tool of the same name. The shown one is removed, by a rule or by unregistration.
#[tokio::test]
async fn a_tool_that_is_denied_since_it_was_shown_is_as_one_that_is_gone() {
    let mut said = Vec::new();
    for denied in [true, false] {
        let world = World::new().await;
        for name in ["one", "two"] {
            world.register("acme", server(name, vec![tool("pay", "refund invoice")])).await;
        }
        let servers = vec![ServerName::parse("two").unwrap()];
        let query =
            RouteQuery { options: Options { servers, ..options() }, ..ask("refund invoice") };
        let handle = world.route("acme", query).await.handle;
        if denied {
            let document = "rules: [{name: no, match: {servers: [two]}, denied: true}]";
            world.set_policy("acme", document, "").await.unwrap();
        } else {
            world.unregister("acme", "two").await.unwrap();
        }
        for name in ["pay", "functions.pay", "mcp__two__pay"] {
            let verdict = world.gate_one("acme", &handle, call(name), AgentState::default()).await;
            said.push(format!("{name} {:?}", verdict.unwrap_err()));
        }
    }
    assert_eq!(said[..3], said[3..]);
}
