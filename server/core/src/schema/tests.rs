//! Tests of schemas: accepted ones, refused ones, and the cost of checking arguments.

use serde_json::json;

use super::*;

fn check(schema: &str, arguments: &str, pointers: &[&str]) {
    let schema = ArgumentSchema::compile(schema).expect("a schema");
    let arguments = serde_json::from_str(arguments).expect("JSON");
    let violations = schema.check(&arguments).err().unwrap_or_default();
    let found: Vec<_> = violations.iter().map(|v| v.pointer.as_str()).collect();
    assert_eq!(found, pointers, "{violations:?}");
}

fn refused(schema: &str) -> String {
    ArgumentSchema::compile(schema).expect_err("must be refused")
}

#[test]
fn arguments_are_checked_with_pointers() {
    let schema = r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},
        "b":{"items":{"type":"string"}}}}"#;
    check(schema, r#"{"a": 1, "b": ["x"]}"#, &[]);
    check(schema, r#"{"a": "x", "b": ["y", 2]}"#, &["/a", "/b/1"]);
    check(schema, "{}", &[""]);
}

#[test]
fn values_are_not_repeated() {
    let schema = r#"{"type":"object","properties":{"a":{"const":"k"}}}"#;
    let schema = ArgumentSchema::compile(schema).expect("a schema");
    let arguments = serde_json::json!({"a": "s3cret"});
    let violations = schema.check(&arguments).expect_err("wrong");
    assert!(!violations[0].problem.contains("s3cret"), "{violations:?}");
}

#[test]
fn endless_references_are_refused_and_recursive_ones_are_not() {
    assert!(refused(r##"{"$ref":"#"}"##).contains("leads back to itself"));
    let two = r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},
        "b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}"##;
    assert!(refused(two).contains("leads back to itself"));
    let tree = r##"{"type":"object","properties":{"children":{"type":"array",
        "items":{"$ref":"#"}}}}"##;
    check(tree, r#"{"children":[{"children":[]},{"children":[3]}]}"#, &["/children/1/children/0"]);
}

