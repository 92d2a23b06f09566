//! Tests of two tenants on one plane with random operations on both. Each sees exactly what a plane of its own would
//! show, and nothing of the other tenant is in any answer or error. Every text of a tenant has a word that the other
//! never uses.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use toolgate_core::error::Error;
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::plan::Mode;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::search::SearchQuery;
use toolgate_store::ToolCursor;

use crate::support::{
    ToolText, World, ask, call, found, look_for, model_names, options, server, tenant, tool,
};

const TENANTS: [&str; 2] = ["acme", "acme-2"];
const MARKS: [&str; 2] = ["zebrawort", "yakberry"];
const SERVERS: [&str; 3] = ["git", "mail", "crm"];

/// One operation of one tenant.
#[derive(Debug, Clone)]
enum Operation {
    Register {
        server: usize,
        tools: Vec<(u8, u8)>,
        merge: bool,
    },
    Unregister {
        server: usize,
    },
    Route {
        keep: bool,
    },
    Gate {
        tool: u8,
        server: usize,
    },
    Pool {
        since_last: bool,
    },
    Schemas {
        tool: u8,
        server: usize,
    },
    Search {
        tool: u8,
        server: usize,
    },
    List,
    /// All calls that take a handle, with the other tenant's handle.
    Foreign,
}

fn operations() -> impl Strategy<Value = Vec<(usize, Operation)>> {
    let tools = prop::collection::vec((0_u8..6, 0_u8..3), 0..5);
    let register = (0..SERVERS.len(), tools, any::<bool>())
        .prop_map(|(server, tools, merge)| Operation::Register { server, tools, merge });
    let one = (0_u8..6, 0..SERVERS.len());
    let operation = prop_oneof![
        6 => register,
        1 => (0..SERVERS.len()).prop_map(|server| Operation::Unregister { server }),
        3 => any::<bool>().prop_map(|keep| Operation::Route { keep }),
        3 => one.clone().prop_map(|(tool, server)| Operation::Gate { tool, server }),
        2 => any::<bool>().prop_map(|since_last| Operation::Pool { since_last }),
        2 => one.clone().prop_map(|(tool, server)| Operation::Schemas { tool, server }),
        2 => one.prop_map(|(tool, server)| Operation::Search { tool, server }),
        2 => Just(Operation::List),
        2 => Just(Operation::Foreign),
    ];
    prop::collection::vec((0..TENANTS.len(), operation), 4..40)
}

/// Expected state of one tenant, and its last answer.
#[derive(Debug, Default)]
struct Model {
    /// Versions by server and tool.
    servers: BTreeMap<String, BTreeMap<String, u8>>,
    ever_registered: bool,
    handle: String,
    shown: Vec<String>,
    pool: u64,
}

impl Model {
    fn model_names(&self) -> Vec<String> {
        let of = |(server, tools): (&String, &BTreeMap<String, u8>)| {
            tools.keys().map(|tool| format!("mcp__{server}__{tool}")).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(of).collect()
    }
}

struct Pair {
    world: World,
    models: [Model; 2],
}

/// Returns a tool name. Tools 0 to 3 have the same names in both tenants; the others contain the tenant's mark.
fn tool_name(who: usize, number: u8) -> String {
    if number < 4 { format!("t{number}") } else { format!("t{number}_{}", MARKS[who]) }
}

fn described(who: usize, number: u8, version: u8) -> ToolText {
    let mark = MARKS[who];
    let schema = serde_json::json!({"type": "object", "properties": {mark: {"const": version}}});
    let mut tool =
        tool(&tool_name(who, number), &format!("{mark} version {version}")).schema(schema);
    tool.settings.search_hint = format!("{mark} hint");
    tool
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn tenants_never_meet(operations in operations()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut pair = Pair { world: World::new().await, models: Default::default() };
            for (who, operation) in operations {
                pair.run(who, &operation).await;
            }
            for who in 0..2 {
                pair.run(who, &Operation::Route { keep: true }).await;
                pair.run(who, &Operation::List).await;
            }
        });
    }
}

impl Pair {
    async fn run(&mut self, who: usize, operation: &Operation) {
        match operation {
            Operation::Register { server, tools, merge } => {
                self.register(who, SERVERS[*server], tools, *merge).await;
            }
            Operation::Unregister { server } => self.unregister(who, SERVERS[*server]).await,
            Operation::Route { keep } => self.route(who, *keep).await,
            Operation::Gate { tool, server } => self.gate(who, *tool, SERVERS[*server]).await,
            Operation::Pool { since_last } => self.pool(who, *since_last).await,
            Operation::Schemas { tool, server } => self.schemas(who, *tool, SERVERS[*server]).await,
            Operation::Search { tool, server } => self.search(who, *tool, SERVERS[*server]).await,
            Operation::List => self.list(who).await,
            Operation::Foreign => self.foreign(who).await,
        }
    }

