//! What holds of strategies in any conversation: random ones, from fixed seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolgate_llm::SEARCH_TOOL_NAME;
use toolgate_llm::envelope::{CALL_TOOL_NAME, open, wrap_history};
use toolgate_llm::render::Tool;
use toolgate_llm::strategy::{
    Api, Endpoint, Ledger, Listing, Offer, Prepared, Strategy, Turn, prepare,
};

const APIS: [Api; 4] = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini];
const STRATEGIES: [Strategy; 4] =
    [Strategy::Pass, Strategy::Native, Strategy::Envelope, Strategy::Cut];
const TOOLS: usize = 12;
const SEEDS: u64 = 24;
const STEPS: usize = 25;

/// Random numbers of a seed: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

/// Tool of a catalog that changes.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    description: String,
    is_there: bool,
}

impl Entry {
    fn tool(&self) -> Tool<'_> {
        Tool {
            name: &self.name,
            description: &self.description,
            input_schema_json: r#"{"type":"object","properties":{"of":{"type":"string"}}}"#,
            ..Tool::default()
        }
    }
}

/// Change of a conversation since the turn before.
#[derive(Debug, Default)]
struct Step {
    /// A tool's definition changed, or messages did: additions may be lost.
    breaks: bool,
    /// Tool that came into the catalog or left it. Where the conversation has it, its addition is lost.
    toggled: Option<String>,
    /// True if the conversation has more messages.
    went_on: bool,
    /// The user spoke, so that unused tools may be dropped.
    is_new: bool,
}

/// A conversation that goes on at random.
struct Conversation {
    api: Api,
    random: Random,
    catalog: Vec<Entry>,
    active: Vec<usize>,
    messages: Vec<Value>,
    calls: usize,
}

impl Conversation {
    fn new(api: Api, seed: u64) -> Self {
        let entry = |index: usize| Entry {
            name: format!("tool_{index}"),
            description: "Does it. ".repeat(1 + index * 4),
            is_there: true,
        };
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.below(2);
        let catalog = (0..TOOLS).map(entry).collect();
        let mut new =
            Self { api, random, catalog, active: Vec::new(), messages: Vec::new(), calls: 0 };
        new.choose();
        new.say("user");
        new
    }

    fn say(&mut self, role: &str) {
        let text = format!("{} ", self.messages.len()).repeat(1 + self.random.below(60));
        self.messages.push(match (self.api, role) {
            (Api::Gemini, "assistant") => json!({ "role": "model", "parts": [{ "text": text }] }),
            (Api::Gemini, _) => json!({ "role": "user", "parts": [{ "text": text }] }),
            _ => json!({ "role": role, "content": text }),
        });
    }

    fn call(&mut self) {
        let place = self.random.below(self.active.len().max(1));
        let Some(index) = self.active.get(place) else { return };
        self.call_tool(*index);
    }

    fn call_tool(&mut self, index: usize) {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        let name = self.catalog[index].name.clone();
        let messages = match self.api {
            Api::Anthropic => [
                json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": id, "name": name, "input": {} }] }),
                json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": "ok" }] }),
            ],
            Api::OpenAiChat => [
                json!({ "role": "assistant", "tool_calls": [{ "type": "function", "id": id, "function": { "name": name, "arguments": "{}" } }] }),
                json!({ "role": "tool", "tool_call_id": id, "content": "ok" }),
            ],
            Api::OpenAiResponses => [
                json!({ "type": "function_call", "call_id": id, "name": name, "arguments": "{}" }),
                json!({ "type": "function_call_output", "call_id": id, "output": "ok" }),
            ],
            Api::Gemini => [
                json!({ "role": "model", "parts": [{ "functionCall": { "name": name, "args": {} } }] }),
                json!({ "role": "user", "parts": [{ "functionResponse": { "name": name, "response": {} } }] }),
            ],
        };
        self.messages.extend(messages);
    }

    fn choose(&mut self) {
        let count = self.random.below(5);
        self.active.clear();
        for _ in 0..count {
            let index = self.random.below(TOOLS);
            if self.catalog[index].is_there && !self.active.contains(&index) {
                self.active.push(index);
            }
        }
    }

