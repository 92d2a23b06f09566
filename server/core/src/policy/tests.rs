//! Tests of documents: accepted ones, refused ones, and agreement with the published schema.

use serde_json::Value;

use super::*;

const DOCUMENT: &str = r#"
# Deletions wait for a plan.
defaults: {threshold: 0.3, top_k: 8, max_per_server: 4}
rules:
  - name: plan-first
    description: Nothing is destroyed without a plan.
    match:
      servers: ["git*", db]
      annotations: {destructiveHint: true}
    precondition:
      all:
        - milestone_reached: plan_approved
        - cel: "'repo:write' in state.scopes"
        - not: {any: [{is_authenticated: guest}, {has_prior_tool_output: drop_}]}
  - name: staff
    match: {tools: ["admin_?"], tags: [internal]}
    required_scopes: [staff, admin, staff]
    max_per_server: 2
  - {name: all, pinned: true, always_load: true, critical: true, threshold: -1, top_k: 1}
"#;

fn tool(server: &str, name: &str) -> ToolFacts {
    ToolFacts {
        server: server.into(),
        name: name.into(),
        model_name: format!("mcp__{server}__{name}").into(),
        tags: [].into(),
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
    }
}

fn parse(text: &str) -> Policy {
    Policy::parse(text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

#[track_caller]
fn refused(text: &str, part: &str, problem: &str) -> PolicyMistake {
    let mistakes = Policy::parse(text).expect_err(text);
    let found = mistakes.iter().find(|m| m.part == part && m.problem.contains(problem));
    found.cloned().unwrap_or_else(|| panic!("{text}: {mistakes:?}"))
}

#[test]
fn a_document_is_read_whole() {
    let policy = parse(DOCUMENT);
    assert_eq!(
        policy.defaults,
        Choosing {
            threshold: Some(0.3),
            top_k: Some(8),
            max_per_server: Some(4),
            ..Choosing::default()
        }
    );
    let names: Vec<_> = policy.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["plan-first", "staff", "all"]);
    let first = &policy.rules[0];
    let conditions: Vec<_> = first.conditions.iter().map(Condition::to_string).collect();
    assert_eq!(
        conditions[..2],
        [
            "milestone_reached(\"plan_approved\")".to_owned(),
            "'repo:write' in state.scopes".to_owned()
        ]
    );
    assert_eq!(conditions.len(), 3);
    assert_eq!(policy.rules[1].scopes, ["admin", "staff"]);
    assert!(policy.hides());
    let last = &policy.rules[2];
    assert!(last.pinned && last.always_load && last.critical && !last.denied);
    assert_eq!(
        last.choosing,
        Choosing { threshold: Some(-1.0), top_k: Some(1), ..Choosing::default() }
    );
}

#[test]
fn json_is_yaml() {
    let json = r#"{"rules": [{"name": "r", "denied": true, "match": {"tools": ["x\u0041"]}}]}"#;
    let yaml = "rules: [{name: r, denied: true, match: {tools: [xA]}}]";
    assert_eq!(parse(json), parse(yaml));
    assert_eq!(parse("{}"), Policy::default());
}

fn fits(rule: &Rule, tool: &ToolFacts) -> bool {
    rule.matches(tool, &mut 0)
}

#[test]
fn rules_match_by_all_their_parts() {
    let policy = parse(DOCUMENT);
    let [first, staff, all] = [0, 1, 2].map(|i| policy.rules[i].clone());
    assert!(fits(&first, &tool("github", "push")) && fits(&first, &tool("db", "drop")));
    assert!(!fits(&first, &tool("slack", "post")));
    assert!(!fits(&first, &ToolFacts { destructive: false, ..tool("git", "log") }));
    let tagged = ToolFacts { tags: ["x".into(), "internal".into()].into(), ..tool("a", "admin_1") };
    assert!(fits(&staff, &tagged) && !fits(&staff, &tool("a", "admin_1")));
    assert!(!fits(&staff, &ToolFacts { name: "admin_12".into(), ..tagged }));
    assert!(fits(&all, &tool("any", "thing")));
}

#[test]
fn mistakes_have_their_place() {
    let text =
        "rules:\n  - name: r\n    precondition:\n      any:\n        - cel: \"1 + foo == 2\"\n";
    let mistake = refused(text, "rules[0].precondition", "unknown variable `foo`");
    assert_eq!((mistake.line, mistake.column), (5, 16), "{mistake}");
    assert!(mistake.problem.starts_with("at line 1, column 5 of the expression"), "{mistake}");
    let mistake = refused("rules:\n  - name: a\n  - name: a\n", "rules[1].name", "the same name");
    assert_eq!(mistake.line, 3);
    let mistake = refused("rules:\n  - name: a\n    deny: true\n", "", "deny");
    assert_eq!(mistake.line, 3);
    assert_eq!(refused("rules: [", "", "").line, 1);
    refused("rules: [{name: ''}]", "rules[0].name", "1 to 64");
    refused("rules: [{name: a, threshold: 2}]", "rules[0].threshold", "cosine");
    refused("defaults: {top_k: 0}", "defaults.top_k", "1 to 100");
    refused("rules: [{name: a, match: {tools: ['']}}]", "rules[0].match.tools", "1 to 256");
    refused("rules: [{name: a, precondition: {any: []}}]", "rules[0].precondition", "operand");
    refused(
        "rules: [{name: a, precondition: {is_authenticated: ''}}]",
        "rules[0].precondition",
        "1 to",
    );
    refused("rules: [{name: a, precondition: {cel: '1'}}]", "rules[0].precondition", "a bool");
    refused("rules: [{name: a, precondition: {never: x}}]", "", "never");
    refused("3", "", "");
    refused("{}\n---\n{}", "", "");
}

#[test]
fn attacks_are_refused_at_once() {
    let deep = format!("rules: [{{name: a, precondition: {}}}]", nested("{not: ", "}", 12));
    refused(&deep, "rules[0].precondition", "nested at most 8");
    for bomb in [
        nested("[", "]", 20_000),
        nested("{a: ", "}", 10_000),
        format!("rules: [{}]", nested("{not: ", "}", 9_000)),
        format!("a: &a [x, x]\nb: &b [*a, *a]\nc: [{}]", vec!["*b"; 9_000].join(",")),
        " ".repeat(DOCUMENT_MAX + 1),
        format!("rules: [{}]", vec!["{name: a}"; 5_000].join(",")),
        "\u{0}".to_owned(),
        "- ".repeat(30_000),
        "? ".repeat(30_000),
    ] {
        let started = std::time::Instant::now();
        assert!(Policy::parse(&bomb).is_err(), "{}", &bomb[..30.min(bomb.len())]);
        assert!(started.elapsed() < std::time::Duration::from_secs(60));
    }
    let patterns = vec!["{cel: 'principal.id.matches(\"a\")'}"; 64].join(",");
    let too_many = format!(
        "rules: [{{name: a, precondition: {{any: [{}]}}}}, {{name: b, precondition: {{any: [{}]}}}}]",
        &patterns[..patterns.len() / 2 + 400 - (patterns.len() / 2 + 400) % 35 - 1],
        &patterns[..patterns.len() / 2 + 400 - (patterns.len() / 2 + 400) % 35 - 1],
    );
    refused(&too_many, "rules", "patterns");
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}{{is_authenticated: x}}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn the_published_schema_says_the_same() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let schema = jsonschema::draft202012::new(&schema).expect("a schema");
    let valid = |text: &str| schema.is_valid(&serde_saphyr::from_str::<Value>(text).expect("YAML"));
    for text in [DOCUMENT, "{}", "rules: []", "defaults: {}"] {
        assert!(valid(text) && Policy::parse(text).is_ok(), "{text}");
    }
    for text in [
        "rules: [{}]",
        "rule: []",
        "rules: [{name: ''}]",
        "rules: [{name: a, deny: true}]",
        "rules: [{name: a, denied: 'yes'}]",
        "rules: [{name: a, threshold: 2}]",
        "rules: [{name: a, top_k: 0}]",
        "rules: [{name: a, max_per_server: 101}]",
        "rules: [{name: a, match: {server: [x]}}]",
        "rules: [{name: a, match: {servers: x}}]",
        "rules: [{name: a, match: {annotations: {title: x}}}]",
        "rules: [{name: a, match: {annotations: {readOnlyHint: 1}}}]",
        "rules: [{name: a, precondition: {any: []}}]",
        "rules: [{name: a, precondition: {is_authenticated: a, cel: b}}]",
        "rules: [{name: a, precondition: {never: a}}]",
        "rules: [{name: a, required_scopes: ['']}]",
        "defaults: {threshold: high}",
    ] {
        assert!(!valid(text) && Policy::parse(text).is_err(), "{text}");
    }
}