#[test]
fn references_that_fan_out_are_refused() {
    let level = |i| {
        format!(
            r##""d{i}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
            i + 1
        )
    };
    let levels: Vec<_> = (0..40).map(level).collect();
    let schema =
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d40":{{}}}}}}"##, levels.join(","));
    assert!(refused(&schema).contains("at most 10000"), "{}", refused(&schema));
    let chain: Vec<_> =
        (0..5_000).map(|i| format!(r##""d{i}":{{"$ref":"#/$defs/d{}"}}"##, i + 1)).collect();
    let schema =
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d5000":{{}}}}}}"##, chain.join(","));
    assert!(refused(&schema).contains("in chains of"));
}

#[test]
fn nothing_outside_is_resolved() {
    for target in ["https://example.com/s.json", "file:///etc/passwd", "other.json"] {
        refused(&format!(r#"{{"$ref":"{target}"}}"#));
    }
    assert!(refused(r#"{"type": 3}"#).contains("/type"));
}

#[test]
fn anchors_and_the_own_id_are_followed() {
    let back = r##"{"$defs":{"a":{"$anchor":"x","$ref":"#x"}},"$ref":"#x"}"##;
    assert!(refused(back).contains("leads back to itself"));
    let named = r##"{"$id":"https://e.x/s","properties":{"a":{"$ref":"#n"},
        "b":{"$ref":"https://e.x/s#/$defs/n%20m"}},"$defs":{"n m":{"$anchor":"n","type":"null"}}}"##;
    check(named, r#"{"a": 1, "b": 2}"#, &["/a", "/b"]);
}

/// Returns true if the arguments are refused for the checks that they would take.
fn is_too_much(schema: &Value, arguments: &Value) -> bool {
    let schema = ArgumentSchema::compile(&schema.to_string()).expect("a schema");
    let violations = schema.check(arguments).expect_err("wrong");
    violations[0].problem.contains("checks")
}

#[test]
fn schemas_times_values_are_bounded() {
    let branches: Vec<_> = (0..3_000).map(|n| json!({"const": n})).collect();
    let schema = json!({"properties": {"x": {"items": {"anyOf": branches}}}});
    assert!(is_too_much(&schema, &json!({"x": vec![-1; 100_000]})));
    let names: serde_json::Map<_, _> =
        (0..200).map(|n| (format!("^.*{n}$"), json!({"type": "string"}))).collect();
    let members: serde_json::Map<_, _> = (0..20_000).map(|n| (format!("k{n}"), json!(1))).collect();
    assert!(is_too_much(&json!({"patternProperties": names}), &json!(members)));
}

#[test]
fn references_that_fan_out_from_one_value_to_the_next_are_bounded() {
    let next = json!({"properties": {"x": {"$ref": "#"}}, "required": ["y"]});
    let schema = json!({"anyOf": [next, next]});
    let deep = |n| (0..n).fold(json!(1), |inner, _| json!({"x": inner}));
    assert!(is_too_much(&schema, &deep(40)));
    let flat = ArgumentSchema::compile(&schema.to_string()).expect("a schema");
    assert!(!flat.check(&deep(3)).expect_err("wrong")[0].problem.contains("checks"));
}

#[test]
fn references_that_fan_out_below_the_root_are_refused() {
    let level = |i: usize| match i {
        0 => json!({"type": "string"}),
        i => json!({"anyOf": vec![json!({"$ref": format!("#/$defs/a{}", i - 1)}); 2]}),
    };
    let levels: serde_json::Map<_, _> = (0..26).map(|i| (format!("a{i}"), level(i))).collect();
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/a25"}}, "$defs": levels});
    assert!(refused(&schema.to_string()).contains("schemas to one value"));
}

#[test]
fn many_wrong_values_are_told_without_a_list() {
    let schema = json!({"properties": {"x": {"items": {"type": ["string", "null"]}}}});
    let schema = ArgumentSchema::compile(&schema.to_string()).expect("a schema");
    let violations = schema.check(&json!({"x": vec![1; 100_000]})).expect_err("wrong");
    assert!(violations.len() == 1 && violations[0].problem.contains("too large to say where"));
    assert_eq!(schema.check(&json!({"x": vec![1; 1_000]})).expect_err("wrong").len(), 16);
}

#[test]
fn deep_chains_do_not_exhaust_the_stack() {
    let chain: serde_json::Map<_, _> = (0..100)
        .map(|i| (format!("d{i}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", i + 1)}]})))
        .chain([("d100".to_owned(), json!({"properties": {"x": {"$ref": "#/$defs/d0"}}}))])
        .collect();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": chain});
    let deep = (0..100).fold(json!(1), |inner, _| json!({"x": inner}));
    assert!(is_too_much(&schema, &deep));
    let patterns: serde_json::Map<_, _> =
        (0..300).map(|n| (format!("^{n}$"), json!(true))).collect();
    assert!(refused(&json!({"patternProperties": patterns}).to_string()).contains("units"));
}

#[test]
fn look_around_patterns_work_and_are_bounded() {
    let schema = r#"{"properties":{"a":{"pattern":"^(?!x)(a+)+$"}}}"#;
    check(schema, r#"{"a": "aaa"}"#, &[]);
    let long = format!("{{\"a\": \"{}b\"}}", "a".repeat(40));
    check(schema, &long, &["/a"]);
}

/// Returns schemas of at most 64 KiB that would take seconds or hundreds of MiB without bounds.
fn attacks() -> Vec<(&'static str, Value)> {
    let all_of = |count: usize, pattern: &dyn Fn(usize) -> String| {
        let patterns: Vec<_> = (0..count).map(|i| json!({"pattern": pattern(i)})).collect();
        json!({"allOf": patterns})
    };
    let many = |count: usize| vec![json!({}); count];
    let long = "x".repeat(30_000);
    let deep = (0..58).fold(
        json!({"anyOf": many(5_000)}),
        |inner, _| json!({"properties": {"y".repeat(500): inner}}),
    );
    let unevaluated = (0..12)
        .fold(json!({}), |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}));
    vec![
        ("repeated classes", all_of(256, &|i| format!(r"^\p{{L}}{{60}}x{i}y0$"))),
        ("classes", json!({"pattern": r"\p{L}".repeat(400)})),
        ("translated classes", json!({"pattern": r"\d".repeat(1_000)})),
        ("translated classes, often", all_of(200, &|i| format!("{}{i}", r"\s".repeat(100)))),
        ("control characters", json!({"pattern": r"\cA".repeat(1_000)})),
        ("nested repetitions", json!({"pattern": "(((a{40}){40}){40}){40}"})),
        ("a long alternation", json!({"pattern": format!("({}b)x?", "abc|".repeat(10_000))})),
        ("look-ahead", json!({"pattern": format!("{}a", "(?=a)".repeat(2_000))})),
        ("look-ahead with classes", all_of(60, &|i| format!(r"^(?=\p{{L}}{{9}})\w{i}$"))),
        ("names", json!({"patternProperties": {r"^\p{L}{90}$": {}, r"^\p{L}{91}$": {}}})),
        ("in a property called enum", json!({"properties": {"enum": {"pattern": r"^\p{L}{90}$"}}})),
        ("names of names", json!({"propertyNames": {"pattern": r"^\p{L}{90}$"}})),
        ("parts below a long name", json!({"properties": {long.as_str(): {"anyOf": many(9_900)}}})),
        (
            "parts below a long $id",
            json!({"$id": format!("http://x/{long}"), "anyOf": many(9_900)}),
        ),
        ("parts below long names", deep),
        ("parts", json!({"prefixItems": many(21_000)})),
        ("unevaluated", json!({"prefixItems": vec![unevaluated; 100]})),
    ]
}