    fn go_on(&mut self) -> Step {
        let mut step = Step::default();
        let before = self.messages.len();
        if self.random.one_in(3) {
            self.call();
        }
        if !self.random.one_in(3) {
            self.say("assistant");
            self.say("user");
        }
        if self.random.one_in(6) {
            let index = self.random.below(TOOLS);
            self.catalog[index].description.push('!');
            step.breaks = true;
        }
        if self.random.one_in(8) {
            let index = self.random.below(TOOLS);
            self.catalog[index].is_there ^= true;
            step.toggled = Some(self.catalog[index].name.clone());
        }
        if self.random.one_in(10) {
            self.messages.clear();
            self.say("user");
            step.breaks = true;
        }
        if self.random.one_in(2) {
            self.choose();
        }
        let catalog = &self.catalog;
        self.active.retain(|index| catalog[*index].is_there);
        step.is_new = self.user_spoke_last();
        step.went_on = self.messages.len() > before;
        step
    }

    fn user_spoke_last(&self) -> bool {
        let last = self.messages.last().expect("a message");
        let texts = [&last["content"], &last["parts"][0]["text"]];
        last["role"] == "user" && texts.iter().any(|text| text.is_string())
    }

    fn prepare(
        &self,
        strategy: impl Into<Option<Strategy>>,
        ledger: &Ledger,
        own: &[Value],
    ) -> Prepared {
        let there = |entry: &&Entry| entry.is_there;
        let find = |name: &str| {
            let index: usize = name.strip_prefix("tool_")?.parse().ok()?;
            self.catalog.get(index).filter(there).map(Entry::tool)
        };
        let active: Vec<Tool<'_>> = self.active.iter().map(|i| self.catalog[*i].tool()).collect();
        let names = self.catalog.iter().filter(there).map(|entry| entry.name.as_str());
        let names: Vec<&str> = names.collect();
        prepare(&Turn {
            api: self.api,
            strategy: strategy.into(),
            endpoint: Endpoint::default(),
            offer: Offer {
                own,
                always_on: &[],
                active: &active,
                deferred: TOOLS,
                catalog_tokens: None,
                search: true,
                deferred_names: &names,
                listing: Listing::default(),
                budget: None,
                find: &find,
            },
            system_tokens: 0,
            messages: &self.messages,
            ledger,
            count: &|text| u32::try_from(text.len() / 4).expect("a short text"),
        })
        .expect("tools have schemas")
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the definitions in the additions of a request, in their order.
fn added(messages: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    for message in messages {
        let additions =
            list(message, "content").iter().filter(|block| block["type"] == "tool_addition");
        found.extend(additions.map(|block| block["tool"]["definition"].clone()));
        if message["type"] == "additional_tools" {
            found.extend(list(message, "tools").iter().cloned());
        }
        let texts = [&message["content"], &message["output"]].into_iter();
        let nested = list(message, "content").iter().chain(list(message, "parts"));
        for text in texts.chain(nested.map(|block| &block["text"])).filter_map(Value::as_str) {
            if let Some(at) = text.find("[Toolgate] More tools") {
                let lines = text[at..].lines().skip(1);
                found.extend(lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
            }
        }
    }
    found
}

/// Returns the names of the tools that the search's description and what is told since say can be found.
fn findable(prepared: &Prepared) -> BTreeSet<String> {
    let described = prepared.tools.iter().map(Value::to_string);
    let listed = described.filter_map(|tool| Some(tool.split_once(" It finds: ")?.1.to_owned()));
    let mut names: BTreeSet<String> = listed.flat_map(|listed| in_a_row(&listed)).collect();
    let sent = json!(prepared.messages).to_string();
    for told in &prepared.told {
        assert!(sent.contains(told.as_str()), "{told} is not told in {sent}");
        if let Some((_, found)) = told.split_once(" The search finds more tools: ") {
            names.extend(in_a_row(found));
        }
        if let Some((_, gone)) = told.split_once(" Gone: ") {
            in_a_row(gone).iter().for_each(|name| assert!(names.remove(name), "{name} was told"));
        }
    }
    names
}

/// Returns the names in a row that ends with a period.
fn in_a_row(text: &str) -> Vec<String> {
    let (row, _) = text.split_once('.').expect("a period");
    row.split(", ").map(str::to_owned).collect()
}

/// Returns definitions by name, and fails if a name comes twice.
fn by_name(definitions: &[Value]) -> BTreeMap<String, Value> {
    let mut named = BTreeMap::new();
    for definition in definitions {
        let inner = definition.get("function").unwrap_or(definition);
        let name = inner["name"].as_str().or(inner["type"].as_str()).expect("a name");
        let earlier = named.insert(name.to_owned(), inner.clone());
        assert_eq!(earlier, None, "{name} comes twice");
    }
    named
}

fn own_tool(api: Api) -> Value {
    let function =
        json!({ "parameters": { "b": 1, "a": 2 }, "name": "own", "x-more": [null, 1.50] });
    match api {
        Api::OpenAiChat => json!({ "function": function, "type": "function" }),
        Api::Anthropic | Api::OpenAiResponses | Api::Gemini => function,
    }
}

/// Checks one request, and against the one before.
fn check(talk: &Conversation, prepared: &Prepared, before: Option<&Prepared>, step: &Step) {
    let own = own_tool(talk.api);
    assert_eq!(prepared.tools[0].to_string(), own.to_string(), "own tools are sent as they are");
    let added = added(&prepared.messages);
    let all = by_name(&[prepared.tools.clone(), added.clone()].concat());
    for index in &talk.active {
        let entry = &talk.catalog[*index];
        let found = all.get(&entry.name).expect("an active tool is callable");
        assert_eq!(found["description"], entry.description, "by its current definition");
    }
    let envelope = all.contains_key(CALL_TOOL_NAME);
    assert_eq!(envelope, prepared.strategy == Strategy::Envelope);
    for definition in &added {
        let entry = talk.catalog.iter().find(|entry| definition["name"] == entry.name);
        assert!(entry.expect("of the catalog").is_there, "{definition} has vanished");
    }
    if prepared.strategy != Strategy::Pass {
        let there = talk.catalog.iter().filter(|entry| entry.is_there);
        let there: BTreeSet<String> = there.map(|entry| entry.name.clone()).collect();
        assert_eq!(findable(prepared), there, "the model knows what can be found");
    }
    let Some(before) = before else { return };
    if !matches!(prepared.strategy, Strategy::Native | Strategy::Envelope) {
        assert!(added.is_empty(), "nothing is added amid the messages");
        assert!(prepared.told.is_empty(), "nothing is told there");
        return;
    }
    let earlier = by_name(&self::added(&before.messages));
    let is_lost = step.toggled.as_ref().is_some_and(|name| earlier.contains_key(name));
    if step.breaks || is_lost {
        return;
    }
    assert_eq!(json!(prepared.tools).to_string(), json!(before.tools).to_string(), "tools stay");
    let dropped = earlier.keys().any(|name| !all.contains_key(name));
    if dropped {
        assert!(step.is_new, "tools are dropped only when the user speaks");
        return;
    }
    // What is told or added once more for the same message changes its end.
    let compared =
        before.messages.len() - if step.went_on { 0 } else { 2.min(before.messages.len()) };
    assert_eq!(
        json!(prepared.messages[..compared]).to_string(),
        json!(before.messages[..compared]).to_string(),
        "what was sent is a prefix of what is sent"
    );
}

#[test]
fn any_conversation_keeps_its_prefix_and_can_call_what_is_active() {
    let mut with_additions = 0;
    for api in APIS {
        for strategy in STRATEGIES {
            for seed in 1..=SEEDS {
                let mut talk = Conversation::new(api, seed);
                let own = [own_tool(api)];
                let mut before = talk.prepare(strategy, &Ledger::default(), &own);
                check(&talk, &before, None, &Step::default());
                for _ in 0..STEPS {
                    let step = talk.go_on();
                    let ledger = Ledger::from_json(&before.ledger.to_json());
                    let prepared = talk.prepare(strategy, &ledger, &own);
                    check(&talk, &prepared, Some(&before), &step);
                    with_additions += usize::from(!added(&prepared.messages).is_empty());
                    before = prepared;
                }
            }
        }
    }
    assert!(with_additions > 3_000, "{with_additions} requests had additions");
}

#[test]
fn preparing_a_turn_again_with_its_own_ledger_changes_nothing() {
    for api in APIS {
        for strategy in [Strategy::Native, Strategy::Envelope] {
            let mut talk = Conversation::new(api, 7);
            let mut ledger = Ledger::default();
            for _ in 0..STEPS {
                talk.go_on();
                let first = talk.prepare(strategy, &ledger, &[]);
                let again = talk.prepare(strategy, &first.ledger, &[]);
                assert_eq!(again.messages, first.messages);
                assert_eq!(again.ledger, first.ledger);
                ledger = first.ledger;
            }
        }
    }
}

/// Plays a conversation in which each turn adds a tool to the catalog, and counts how often `tools` changed.
fn changes_of_tools(api: Api, turns: usize) -> usize {
    let mut talk = Conversation::new(api, 4);
    talk.active = Vec::new();
    talk.catalog.iter_mut().for_each(|entry| entry.is_there = true);
    let mut ledger = Ledger::default();
    let mut sent = String::new();
    let mut changes = 0;
    for turn in 0..turns {
        let prepared = talk.prepare(Strategy::Envelope, &ledger, &[]);
        let tools = json!(prepared.tools).to_string();
        changes += usize::from(turn > 0 && tools != sent);
        sent = tools;
        let json = prepared.ledger.to_json();
        assert!(json.to_string().len() < 64 << 10, "a ledger of {} bytes", json.to_string().len());
        ledger = Ledger::from_json(&json);
        let name = format!("server_{turn}__{}", "long_".repeat(10));
        talk.catalog.push(Entry { name, description: String::new(), is_there: true });
        talk.say("assistant");
        talk.say("user");
    }
    changes
}

#[test]
fn a_conversation_tells_a_bounded_number_of_changes_and_lists_all_anew_then() {
    for api in APIS {
        assert_eq!(changes_of_tools(api, 17), 0, "{api:?}");
        assert_eq!(changes_of_tools(api, 40), 2, "{api:?}");
    }
}

#[test]
fn a_catalog_of_any_size_has_a_ledger_that_is_taken() {
    let mut talk = Conversation::new(Api::Anthropic, 4);
    let entry = |index: usize| Entry {
        name: format!("tool_{index}"),
        description: String::new(),
        is_there: true,
    };
    for (tools, is_kept) in [(4_000, true), (20_000, false)] {
        talk.active = Vec::new();
        talk.catalog = (0..tools).map(entry).collect();
        let first = talk.prepare(Strategy::Native, &Ledger::default(), &[]);
        let json = first.ledger.to_json();
        assert!(json.to_string().len() < 64 << 10, "{tools} tools");
        talk.catalog.push(entry(tools));
        let second = talk.prepare(Strategy::Native, &Ledger::from_json(&json), &[]);
        assert_eq!(second.tools == first.tools, is_kept, "{tools} tools");
        assert_eq!(!second.told.is_empty(), is_kept, "{tools} tools");
    }
}

#[test]
fn a_host_that_rewrites_its_history_all_the_time_gathers_no_tools() {
    for api in APIS {
        let mut talk = Conversation::new(api, 3);
        let mut ledger = Ledger::default();
        for turn in 0..TOOLS * 2 {
            talk.active = vec![turn % TOOLS];
            talk.messages = Vec::new();
            talk.say("user");
            talk.messages
                .push(json!({ "role": "user", "content": turn, "parts": [{ "text": "x" }] }));
            talk.messages.swap(0, 1);
            let prepared = talk.prepare(Strategy::Envelope, &ledger, &[]);
            let tools = added(&prepared.messages).len();
            assert!(tools <= 3, "{tools} tools in turn {turn}");
            ledger = prepared.ledger;
        }
    }
}

#[test]
fn tools_that_are_not_used_are_bounded_whatever_the_price() {
    let mut talk = Conversation::new(Api::Anthropic, 5);
    let entry = |index: usize| Entry {
        name: format!("tool_{index}"),
        description: "Does it.".into(),
        is_there: true,
    };
    talk.catalog = (0..200).map(entry).collect();
    let mut ledger = Ledger::default();
    let mut most = 0;
    for turn in 0..200 {
        talk.active = vec![turn];
        talk.messages.push(json!({ "role": "assistant", "content": "long ".repeat(400) }));
        talk.say("user");
        let prepared = talk.prepare(Strategy::Native, &ledger, &[]);
        most = most.max(added(&prepared.messages).len());
        ledger = prepared.ledger;
    }
    assert!((10..=66).contains(&most), "{most} tools");
}

#[test]
fn a_tool_that_a_result_refers_to_is_not_dropped_for_its_price() {
    for is_referred in [false, true] {
        let mut talk = Conversation::new(Api::Anthropic, 5);
        // Without the tool the request is long enough for the cache, too.
        talk.messages = vec![json!({ "role": "user", "content": "long ".repeat(1_200) })];
        talk.catalog[0].description = "Does it. ".repeat(3_000);
        talk.active = vec![0];
        let first = talk.prepare(None, &Ledger::default(), &[]);
        let has_tool = |sent: &Prepared| sent.tools.iter().any(|tool| tool["name"] == "tool_0");
        assert!(has_tool(&first), "it stands in `tools`");
        let found = json!([{ "type": "tool_reference", "tool_name": "tool_0" }]);
        let found = if is_referred { found } else { json!("none") };
        talk.messages.extend([
            json!({ "role": "assistant", "content": [
                { "type": "tool_use", "id": "1", "name": SEARCH_TOOL_NAME, "input": {} }] }),
            json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "1", "content": found }] }),
        ]);
        talk.say("assistant");
        talk.say("user");
        talk.active = vec![1];
        let next = talk.prepare(None, &first.ledger, &[]);
        let sent = json!(next.messages).to_string();
        assert_eq!(sent.contains("tool_reference"), is_referred);
        assert_eq!(has_tool(&next), is_referred, "a reference needs its tool");
    }
}