#[test]
fn examples_of_the_documentation_are_policies() {
    let examples = [
        (include_str!("../../../../README.md"), 4),
        (include_str!("../../../../docs/policies.md"), 5),
    ];
    for (page, rules) in examples {
        let example = page.split("```yaml").nth(1).and_then(|rest| rest.split("```").next());
        assert_eq!(parse(example.expect("an example")).rules.len(), rules);
    }
}

#[test]
fn mistakes_of_writing_say_what_would_be_right() {
    for (text, problem) in [
        ("rules: [{name: a, deny: true}]", "there is no key \"deny\"; did you mean denied?"),
        ("rules: [{name: a, match: {server: [x]}}]", "did you mean servers?"),
        ("rules: [{name: a, match: {servers: x}}]", "must be a list, such as [a, b]"),
        ("rules: []\nrules: []", "the key \"rules\" stands twice"),
        ("rules: [{}]", "lacks the key \"name\""),
        ("just words", "must be a mapping, such as {key: value}"),
        ("defaults: &x {}\nrules: [*x]", "anchors and aliases (& and *) are not taken"),
        ("{}\n---\n{}", "must be one document"),
        (
            "rules: [{name: a, precondition: {never: a}}]",
            "there is no precondition \"never\"; there are",
        ),
        ("rules: [{name: a, precondition: {is_authenticated: a, cel: b}}]", "has one key; combine"),
        ("rules: [{name: a, precondition: {cel: 'a = b'}}]", "to compare, write =="),
        ("rules: [{name: a, precondition: {cel: 'true &&'}}]", "ends too early"),
    ] {
        let mistakes = Policy::parse(text).expect_err(text);
        let said = mistakes[0].to_string();
        assert!(said.contains(problem), "{text}: {said}");
        assert!(said.matches("line ").count() <= 2, "the place is said once: {said}");
    }
}
