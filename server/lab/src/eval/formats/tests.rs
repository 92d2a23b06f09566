//! Tests of each format with made-up files, and of the error messages for mistakes.

use std::fs;
use std::path::PathBuf;

use super::*;

/// Folder with made-up files.
struct Folder(tempfile::TempDir);

impl Folder {
    fn of(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a directory"));
        for (name, text) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Reads `queries` with `catalog`; an empty `catalog` means none.
    fn read(&self, catalog: &str, queries: &str) -> Result<LabelledSet, String> {
        let catalog = Some(self.path(catalog)).filter(|_| !catalog.is_empty());
        let queries = self.path(queries);
        let files = Files { catalog: catalog.as_deref(), queries: &queries, answers: None };
        let folder = format!("{}/", self.0.path().display());
        read(files, None).map_err(|error| error.to_string().replace(&folder, ""))
    }
}

/// Returns each server with the names of its tools.
fn tools(set: &LabelledSet) -> Vec<(String, Vec<String>)> {
    let name = |tool: &str| {
        let tool: Value = serde_json::from_str(tool).expect("JSON");
        tool["name"].as_str().expect("a name").to_owned()
    };
    let names = |server: &CatalogServer| server.tools.iter().map(|tool| name(tool)).collect();
    set.servers.iter().map(|server| (server.name.clone(), names(server))).collect()
}

fn tool(set: &LabelledSet, server: usize, tool: usize) -> Value {
    serde_json::from_str(&set.servers[server].tools[tool]).expect("JSON")
}

fn labels(set: &LabelledSet) -> Vec<Vec<&str>> {
    set.queries.iter().map(|query| query.relevant.iter().map(String::as_str).collect()).collect()
}

const BFCL: &str = r#"{"id": "parallel_multiple_0", "question": [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Mow the lawn and feed the cat."}]], "function": [{"name": "garden.mow", "description": "Cuts grass.", "parameters": {"type": "dict", "properties": {"height": {"type": "float"}}, "required": ["height"]}}, {"name": "feed_pet", "description": "Feeds.", "parameters": {"type": "dict", "properties": {}}}]}
{"id": "live_irrelevance_3-1-0", "question": [[{"role": "user", "content": "Who is the mayor?"}]], "function": [{"name": "feed_pet", "description": "Another.", "parameters": {"type": "dict"}}]}
"#;

const BFCL_ANSWERS: &str = r#"{"id": "parallel_multiple_0", "ground_truth": [{"garden.mow": {"height": [3.5]}}, {"feed_pet": {}}, {"feed_pet": {}}]}"#;

#[test]
fn bfcl_offers_all_functions_to_all_questions() {
    let folder = Folder::of(&[
        ("q/BFCL_v3_x.json", BFCL),
        ("q/possible_answer/BFCL_v3_x.json", BFCL_ANSWERS),
    ]);
    let set = folder.read("", "q/BFCL_v3_x.json").expect("a set");
    let names = vec!["garden.mow".to_owned(), "feed_pet".to_owned()];
    assert_eq!(tools(&set), [("bfcl".to_owned(), names)]);
    let mow = tool(&set, 0, 0);
    assert_eq!(mow["inputSchema"]["type"], "object");
    assert_eq!(mow["inputSchema"]["properties"]["height"]["type"], "number");
    assert_eq!(tool(&set, 0, 1)["description"], "Feeds.", "the first definition is kept");
    assert_eq!(labels(&set), [vec!["bfcl/feed_pet", "bfcl/garden.mow"], vec![]]);
    let shape: Vec<_> = set
        .queries
        .iter()
        .map(|q| (q.text.as_str(), q.kind.as_deref().unwrap_or(""), q.needs_no_tool))
        .collect();
    let wanted = [
        ("Mow the lawn and feed the cat.", "parallel_multiple", false),
        ("Who is the mayor?", "live_irrelevance", true),
    ];
    assert_eq!(shape, wanted);
}

#[test]
fn bfcl_takes_functions_of_other_files_and_says_what_it_lacks() {
    let other = r#"{"id": "a_0", "question": [], "function": [{"name": "f"}]}"#;
    let multi = r#"{"id": "multi_turn_base_0", "question": [[{"role": "user", "content": "x"}]], "involved_classes": []}"#;
    let folder = Folder::of(&[
        ("q.json", BFCL),
        ("possible_answer/q.json", "{\"id\": \"other\", \"ground_truth\": []}"),
        ("alone/q.json", BFCL),
        ("more/other.json", other),
        ("multi.json", multi),
        (
            "alone/cut.json",
            "{\"id\": \"x_0\", \"question\": \"q\", \"function\": [{\"description\": \"d\"}]}",
        ),
    ]);
    let wrong = folder.read("", "q.json").expect_err("no answer");
    assert_eq!(wrong, "q.json:1: no answer to \"parallel_multiple_0\" in possible_answer/q.json");
    let wrong = folder.read("", "alone/q.json").expect_err("no answers");
    assert!(wrong.starts_with("alone/q.json:1: no answers: there is no alone/possible"), "{wrong}");
    let wrong = folder.read("", "multi.json").expect_err("several turns");
    assert!(wrong.starts_with("multi.json:1: no \"function\": multi-turn"), "{wrong}");
    let wrong = folder.read("", "alone/cut.json").expect_err("no name");
    assert!(wrong.contains("alone/cut.json:1: column") && wrong.contains("`name`"), "{wrong}");

    let answers = folder.path("answers.json");
    fs::write(&answers, BFCL_ANSWERS).expect("written");
    let catalog = folder.path("more");
    let queries = folder.path("alone/q.json");
    let files = Files { catalog: Some(&catalog), queries: &queries, answers: Some(&answers) };
    let set = read(files, None).expect("a set");
    assert_eq!(tools(&set), [("bfcl".to_owned(), vec!["f".to_owned()])]);
}

#[test]
fn metatool_is_a_csv_or_an_array() {
    let folder = Folder::of(&[
        ("tools.json", r#"{"Gardening": "Helps with plants.", "Chess": "Plays chess."}"#),
        (
            "one.csv",
            "Query,Tool\n\"When do I sow peas, \"\"early\"\"?\",Gardening\nMate in two,Chess\n",
        ),
        ("several.json", r#"[{"query": "Plants and pawns", "tool": ["Gardening", "Chess"]}]"#),
    ]);
    let one = folder.read("tools.json", "one.csv").expect("a set");
    let names = vec!["Chess".to_owned(), "Gardening".to_owned()];
    assert_eq!(tools(&one), [("plugins".to_owned(), names)]);
    assert_eq!(tool(&one, 0, 0)["description"], "Plays chess.");
    assert_eq!(one.queries[0].text, "When do I sow peas, \"early\"?");
    assert_eq!(labels(&one), [["plugins/Gardening"], ["plugins/Chess"]]);
    let several = folder.read("tools.json", "several.json").expect("a set");
    assert_eq!(labels(&several), [["plugins/Chess", "plugins/Gardening"]]);
}

#[test]
fn metatools_mistakes_are_named() {
    let folder = Folder::of(&[
        ("tools.json", r#"{"Chess": "Plays chess."}"#),
        ("odd.json", r#"{"Chess": 3}"#),
        ("array.json", "[]"),
        ("fields.csv", "query,tool\na,b\n\"c\nd\",e,f\n"),
        ("quotes.csv", "Query,Tool\na,b\n\"c"),
        ("blank.json", "[{\"query\": \"a\", \"tool\": []},\n{\"query\": \" \", \"tool\": []}]"),
        ("ok.csv", "Query,Tool\na,Chess"),
    ]);
    let wrong = |catalog: &str, queries: &str| folder.read(catalog, queries).expect_err(queries);
    assert_eq!(wrong("tools.json", "fields.csv"), "fields.csv:3: 3 fields; expected Query,Tool");
    assert!(
        wrong("tools.json", "quotes.csv").starts_with("quotes.csv:3: quotes begin in this record")
    );
    assert_eq!(wrong("tools.json", "blank.json"), "blank.json:2: the query is empty");
    assert!(wrong("odd.json", "ok.csv").starts_with("odd.json: \"Chess\" has no text"));
    assert!(wrong("array.json", "ok.csv").starts_with("array.json: expected the tools as"));
    assert!(wrong("", "ok.csv").starts_with("ok.csv: metatool queries come without tools"));
}

const TOOLBENCH: &str = r#"[
    {"api_list": [
        {"category_name": "Pets", "tool_name": "Cat Care ", "api_name": "Get /cats", "api_description": "All cats.",
         "required_parameters": [{"name": "owner", "type": "STRING", "description": "whose", "default": ""}],
         "optional_parameters": [{"name": "page", "type": "NUMBER", "description": "", "default": 1}]},
        {"category_name": "Pets", "tool_name": "Dogs", "api_name": "walk", "api_description": null}],
     "query": "Which cats are mine?", "relevant APIs": [["Cat Care ", "Get /cats"]], "query_id": 7},
    {"api_list": [{"tool_name": "Dogs", "api_name": "walk", "api_description": "Again."}],
     "query": "Walk them", "relevant APIs": [["Dogs", "walk"], ["Cat Care", "Get /cats"]]}
]"#;

#[test]
fn toolbench_tools_are_servers_and_apis_their_tools() {
    let wrong =
        TOOLBENCH.replace("\"api_name\": \"walk\", \"api_description\": \"Again.\"", "\"api\": 1");
    let folder = Folder::of(&[("q.json", TOOLBENCH), ("wrong.json", &wrong)]);
    let set = folder.read("", "q.json").expect("a set");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let wanted =
        [("Cat Care".to_owned(), names(&["Get /cats"])), ("Dogs".to_owned(), names(&["walk"]))];
    assert_eq!(tools(&set), wanted);
    assert_eq!(labels(&set), [vec!["Cat Care/Get /cats"], vec!["Cat Care/Get /cats", "Dogs/walk"]]);
    let schema = &tool(&set, 0, 0)["inputSchema"];
    assert_eq!(schema["required"], serde_json::json!(["owner"]));
    assert_eq!(schema["properties"]["page"]["type"], "number");
    assert_eq!(tool(&set, 1, 0)["description"], "");
    let wrong = folder.read("", "wrong.json").expect_err("no name");
    assert!(wrong.starts_with("wrong.json:8: column") && wrong.contains("api_name"), "{wrong}");
    assert_eq!(folder.read("q.json", "q.json").expect("the same").servers, set.servers);
}

#[test]
fn toolret_tools_are_called_what_their_documentation_calls_them() {
    let tools_file = r#"{"id": "web_tool_1", "documentation": "{\"name\": \"sow\", \"description\": \"Sows seeds.\", \"parameters\": {\"plant\": {\"description\": \"which\", \"type\": \"str\"}}}"}
{"id": "web_tool_2", "documentation": "Waters the garden."}
{"id": "code_tool_3", "documentation": {"name": "sow", "description": "Another.", "parameters": {"properties": {"n": {"description": "how many"}}}}}
"#;
    let queries = r#"[{"id": "web_query_0", "query": "Sow peas", "instruction": "Given a garden, ...", "labels": [{"id": "web_tool_1", "doc": {}, "relevance": 1}, {"id": "web_tool_2", "relevance": 0}]},
{"id": "code_query_1", "query": "Sow more", "labels": "[{\"id\": \"code_tool_3\", \"relevance\": 1}, {\"id\": \"gone\"}]"}]"#;
    let wrong = "{\"id\": \"q_0\", \"query\": \"x\", \"labels\": []}\n{\"id\": \"q_1\", \"query\": \"x\", \"labels\": 3}";
    let folder =
        Folder::of(&[("t.jsonl", tools_file), ("q.json", queries), ("wrong.jsonl", wrong)]);
    let set = folder.read("t.jsonl", "q.json").expect("a set");
    let wanted = [("web_tool_1", "sow"), ("web_tool_2", "web_tool_2"), ("code_tool_3", "sow")];
    let wanted = wanted.map(|(server, name)| (server.to_owned(), vec![name.to_owned()]));
    assert_eq!(tools(&set), wanted);
    assert_eq!(tool(&set, 0, 0)["inputSchema"]["properties"]["plant"]["description"], "which");
    assert_eq!(tool(&set, 1, 0)["description"], "Waters the garden.");
    assert_eq!(tool(&set, 2, 0)["inputSchema"]["properties"]["n"]["description"], "how many");
    assert_eq!(labels(&set), [vec!["web_tool_1/sow"], vec!["code_tool_3/sow", "gone"]]);
    assert_eq!(set.queries[1].kind.as_deref(), Some("code"));
    let wrong = folder.read("t.jsonl", "wrong.jsonl").expect_err("no labels");
    assert!(wrong.starts_with("wrong.jsonl:2: labels: invalid type"), "{wrong}");
}

#[test]
fn our_own_format_is_read_as_ever_and_what_is_unknown_is_told() {
    let catalog = r#"{"name": "s", "tools": [{"name": "t"}]}"#;
    let folder = Folder::of(&[
        ("c.json", catalog),
        ("q.jsonl", "{\"query\": \"a\", \"relevant\": [\"s/t\"], \"kind\": \"x\"}\n"),
        ("cut.jsonl", "{\"query\": \"a\""),
        ("odd.jsonl", "{\"utterance\": \"a\", \"intent\": 3}"),
        ("odd.csv", "text;label\n"),
        ("empty.jsonl", " \n"),
        ("none.json", "[]"),
    ]);
    let set = folder.read("c.json", "q.jsonl").expect("a set");
    assert_eq!((labels(&set), tools(&set).len()), (vec![vec!["s/t"]], 1));
    let wrong = |queries: &str| folder.read("c.json", queries).expect_err(queries);
    assert_eq!(wrong("cut.jsonl"), "cut.jsonl:1: column 13: EOF while parsing an object");
    assert!(
        wrong("odd.jsonl").contains("objects with \"utterance\", \"intent\". Known are toolgate")
    );
    assert!(wrong("odd.csv").contains("a first line that reads \"text;label\""));
    assert_eq!(wrong("empty.jsonl"), "empty.jsonl: no queries in it");
    assert!(wrong("none.json").starts_with("none.json"), "{}", wrong("none.json"));
    let queries = folder.path("q.jsonl");
    let answers = Some(queries.as_path());
    let catalog = folder.path("c.json");
    let files = Files { catalog: Some(&catalog), queries: &queries, answers };
    let wrong = read(files, None).expect_err("no answers").to_string();
    assert!(wrong.contains("toolgate keeps no answers apart"), "{wrong}");
}