/// Tools that a conversation calls, one after another.
const CALLED: usize = 200;

/// Most tools of earlier turns that a request may have beside the active set.
const MOST_KEPT: usize = 96;

/// Tools that stay where there were more.
const LEFT_KEPT: usize = 72;

/// Plays a conversation that calls ever new tools, with a message of the user's before each call or with one alone. Returns
/// how often something that was sent before was sent otherwise or not at all.
fn rewrites_of_ever_new_calls(api: Api, strategy: Option<Strategy>, speaks: bool) -> usize {
    let mut talk = Conversation::new(api, 7);
    let entry = |index: usize| Entry {
        name: format!("tool_{index}"),
        description: "Does it.".into(),
        is_there: true,
    };
    talk.catalog = (0..=CALLED).map(entry).collect();
    let catalog: BTreeSet<String> = talk.catalog.iter().map(|entry| entry.name.clone()).collect();
    let mut before: Option<Prepared> = None;
    let mut begun = None;
    let mut rewrites = 0;
    for turn in 0..CALLED {
        talk.active = vec![turn, turn + 1];
        let ledger = before.as_ref().map(|before| Ledger::from_json(&before.ledger.to_json()));
        let prepared = talk.prepare(strategy, &ledger.unwrap_or_default(), &[]);
        let defined = [prepared.tools.clone(), added(&prepared.messages)].concat();
        let defined = by_name(&defined);
        let all = defined.keys().map(String::as_str);
        let held: BTreeSet<&str> = all.filter(|name| catalog.contains(*name)).collect();
        assert!(prepared.messages.len() >= talk.messages.len(), "calls stay in the history");
        let most = talk.active.len() + MOST_KEPT;
        assert!(held.len() <= most, "{} tools in turn {turn}", held.len());
        if matches!(prepared.strategy, Strategy::Native | Strategy::Envelope) {
            let begun = *begun.get_or_insert(turn);
            for index in begun.max(turn.saturating_sub(LEFT_KEPT))..=turn + 1 {
                let name = &talk.catalog[index].name;
                assert!(held.contains(name.as_str()), "{name} was called lately: turn {turn}");
            }
        }
        if let Some(before) = before.as_ref().filter(|_| begun.is_some_and(|begun| begun < turn)) {
            let sent = &before.messages[..before.messages.len() - 1];
            let is_prefix = prepared.tools == before.tools && prepared.messages.starts_with(sent);
            rewrites += usize::from(!is_prefix);
        }
        talk.call_tool(turn);
        if speaks {
            talk.say("assistant");
            talk.say("user");
        }
        before = Some(prepared);
    }
    rewrites
}