    async fn register(&mut self, who: usize, name: &str, tools: &[(u8, u8)], merge: bool) {
        let unique: BTreeMap<u8, u8> = tools.iter().copied().collect();
        let texts = unique.iter().map(|(number, version)| described(who, *number, *version));
        let mut registration = server(name, texts.collect());
        registration.server.description = format!("{} server", MARKS[who]);
        registration.mode = if merge { Mode::Merge } else { Mode::Replace };
        // The same request id may come from both tenants for different requests, and each tenant has its own.
        let id = format!("{name} {merge} {:?}", unique.keys());
        let hash = [u8::try_from(who).unwrap(); 32];
        registration.request = Some((id, hash)).filter(|_| unique.len() > 2);
        let registered = self.world.try_register(TENANTS[who], registration).await;
        self.clean(who, &registered);
        if registered.expect("a registration").replayed {
            return;
        }
        let model = &mut self.models[who];
        model.ever_registered = true;
        let stored = model.servers.entry(name.to_owned()).or_default();
        if !merge {
            stored.clear();
        }
        stored
            .extend(unique.into_iter().map(|(number, version)| (tool_name(who, number), version)));
    }

    async fn unregister(&mut self, who: usize, name: &str) {
        let removed = self.world.unregister(TENANTS[who], name).await;
        self.clean(who, &removed);
        let known = self.models[who].servers.remove(name).is_some();
        assert_eq!(removed.is_ok(), known, "{removed:?}");
    }

    async fn route(&mut self, who: usize, keep: bool) {
        let everything = Options { top_k: 100, threshold: -1.0, explain: true, ..options() };
        let previous = if keep { self.models[who].handle.clone() } else { String::new() };
        let text = format!("{} and {} t1 t4_{}", MARKS[0], MARKS[1], MARKS[1 - who]);
        let query = RouteQuery { options: everything, previous, ..ask(&text) };
        let answer = self.world.try_route(TENANTS[who], query).await;
        let Ok(answer) = self.exists(who, answer) else { return };
        // The whole snapshot is searched too: definitions, hints, names and requirements.
        self.clean(who, &answer);
        let mut names = model_names(&answer);
        names.sort();
        assert_eq!(names, self.models[who].model_names());
        for tool in &answer.snapshot.tools {
            let version = self.models[who].servers[tool.id.server.as_str()][tool.id.name.as_str()];
            assert!(tool.summary.ends_with(&format!("version {version}")), "{}", tool.summary);
        }
        (self.models[who].handle, self.models[who].shown) = (answer.handle, names);
    }

    async fn gate(&mut self, who: usize, number: u8, server: &str) {
        if self.models[who].handle.is_empty() {
            return;
        }
        let name = tool_name(who, number);
        let model_name = format!("mcp__{server}__{name}");
        let state = AgentState::default();
        let gate =
            self.world.gate_one(TENANTS[who], &self.models[who].handle, call(&model_name), state);
        let verdict = gate.await;
        self.clean(who, &verdict);
        let model = &self.models[who];
        let known = model.servers.get(server).is_some_and(|tools| tools.contains_key(&name));
        let was_shown = model.shown.contains(&model_name);
        match verdict.map_err(|refused| refused.code) {
            Ok(found) => assert!(known && was_shown && found == model_name),
            Err(RefusalCode::UnknownTool) => assert!(!known),
            Err(RefusalCode::ToolNotAvailable) => assert!(known && !was_shown),
            Err(RefusalCode::SchemaChanged) => assert!(known && was_shown),
            Err(other) => panic!("{other:?}"),
        }
    }

    async fn pool(&mut self, who: usize, since_last: bool) {
        if !self.models[who].ever_registered {
            return;
        }
        let since = Some(self.models[who].pool).filter(|_| since_last);
        let (snapshot, delta) = self.world.pool(TENANTS[who], &AgentState::default(), since).await;
        self.clean(who, &delta);
        let names = delta.added.iter().map(|slot| snapshot.tool(*slot).model_name.to_string());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let expected = self.models[who].model_names();
        if delta.full {
            assert_eq!(names, expected);
        }
        assert!(names.iter().all(|name| expected.contains(name)));
        assert!(delta.removed.iter().all(|name| !expected.contains(name)));
        self.models[who].pool = delta.revision;
    }

