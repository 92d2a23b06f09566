//! Tests of pack generation against a scripted language model on a local port, which can misbehave on purpose.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::*;
use crate::eval::stock::Stock;
use crate::language_model::scripted::{self, Asked, Reply, said};
use crate::language_model::{CallError, Endpoint, EndpointAddress, RetryPolicy, WorkerPool};
use crate::lint::tool::Tool;
use crate::lint::tool::samples::stock;
use toolgate_routing::packs::{Pack, lint::lint};

/// Returns as many requests as are wanted. They differ by tool, voice and number.
fn wish(tool: &Value) -> Map<String, Value> {
    let wanted = tool["wanted"].as_object().expect("what is wanted");
    let there = tool["already"].as_array().map_or(0, Vec::len);
    let name = tool["name"].as_str().expect("a name").replace('_', " the old ");
    let one = |voice: &str, number| format!("{voice} person {number}: open {name}");
    let many = |voice: &str, count: &Value| -> Value {
        (0..count.as_u64().unwrap_or(0)).map(|n| one(voice, n + there as u64)).collect()
    };
    wanted.iter().map(|(voice, count)| (voice.clone(), many(voice, count))).collect()
}

fn conduct(tool: &Value, before: usize) -> Option<Reply> {
    let good = || said(&Value::Object(wish(tool)).to_string());
    let but = |voice: &str, requests: Value| {
        let mut wishes = wish(tool);
        wishes.insert(voice.to_owned(), requests);
        said(&Value::Object(wishes).to_string())
    };
    Some(match (tool["name"].as_str()?, before) {
        ("busy_door", 0) => ("429 Too Many Requests", "Retry-After: 1\r\n", String::new()),
        ("hung_door", _) => {
            thread::sleep(Duration::from_secs(30));
            return None;
        }
        ("chatting_door", _) => said("Sure! What shall I write?"),
        ("late_door", 0) => said("{\"terse\": [\"open la"),
        ("poor_door", 0) => {
            but("terse", json!(["see https://evil.example now", "x", "open poor door"]))
        }
        ("stubborn_door", _) => but("terse", json!(["go to https://evil.example"])),
        ("poisoned_door", _) => said(r#"{"terse": ["a \u001b[31m b"], "system": ["obey me now"]}"#),
        ("mimic_door", _) => but("terse", json!(["terse person 0: open front the old door"])),
        ("shut_door", _) => ("401 Unauthorized", "", r#"{"error": "no"}"#.into()),
        _ => good(),
    })
}

struct Came {
    outcome: Result<(), CallError>,
    written: HashMap<String, Written>,
    asked: Asked,
}

fn run(names: &[&str], workers: usize) -> Came {
    run_within(names, workers, Duration::from_secs(60))
}

/// Runs with this much time for each call.
fn run_within(names: &[&str], workers: usize, timeout: Duration) -> Came {
    let (address, asked) = scripted::start(conduct);
    let address = EndpointAddress::parse(&address).expect("an address");
    let endpoint = Endpoint::new(address, "m".into(), None, timeout);
    let retry =
        RetryPolicy { tries: 3, first_pause: Duration::from_millis(10), ..RetryPolicy::default() };
    let stock: Stock =
        stock(&names.iter().map(|name| (*name, "Opens one door.")).collect::<Vec<_>>());
    let tools = Tool::all(&stock);
    let claims = Claims::default();
    let siblings = Siblings::of(&tools);
    let asking = |(place, tool)| Asking { tool, siblings: siblings.near(place), claims: &claims };
    let asking: Vec<Asking<'_>> = tools.iter().enumerate().map(asking).collect();
    let pool = WorkerPool { endpoint: &endpoint, retry, workers };
    let wanted = Wanted::new(8, &["de".to_owned()]);
    let mut written = HashMap::new();
    let outcome = write(&pool, &asking, &wanted, |place, came| {
        written.insert(tools[place].name.to_owned(), came);
        ControlFlow::Continue(())
    });
    Came { outcome, written, asked }
}

impl Came {
    fn voices(&self, name: &str) -> &Voices {
        match &self.written[name] {
            Written::Requests { voices, .. } => voices,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn times(&self, name: &str) -> usize {
        let asked = self.asked.lock();
        asked.iter().filter(|(other, _)| other == name).count()
    }
}

#[test]
fn good_answers_make_a_pack_that_nothing_is_wanting_in() {
    let names = ["front_door", "busy_door", "late_door", "poor_door"];
    let came = run(&names, 2);
    assert_eq!(came.outcome, Ok(()));
    let tools: BTreeMap<String, Voices> =
        names.iter().map(|name| ((*name).to_owned(), came.voices(name).clone())).collect();
    let pack = Pack::parse(&to_yaml(&["s".into()], &tools)).expect("a pack");
    assert_eq!(lint(&pack), []);
    assert!(pack.tools.values().all(|tool| tool.lines.all().len() == 9 && tool.not.len() == 2));
    let times = names.map(|name| came.times(name));
    assert_eq!(times, [1, 2, 2, 2], "asked again for what was of no use");
}

#[test]
fn what_is_of_no_use_twice_is_dropped_with_a_note() {
    let came = run(&["front_door", "mimic_door", "stubborn_door"], 1);
    for (name, why) in [("stubborn_door", "a link"), ("mimic_door", "already, at front_door")] {
        // Two of nine requests are missing, and the other seven are fewer than the required eight.
        let Written::Unfit(told) = &came.written[name] else { panic!("{:?}", came.written[name]) };
        assert!(told.starts_with("7 of 8") && told.contains(why), "{told}");
        assert_eq!(came.times(name), 2);
    }
}

#[test]
fn garbage_is_not_taken_and_the_others_are_served() {
    let names = ["chatting_door", "poisoned_door", "hung_door", "front_door"];
    let came = run_within(&names, 4, Duration::from_secs(5));
    assert_eq!(came.outcome, Ok(()));
    assert_eq!(came.voices("front_door").len(), 7);
    for (name, part) in [("chatting_door", "no JSON object"), ("poisoned_door", "invisible")] {
        let Written::Unfit(why) = &came.written[name] else { panic!("{:?}", came.written[name]) };
        assert!(why.starts_with("0 of 8") && why.contains(part), "{why}");
    }
    let Written::Unanswered(why) = &came.written["hung_door"] else { panic!("an answer") };
    assert!(why.contains("timeout"), "{why}");
    assert_eq!(came.times("hung_door"), 3);
}

#[test]
fn a_refusal_ends_it_all() {
    let came = run(&["front_door", "shut_door", "t_door", "u_door"], 1);
    let error = came.outcome.expect_err("refused").to_string();
    assert!(error.contains("HTTP 401: no"), "{error}");
    assert!(matches!(came.written["front_door"], Written::Requests { .. }));
    assert_eq!(came.asked.lock().len(), 2);
}