#[test]
fn a_conversation_that_calls_ever_new_tools_keeps_the_last_ones_and_changes_seldom() {
    for api in APIS {
        for strategy in STRATEGIES.map(Some).into_iter().chain([None]) {
            let adds = !matches!(strategy, Some(Strategy::Pass | Strategy::Cut));
            // Only what is added amid the messages depends on who spoke.
            for speaks in [true, false].into_iter().take(1 + usize::from(adds)) {
                let rewrites = rewrites_of_ever_new_calls(api, strategy, speaks);
                let most = (CALLED - MOST_KEPT) / (MOST_KEPT - LEFT_KEPT) + 1;
                assert!(
                    !adds || (1..=most).contains(&rewrites),
                    "{api:?} {strategy:?}: {rewrites}"
                );
            }
        }
    }
}

#[test]
fn a_tool_shown_by_its_signature_stays_so_until_it_is_active_in_full() {
    let full = Tool {
        name: "git__log",
        description: "Shows commits.",
        input_schema_json: r#"{"type":"object","properties":{"count":{"type":"integer"}}}"#,
        signature: "git__log(count?: integer) - Shows commits.",
        ..Tool::default()
    };
    let brief = Tool { input_schema_json: "", description: "", ..full };
    let mut messages = vec![json!({ "role": "user", "content": "a long question ".repeat(999) })];
    let mut ledger = Ledger::default();
    let mut shown = Vec::new();
    for active in [vec![brief], vec![], vec![full], vec![brief]] {
        let find = |name: &str| (name == full.name).then_some(full);
        let prepared = prepare(&Turn {
            api: Api::Anthropic,
            strategy: Some(Strategy::Native),
            endpoint: Endpoint::default(),
            offer: Offer {
                own: &[],
                always_on: &[],
                active: &active,
                deferred: 1,
                catalog_tokens: None,
                search: true,
                deferred_names: &["git__log"],
                listing: Listing::default(),
                budget: None,
                find: &find,
            },
            system_tokens: 0,
            messages: &messages,
            ledger: &ledger,
            count: &|text| u32::try_from(text.len() / 4).expect("a short text"),
        })
        .expect("tools have schemas or signatures");
        let added = added(&prepared.messages);
        assert_eq!(added.len(), 1);
        shown.push(added[0]["description"].as_str().expect("a text").to_owned());
        ledger = prepared.ledger;
        messages.push(json!({ "role": "assistant", "content": "an answer ".repeat(99) }));
        messages.push(json!({ "role": "user", "content": "more" }));
    }
    let in_full = full.description;
    assert_eq!(shown, [full.signature, full.signature, in_full, in_full]);
}