    async fn schemas(&mut self, who: usize, number: u8, server: &str) {
        let name = format!("{server}/{}", tool_name(who, number));
        let state = AgentState::default();
        let found = self.world.schemas(TENANTS[who], &[&name], &state, "").await;
        let Ok(found) = self.exists(who, found) else { return };
        self.clean(who, &(&found.snapshot, &found.tools, &found.refusals));
        let tools = self.models[who].servers.get(server);
        let known = tools.is_some_and(|tools| tools.contains_key(&tool_name(who, number)));
        assert_eq!((found.tools.len(), found.refusals.len()), if known { (1, 0) } else { (0, 1) });
    }

    async fn search(&mut self, who: usize, number: u8, server: &str) {
        let name = tool_name(who, number);
        let known = self.models[who].servers.get(server).is_some_and(|t| t.contains_key(&name));
        for query in [
            format!("select:{server}/{name}"),
            server.to_owned(),
            format!("+{name}"),
            "version".to_owned(),
            format!("which of the tools has the {} hint?", MARKS[who]),
        ] {
            let everything = SearchQuery { max_results: 100, ..look_for(&query) };
            let answer = self.world.try_search(TENANTS[who], everything).await;
            let Ok(answer) = self.exists(who, answer) else { return };
            self.clean(who, &answer);
            let names = found(&answer);
            let mine = self.models[who].model_names();
            assert!(names.iter().all(|name| mine.contains(name)), "{query}: {names:?}");
            match query.as_str() {
                "version" => assert_eq!(names.len(), mine.len()),
                query if query.starts_with("select:") => {
                    assert_eq!(names.len(), usize::from(known));
                }
                _ => {}
            }
        }
    }

    async fn list(&mut self, who: usize) {
        let id = tenant(TENANTS[who]);
        let catalog = &self.world.plane.catalog;
        let servers = self.exists(who, catalog.servers(&id, None, 100).await);
        self.clean(who, &servers);
        let Ok(servers) = servers else { return };
        let names: Vec<_> = servers.iter().map(|server| server.record.name.as_str()).collect();
        assert_eq!(names, self.models[who].servers.keys().collect::<Vec<_>>());
        let mut after = None::<ToolCursor>;
        let mut listed = Vec::new();
        loop {
            let page = catalog.tools(&id, None, after.as_ref(), 2).await.expect("a page");
            self.clean(who, &page);
            let Some(last) = page.last() else { break };
            let server = last.record.server.as_str();
            let name = last.record.name.as_str();
            after = Some(ToolCursor { server: server.to_owned(), name: name.to_owned() });
            listed.extend(page.into_iter().map(|tool| tool.record.model_name));
        }
        assert_eq!(listed, self.models[who].model_names());
    }

    async fn foreign(&mut self, who: usize) {
        let handle = self.models[1 - who].handle.clone();
        if handle.is_empty() || !self.models[who].ever_registered {
            return;
        }
        let query = RouteQuery { previous: handle.clone(), ..ask(MARKS[1 - who]) };
        let routed = self.world.try_route(TENANTS[who], query).await;
        self.clean(who, &routed);
        assert!(matches!(routed, Err(Error::HandleInvalid(_))), "{routed:?}");
        let state = AgentState::default();
        let fetched = self.world.schemas(TENANTS[who], &["git/t1"], &state, &handle).await;
        assert!(matches!(fetched.map(drop), Err(Error::HandleInvalid(_))));
        let search = SearchQuery { previous: handle.clone(), ..look_for("select:git/t1") };
        let searched = self.world.try_search(TENANTS[who], search).await;
        assert!(matches!(searched.map(drop), Err(Error::HandleInvalid(_))));
        // This includes tools that both tenants have.
        let calls = self.models[1 - who].shown.iter().map(|name| call(name)).collect();
        let (_, verdicts) = self.world.gate(TENANTS[who], &handle, calls, state).await;
        self.clean(who, &verdicts);
        for verdict in verdicts {
            assert_eq!(verdict.expect_err("a refusal").code, RefusalCode::HandleInvalid);
        }
    }

    /// Checks that a tenant is unknown exactly if it never registered.
    fn exists<T>(&self, who: usize, answer: Result<T, Error>) -> Result<T, Error> {
        let unknown = matches!(&answer, Err(Error::TenantNotFound(name)) if name == TENANTS[who]);
        assert_eq!(unknown, !self.models[who].ever_registered);
        if let Err(error) = &answer {
            assert!(unknown, "{error}");
        }
        answer
    }

    /// Checks that nothing of the other tenant is in the answer.
    fn clean(&self, who: usize, answer: &impl Debug) {
        let text = format!("{answer:?}");
        assert!(!text.contains(MARKS[1 - who]), "{} in: {text}", MARKS[1 - who]);
    }
}
