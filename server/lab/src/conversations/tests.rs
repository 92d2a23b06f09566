//! Conversations over a small catalog, with a bag-of-words encoder.

use toolgate_routing::encoder::words::WordEncoder;

use super::*;

fn servers() -> Vec<CatalogServer> {
    let long = "Reads all that there is to say about it, with every field that it has. ".repeat(12);
    let tool = |name: &str, what: &str| -> Box<str> {
        let schema = r#"{"type": "object", "properties": {"of": {"type": "string"}}}"#;
        format!(r#"{{"name": "{name}", "description": "{what}. {long}", "inputSchema": {schema}}}"#)
            .into()
    };
    let server = |name: &str, nouns: &[&str]| CatalogServer {
        name: name.to_owned(),
        description: String::new(),
        tools: nouns.iter().map(|noun| tool(noun, &format!("Lists {noun}"))).collect(),
    };
    vec![
        server("git", &["commits", "branches", "tags", "remotes"]),
        server("mail", &["letters", "drafts", "folders", "contacts"]),
        server("shop", &["orders", "prices", "refunds", "parcels"]),
    ]
}

fn turn(text: &str, tool: &str) -> LabelledQuery {
    let relevant = [tool.to_owned()].into_iter().filter(|tool| !tool.is_empty()).collect();
    LabelledQuery { text: text.to_owned(), relevant, ..LabelledQuery::default() }
}

fn bench(queries: Vec<LabelledQuery>) -> Bench {
    Bench {
        servers: servers(),
        sets: vec![QuerySet { name: "small".to_owned(), queries }],
        limits: LimitsConfig::default(),
        router: RouterConfig { top_k: 2, ..RouterConfig::default() },
        packs: None,
        histories: vec![0, 20_000],
        turns: vec![1, 4],
        conversations: 1,
        own_servers: false,
    }
}

async fn played(queries: Vec<LabelledQuery>) -> Report {
    let sides = Sides { passages: &WordEncoder, queries: &WordEncoder };
    bench(queries).run(sides, &|_, _| {}).await.expect("played")
}

fn four_turns() -> Vec<LabelledQuery> {
    vec![
        turn("list the commits", "git/commits"),
        turn("list the letters", "mail/letters"),
        turn("list the branches", "git/branches"),
        turn("zzz", "shop/parcels"),
    ]
}

fn cell(report: &Report, api: Api, history: u32, turns: usize, method: Method) -> Totals {
    let mut row = report.grids[0].row(api, history, turns);
    row.find(|cell| cell.method == method).expect("a cell").totals
}

#[tokio::test]
async fn every_cell_is_played_and_histories_are_counted() {
    let report = played(four_turns()).await;
    let cells = &report.grids[0].cells;
    assert_eq!(cells.len(), Provider::ALL.len() * 2 * 2 * Method::ALL.len());
    for one in cells {
        let totals = &one.totals;
        let calls = totals.requests - totals.turns - totals.searches;
        assert_eq!((totals.turns, calls), (one.turns, one.turns), "{one:?}");
        assert!(totals.cached < totals.tokens && totals.price > 0.0, "{one:?}");
        let least = u64::from(one.history) * totals.requests as u64;
        assert!((least..least + 60_000).contains(&totals.tokens), "{one:?}");
    }
    let json = report.to_json();
    assert_eq!(json["grids"][0]["cells"].as_array().map(Vec::len), Some(cells.len()));
    assert_eq!(report.tables().len(), 2 * Provider::ALL.len());
    let page = report.to_markdown();
    assert!(page.contains("## small, anthropic (claude-opus-4-8): price of a turn"), "{page}");
    assert!(page.contains("## small, gemini: 4 turns behind 20,000 tokens"), "{page}");
}

#[tokio::test]
async fn a_tool_that_is_not_shown_takes_a_search_and_where_all_are_shown_none_does() {
    let report = played(four_turns()).await;
    for method in Method::ALL {
        let totals = cell(&report, Api::OpenAiChat, 0, 4, method);
        assert_eq!(totals.searches + totals.right, 4, "{method:?}");
        if matches!(method, Method::Naive | Method::Strategy(Some(Strategy::Pass))) {
            assert_eq!(totals.searches, 0, "{method:?}");
        } else {
            assert!(totals.searches > 0, "no tool fits the last turn: {method:?}");
        }
    }
}

#[tokio::test]
async fn a_change_of_tools_costs_the_history_and_an_addition_does_not() {
    let report = played(four_turns()).await;
    let price = |method| cell(&report, Api::Anthropic, 20_000, 4, method).price_a_turn();
    assert!(price(Method::Anew) > 20_000.0, "{}", price(Method::Anew));
    assert!(price(Method::AUTO) < 15_000.0, "{}", price(Method::AUTO));
    let native = Method::Strategy(Some(Strategy::Native));
    assert!((price(Method::AUTO) - price(native)).abs() < 1e-9);
    for api in [Api::OpenAiChat, Api::Gemini] {
        let of = |strategy| cell(&report, api, 20_000, 4, Method::Strategy(Some(strategy)));
        assert_eq!(of(Strategy::Native), of(Strategy::Envelope), "there is no native way");
    }
}

#[tokio::test]
async fn a_turn_without_a_tool_is_one_request() {
    let thanks = LabelledQuery { conversation: Some("a".to_owned()), ..turn("thanks", "") };
    let report = played(vec![thanks]).await;
    let totals = cell(&report, Api::Gemini, 0, 1, Method::AUTO);
    assert_eq!((totals.requests, totals.needing, totals.right), (1, 0, 0));
}

#[tokio::test]
async fn cells_in_which_auto_is_dearer_are_found() {
    let mut report = played(four_turns()).await;
    let cheap = report.grids[0].cells.iter_mut().find(|cell| cell.method == Method::Paper);
    cheap.expect("a cell").totals.price = 0.5;
    let dearer = report.dearer();
    let first = dearer.iter().find(|(_, one)| one.other.method == Method::Paper).expect("dearer");
    assert_eq!((first.0, first.1.auto.method, first.1.auto.history), ("small", Method::AUTO, 0));
}

#[tokio::test]
async fn labels_that_name_no_tool_are_told() {
    let report = played(vec![turn("list the commits", "git/none")]).await;
    assert_eq!(report.warnings, ["git/none: no such tool; it counts as missed"]);
}

#[tokio::test]
async fn a_method_without_a_place_for_a_called_tool_is_not_compared() {
    let tool = |number: usize| -> Box<str> {
        format!(r#"{{"name": "t{number:03}", "description": "Does it.", "inputSchema": {{"type": "object"}}}}"#).into()
    };
    let tools = (0..129).map(tool).collect();
    let many = CatalogServer { name: "many".to_owned(), description: String::new(), tools };
    let sides = Sides { passages: &WordEncoder, queries: &WordEncoder };
    let bench = Bench { servers: vec![many], ..bench(vec![turn("zzz", "many/t128")]) };
    let mut report = bench.run(sides, &|_, _| {}).await.expect("played");
    let openai = cell(&report, Api::OpenAiChat, 0, 1, Method::Naive);
    assert_eq!((openai.left_out, openai.right, openai.searches), (1, 0, 0), "it takes 128 tools");
    let anthropic = cell(&report, Api::Anthropic, 0, 1, Method::Naive);
    assert_eq!((anthropic.left_out, anthropic.right), (0, 1));
    for one in &mut report.grids[0].cells {
        one.totals.price = if one.method == Method::Naive { 0.5 } else { 1.0 };
    }
    let is_openai = |one: &Dearer| matches!(one.auto.api, Api::OpenAiChat | Api::OpenAiResponses);
    let dearer = report.dearer();
    assert!(!dearer.is_empty() && !dearer.iter().any(|(_, one)| is_openai(one)), "{dearer:?}");
}