#[test]
fn messages_and_own_tools_of_any_shape_are_sent_on() {
    let odd = [
        json!(null),
        json!(7),
        json!("text"),
        json!([]),
        json!({}),
        json!({ "role": 1, "content": 2, "parts": 3, "output": {}, "tool_calls": "x" }),
        json!({ "role": "user" }),
        json!({ "role": "user", "content": null, "parts": [null, 1] }),
        json!({ "role": "tool", "content": { "a": 1 } }),
        json!({ "type": "computer_call_output", "output": { "type": "computer_screenshot" } }),
        json!({ "role": "system", "content": 1 }),
    ];
    for api in APIS {
        for strategy in STRATEGIES {
            for last in 0..odd.len() {
                let mut talk = Conversation::new(api, 9);
                talk.active = vec![0];
                talk.messages = [&odd[..], &odd[last..=last]].concat();
                let prepared = talk.prepare(strategy, &Ledger::default(), &odd);
                assert_eq!(prepared.tools[..odd.len()], odd);
                assert!(prepared.messages.len() >= talk.messages.len());
                let again = talk.prepare(strategy, &prepared.ledger, &odd);
                assert_eq!(again.messages, prepared.messages);
            }
        }
    }
}

/// Takes the calls of a message out of their envelopes. `name` and `arguments` of a call are where the API has them.
fn unwrap_calls(message: &mut Value) {
    let is_chat = message.get("tool_calls").is_some();
    let paths = [
        "/content/0",
        "/content/1",
        "/tool_calls/0/function",
        "/tool_calls/1/function",
        "",
        "/parts/0/functionCall",
        "/parts/1/functionCall",
    ];
    for path in paths {
        let Some(call) = message.pointer_mut(path).filter(|call| call["name"] == CALL_TOOL_NAME)
        else {
            continue;
        };
        let keys = ["input", "args", "arguments"];
        let key = keys.into_iter().find(|key| call.get(key).is_some()).expect("arguments");
        let named = open(&call[key]).expect("a call in the envelope");
        let is_text = is_chat || call["type"] == "function_call";
        call["name"] = named.name.into();
        call[key] = if is_text {
            named.arguments_json.into()
        } else {
            serde_json::from_str(&named.arguments_json).expect("JSON")
        };
    }
}

