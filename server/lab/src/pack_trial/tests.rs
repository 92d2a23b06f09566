//! Tests of small packs with an encoder of words.

use super::bed::Ask;
use super::*;
use crate::eval::bootstrap::Bootstrap;
use crate::eval::stock::Stock;
use crate::eval::{CatalogServer, Sides};
use toolgate_config::LimitsConfig;
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_routing::encoder::words::WordEncoder;
use toolgate_routing::packs::{Pack, Packs};

const HOUSE: &str = "servers: [house]\ntools:
  open_door: {terse: [let the guests come inside, guests wait outside, quokka], de: [gäste warten]}
  ring_bell: {terse: [make some noise, a loud noise please], multi_step: [let the guests come inside then noise]}
  absent: {terse: [not in the catalog]}\n";
const GARDEN: &str = "servers: [garden]\ntools:
  mow_lawn: {terse: [the grass is long, long grass again], indirect: [a loud noise of bells please]}\n";

fn stock() -> Stock {
    let server = |name: &str, tools: &[&str]| CatalogServer {
        name: name.into(),
        description: String::new(),
        tools: tools
            .iter()
            .map(|tool| serde_json::json!({"name": tool, "inputSchema": {}}).to_string().into())
            .collect(),
    };
    let servers = [
        server("house", &["open_door", "ring_bell"]),
        server("garden", &["mow_lawn"]),
        server("bare", &["paint_wall"]),
    ];
    Stock::check(&servers, &LimitsConfig::default())
}

fn requests(stock: &Stock, seed: u64) -> Requests {
    let packs = [HOUSE, GARDEN].map(|text| Pack::parse(text).expect("a pack"));
    Requests::of(stock, &Packs::of(packs.into()), seed)
}

fn id(server: &str, name: &str) -> ToolId {
    let server = ServerName::parse(server).expect("a name");
    ToolId { server, name: ToolName::parse(name).expect("a name") }
}

async fn bed<'a>(stock: &'a Stock, requests: &Requests, queries: &[&str]) -> Bed<'a> {
    let sides = Sides { passages: &WordEncoder, queries: &WordEncoder };
    Bed::embed(stock, true, requests, queries, sides, &|_, _| {}).await.expect("embedded")
}

#[test]
fn each_request_is_left_out_once_and_one_of_a_tool_at_a_time() {
    let stock = stock();
    for seed in [0, 1, 7] {
        let requests = requests(&stock, seed);
        assert_eq!((requests.all.len(), requests.packs()), (10, 2));
        let rounds = |tool: &str| -> Vec<usize> {
            let own = requests.all.iter().filter(|request| request.tool == tool);
            let mut rounds: Vec<_> = own.map(|request| request.round).collect();
            rounds.sort_unstable();
            rounds
        };
        assert_eq!(rounds("open_door"), [0, 1, 2, 3]);
        assert_eq!(rounds("ring_bell"), [0, 1, 2]);
        let kept = requests.kept(|_| true, |request| request.round != 0);
        assert_eq!(kept.all().iter().map(Pack::requests).sum::<usize>(), 10 - 3);
        assert_eq!(requests.kept(|pack| pack == 0, |_| true).all().len(), 1);
    }
    let requests = requests(&stock, 0);
    let place = requests.pack_of(&id("house", "x").server).expect("a pack");
    assert_eq!(requests.name(place), "house");
    assert!(requests.is(place, &Pack::parse(HOUSE).expect("a pack")));
    assert!(!requests.is(place, &Pack::parse(GARDEN).expect("a pack")));
    assert_eq!(requests.pack_of(&id("bare", "x").server), None);
}