#[test]
fn attacks_are_refused_where_they_are() {
    for (name, schema) in attacks() {
        let problem = refused(&schema.to_string());
        assert!(schema.to_string().len() <= 64 << 10, "{name}");
        assert!(problem.len() < 1_500, "{name}: {problem}");
        assert!(problem.starts_with("at \"/"), "{name}: {problem}");
    }
    let problem = refused(r#"{"properties":{"a":{"items":{"pattern":"^\\p{L}{200}$"}}}}"#);
    assert!(problem.starts_with(r#"at "/properties/a/items/pattern": compiling"#), "{problem}");
}

#[test]
fn what_is_taken_is_booked() {
    let patterns: Vec<_> =
        (0..200).map(|i| json!({"pattern": format!("^[a-z]{{3}}{i}$")})).collect();
    let schema =
        ArgumentSchema::compile(&json!({"allOf": patterns}).to_string()).expect("a schema");
    assert!(schema.memory_bytes() > 200 * (16 << 10), "{}", schema.memory_bytes());
    assert!(schema.memory_bytes() < weigh::COMPILED_MAX);
    assert!((200_000..400_000).contains(&(2 * schema.compile_units())));
}

/// Compiles the schema with the largest number for which it is accepted.
fn most_taken(schema: impl Fn(usize) -> Value) -> ArgumentSchema {
    let compile = |count: usize| ArgumentSchema::compile(&schema(count).to_string());
    let mut taken = 1;
    let mut refused = 64 << 10;
    while refused - taken > 1 {
        let middle = usize::midpoint(taken, refused);
        match compile(middle) {
            Ok(_) => taken = middle,
            Err(_) => refused = middle,
        }
    }
    assert!(compile(refused).is_err(), "there is an end to it");
    compile(taken).expect("the largest that is taken")
}

/// Returns a schema with grouped patterns, which take much memory, and with schemas that are compiled again.
fn all_at_once(count: usize) -> Value {
    let is_literal = |byte: &u8| !br"\^$.|?*+()[]{}/".contains(byte);
    let letters: String = (b'!'..=b'~').filter(is_literal).map(char::from).collect();
    let pattern = |i| json!({"pattern": format!("^(({letters}){{20}}{i})$")});
    let asks = json!({"anyOf": [{}, {}], "unevaluatedProperties": false});
    json!({
        "allOf": (0..count).map(pattern).collect::<Vec<_>>(),
        "prefixItems": vec![asks; count],
        "properties": {"x".repeat(2_000): {"anyOf": vec![json!({}); count]}},
    })
}

#[test]
fn what_is_compiled_again_counts() {
    let branches = |count: usize| json!({"anyOf": vec![json!({}); count]});
    let asks = |mut schema: Value| {
        schema["unevaluatedProperties"] = json!(false);
        schema
    };
    let compile = |schema: Value| ArgumentSchema::compile(&schema.to_string()).expect("a schema");
    let once = compile(branches(1_000)).compile_units();
    assert!(compile(asks(branches(1_000))).compile_units() > 2 * once);
    let many = json!({"prefixItems": vec![asks(branches(100)); 150]});
    assert!(refused(&many.to_string()).contains("units of some 100 ns to compile"));
    let names: serde_json::Map<_, _> = (0..3_000).map(|i| (i.to_string(), json!({}))).collect();
    let all = asks(json!({"$ref": "#/$defs/a"}));
    let copies = json!({"$defs": {"a": {"properties": names}}, "prefixItems": vec![all; 600]});
    assert!(copies.to_string().len() <= 64 << 10);
    assert!(refused(&copies.to_string()).contains("bytes once it is compiled"));
}

#[test]
fn the_largest_that_is_taken_is_compiled_within_the_promise() {
    /// 50 ms, in units of 100 ns.
    const UNITS: usize = 500_000;
    let all_of = |count: usize, pattern: &dyn Fn(usize) -> String| {
        let patterns: Vec<_> = (0..count).map(|i| json!({"pattern": pattern(i)})).collect();
        json!({"allOf": patterns})
    };
    let long = "x".repeat(2_000);
    for (name, largest) in [
        ("parts", most_taken(|n| json!({"prefixItems": vec![json!({}); n]}))),
        ("values", most_taken(|n| json!({"enum": (0..n).collect::<Vec<_>>()}))),
        (
            "below a name",
            most_taken(|n| json!({"properties": {long.as_str(): {"anyOf": vec![json!({}); n]}}})),
        ),
        ("patterns", most_taken(|n| all_of(n, &|i| format!("^a{i}$")))),
        ("classes", most_taken(|n| all_of(n, &|i| format!(r"^\w{i}$")))),
        ("repetitions", most_taken(|n| json!({"pattern": format!("^[a-f]{{{n}}}$")}))),
        ("of classes", most_taken(|n| json!({"pattern": format!(r"^\p{{L}}{{{n}}}$")}))),
        ("look-ahead", most_taken(|n| all_of(n, &|i| format!("^(?=a)b{i}$")))),
        ("all at once", most_taken(all_at_once)),
    ] {
        let units = largest.compile_units();
        assert!((1..=UNITS).contains(&units), "{name}: {units}");
        assert!(largest.memory_bytes() <= weigh::COMPILED_MAX, "{name}");
    }
}

#[test]
fn ordinary_patterns_are_taken() {
    let patterns = [
        r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        r"^(arn:(aws[a-zA-Z-]*):[a-z0-9-]+:[a-z0-9-]*:(\d{12})?:[a-zA-Z0-9/_.:-]{1,512})$",
        r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d@$!%*?&]{8,64}$",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$",
        r"^[\p{L}\p{N} .'-]{1,20}$",
    ];
    let names = patterns.iter().enumerate();
    let names: serde_json::Map<_, _> =
        names.map(|(i, pattern)| (i.to_string(), json!({"pattern": pattern}))).collect();
    ArgumentSchema::compile(&json!({"properties": names}).to_string()).expect("a schema");
}

#[test]
fn matching_long_texts_is_bounded() {
    let text = |bytes: usize| json!({"x": "ab".repeat(bytes / 2)});
    let base64 = json!({"properties": {"x": {"pattern": "^[A-Za-z0-9+/=]*$"}}});
    let schema = ArgumentSchema::compile(&base64.to_string()).expect("a schema");
    assert_eq!(schema.check(&text(1 << 20)), Ok(()));
    let states = json!({"properties": {"x": {"pattern": "[ab]*a[ab]{60}c"}}});
    assert!(is_too_much(&states, &text(1 << 20)));
    let rereading = json!({"properties": {"x": {"pattern": "(?=(.*a))b.*c"}}});
    assert!(is_too_much(&rereading, &text(64 << 10)));
    let not_blank = json!({"properties": {"x": {"pattern": r"^(?!\s*$).+"}}});
    let schema = ArgumentSchema::compile(&not_blank.to_string()).expect("a schema");
    assert_eq!(schema.check(&text(64 << 10)), Ok(()));
    let name = "ab".repeat(1 << 19);
    let names = json!({"propertyNames": {"allOf": vec![json!({"pattern": "a.*c"}); 100]}});
    assert!(is_too_much(&names, &json!({name.as_str(): 1})));
}

#[test]
fn comparing_large_values_is_bounded() {
    let unique = json!({"allOf": vec![json!({"uniqueItems": true}); 3_000]});
    assert!(is_too_much(&unique, &json!((0..100_000).collect::<Vec<_>>())));
    let large = json!({"k": "x".repeat(20_000)});
    let same = json!({"$defs": {"c": {"const": large}}, "items": {"anyOf": vec![json!({"$ref": "#/$defs/c"}); 1_000]}});
    assert!(is_too_much(&same, &json!(vec![large.clone(); 50])));
    let names: serde_json::Map<_, _> = (0..3_000).map(|i| (i.to_string(), json!({}))).collect();
    let empty = vec![json!({}); 100_000];
    assert!(is_too_much(&json!({"items": {"properties": names}}), &json!(empty)));
    let required: Vec<_> = (0..8_000).map(|i| i.to_string()).collect();
    assert!(is_too_much(&json!({"items": {"required": required}}), &json!(empty)));
}

#[test]
fn references_that_mean_something_else_below_an_id_are_refused() {
    let inner = json!({"properties": {"x": {"$id": "b", "$defs": {"q": {"type": "null"}}, "$ref": "#/$defs/q"}},
        "$defs": {"q": {}}});
    assert!(refused(&inner.to_string()).contains("below the root has an $id"));
    let twice = json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x", "type": "null"}}, "$ref": "#x"});
    assert!(refused(&twice.to_string()).contains("is there twice"));
}

#[test]
fn older_dialects_are_told_by_their_keywords() {
    let tuple = r#"{"type":"object","properties":{"p":{"type":"array","items":[{"type":"string"},{"type":"number"}],
        "additionalItems":false}}}"#;
    check(tuple, r#"{"p": ["a", 1]}"#, &[]);
    check(tuple, r#"{"p": [1, "a"]}"#, &["/p/0", "/p/1"]);
    let tuple = ArgumentSchema::compile(tuple).expect("a schema");
    assert!(tuple.check(&json!({"p": ["a", 1, 2]})).is_err());
    let bounds = r#"{"properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true,
        "maximum":5,"exclusiveMaximum":false},"m":{"exclusiveMaximum":3,"const":1}}}"#;
    check(bounds, r#"{"n": 5, "m": 1}"#, &[]);
    check(bounds, r#"{"n": 0}"#, &["/n"]);
    check(bounds, r#"{"n": 6, "m": 2}"#, &["/n", "/m"]);
    let notes = r#"{"properties":{"a":{"format":"date"},"b":{"items":[{}]}}}"#;
    check(notes, r#"{"a": "no date", "b": [1]}"#, &[]);
    let named = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"b":{"items":[{}]}}}"#;
    assert!(refused(named).contains("/properties/b/items"));
    let data =
        r#"{"properties":{"a":{"default":{"items":[1]},"enum":[{"exclusiveMinimum":true}]}}}"#;
    check(data, r#"{"a": {"exclusiveMinimum": true}}"#, &[]);
    let unknown = r#"{"$schema":"https://example.com/mine","properties":{"a":{"type":"null"}}}"#;
    check(unknown, r#"{"a": 1}"#, &["/a"]);
}

#[test]
fn percent_signs_of_references_are_resolved() {
    for (text, resolved) in [
        ("/$defs/n%20m%C3%A4", "/$defs/n mä"),
        ("100%", "100%"),
        ("%zz%+f", "%zz%+f"),
        ("a%FF", "a%FF"),
    ] {
        assert_eq!(super::places::percent_decoded(text), resolved);
    }
}