/// Returns a message with two calls.
fn with_calls(api: Api, random: &mut Random) -> Value {
    const NAMES: [&str; 5] = ["own", "mcp__a__b", "\"quoted\"", "with space", "\u{e9}\\n"];
    let values =
        [json!({}), json!({ "b": [1, { "a": null }], "a": "\"\n" }), json!({ "name": "x" })];
    let name = NAMES[random.below(NAMES.len())];
    let arguments = &values[random.below(values.len())];
    let broken = ["{\"a\": ", "[1]", "\"{}\"", "no JSON"];
    let text = match random.below(3) {
        0 => json!(broken[random.below(broken.len())]),
        _ => json!(arguments.to_string()),
    };
    match api {
        Api::Anthropic => json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "1", "name": name, "input": arguments, "x": 1.5 },
            { "input": arguments, "name": "mcp__c__d", "id": "2", "type": "tool_use" }] }),
        Api::OpenAiChat => json!({ "x": null, "role": "assistant", "tool_calls": [
            { "id": "1", "function": { "arguments": text, "name": name }, "index": 0 },
            { "id": "2", "function": { "name": "mcp__c__d", "arguments": text } }] }),
        Api::OpenAiResponses => json!({ "arguments": text, "call_id": "1", "name": name,
            "type": "function_call", "status": "completed" }),
        Api::Gemini => json!({ "role": "model", "parts": [
            { "functionCall": { "args": arguments, "name": name }, "thoughtSignature": "s" },
            { "functionCall": { "id": "2", "name": "mcp__c__d", "args": arguments } }] }),
    }
}

#[test]
fn a_history_out_of_its_envelopes_is_what_it_was_byte_for_byte() {
    let mut wrapped = 0;
    for api in APIS {
        let mut random = Random(17);
        for _ in 0..200 {
            let before = with_calls(api, &mut random);
            let mut messages = [before.clone()];
            wrap_history(api, &mut messages, &["own", CALL_TOOL_NAME].into());
            let [mut message] = messages;
            wrapped += usize::from(message != before);
            unwrap_calls(&mut message);
            assert_eq!(message.to_string(), before.to_string());
        }
    }
    assert!(wrapped > 700, "{wrapped} messages had envelopes");
}