#[tokio::test]
async fn a_request_does_not_find_its_tool_by_itself() {
    let stock = stock();
    let requests = requests(&stock, 0);
    let place = |text: &str| requests.all.iter().position(|one| one.text == text).expect("there");
    for bed in [bed(&stock, &requests, &[]).await, Bed::of_words(&stock)] {
        let whole = bed.snapshot(&requests.kept(|_| true, |_| true)).await.expect("built");
        let own = [id("house", "open_door")];
        let asked: Vec<Ask<'_>> = vec![("quokka", &own), ("guests wait outside", &own)];
        let there = bed.places(&whole, &asked).expect("asked");
        assert_eq!((there[0].rank, there[1].rank, there[0].lead), (Some(1), Some(1), 0.0));
        let left = left_one_out(&bed, &requests, |_| true).await.expect("asked");
        assert!(left.iter().all(Option::is_some));
        let of = |text: &str| left[place(text)].as_ref().expect("asked").rank;
        assert_eq!(of("guests wait outside"), Some(1), "others speak for it");
        assert_ne!(of("quokka"), Some(1), "nothing but itself speaks for it");
    }
}

#[tokio::test]
async fn what_fits_another_tool_is_told_but_for_several_steps() {
    let stock = stock();
    let requests = requests(&stock, 0);
    let bed = bed(&stock, &requests, &[]).await;
    let wanted = |request: &Request| request.text.contains("noise");
    let placed = left_one_out(&bed, &requests, wanted).await.expect("asked");
    assert_eq!(placed.iter().flatten().count(), 4, "nothing else is asked");
    let told = |within, margin| -> Vec<(&str, Option<ToolId>)> {
        let found = misplaced(&requests.all, &placed, Limits { within, margin });
        found.iter().map(|one| (one.request.text.as_str(), one.first.cloned())).collect()
    };
    let lawn = id("garden", "mow_lawn");
    let bells = told(5, 0.1).into_iter().find(|(text, _)| *text == "a loud noise of bells please");
    let first = bells.expect("it is told").1;
    assert!(first.is_some_and(|first| first != lawn), "{placed:?}");
    assert_eq!(told(5, 1.0), []);
    let late: Vec<_> = told(1, 1.0).into_iter().map(|(text, _)| text).collect();
    assert!(late.contains(&"a loud noise of bells please"), "{late:?}");
    assert!(late.contains(&"let the guests come inside then noise"), "{late:?}");
}

#[tokio::test]
async fn packs_are_left_out_in_turn() {
    let stock = stock();
    let requests = requests(&stock, 1);
    let query = |text: &str, tools: &[(&str, &str)]| Query {
        text: text.into(),
        relevant: tools.iter().map(|(server, tool)| id(server, tool)).collect(),
    };
    let queries = [
        query("the guests come", &[("house", "open_door")]),
        query("paint it", &[("bare", "paint_wall")]),
        query("guests on the grass", &[("house", "open_door"), ("garden", "mow_lawn")]),
    ];
    let texts: Vec<&str> = queries.iter().map(|query| query.text.as_str()).collect();
    let bed = bed(&stock, &requests, &texts).await;
    let bootstrap = Bootstrap { resamples: 20, seed: 1 };
    let measured = measure(&bed, &requests, &[], 2, 1, &bootstrap).await.expect("measured");
    let folds = measured.folds.expect("asked for");
    assert_eq!((folds.left_out.count, folds.others.count, folds.passed_over), (10, 10, 0));
    assert!(folds.others.with[0].value > folds.left_out.with[0].value, "{folds:?}");
    let bare = |group: &Group| group.without.map(|share| share.value);
    assert_eq!(bare(&folds.left_out), bare(&folds.others), "the same requests");
    let voices: Vec<_> =
        measured.voices.iter().map(|group| (group.name.as_str(), group.count)).collect();
    let wanted = [("indirect", 1), ("multi_step", 1), ("terse", 7), ("other languages", 1)];
    assert_eq!(voices, wanted);
    assert_eq!(measured.servers.iter().map(|group| group.count).sum::<usize>(), 10);
    let measured = measure(&bed, &requests, &queries, 2, 1, &bootstrap).await.expect("measured");
    let folds = measured.folds.expect("asked for");
    assert_eq!((folds.left_out.count, folds.others.count, folds.passed_over), (1, 1, 2));
    assert_eq!((folds.left_out.with[0].value, folds.others.with[0].value), (0.0, 1.0));
}
