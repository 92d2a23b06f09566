//! Tests of the whole configuration: precedence, mistakes, defaults and the example.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate_model_hub::KnownModel;

use super::*;

/// Builds inputs from `file` as TOML, and from variables and flags as `NAME=value`.
fn inputs(file: &str, variables: &[&str], flags: &[&str]) -> Inputs {
    let pairs = |list: &[&str]| -> Vec<(String, String)> {
        list.iter()
            .map(|one| one.split_once('=').expect("NAME=value"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    let mut environment = BTreeMap::from_iter(pairs(variables));
    environment.entry("HOME".into()).or_insert_with(|| "/home/ada".into());
    Inputs {
        file: Some(SourceFile { path: "t.toml".into(), text: file.into() }),
        environment,
        flags: pairs(flags)
            .into_iter()
            .map(|(key, value)| FlagValue { flag: format!("--set {key}"), key, value })
            .collect(),
    }
}

fn parse(file: &str, variables: &[&str], flags: &[&str]) -> Parsed {
    match Config::parse(&inputs(file, variables, flags)) {
        Ok(parsed) => parsed,
        Err(errors) => panic!("{errors}"),
    }
}

/// Returns the mistakes as text, each on a line of its own.
fn mistakes(file: &str, variables: &[&str], flags: &[&str]) -> Vec<String> {
    match Config::parse(&inputs(file, variables, flags)) {
        Ok(_) => Vec::new(),
        Err(ConfigErrors(list)) => list.iter().map(ToString::to_string).collect(),
    }
}

fn check_one(file: &str, want: &[&str]) {
    let found = mistakes(file, &[], &[]);
    assert_eq!(found.len(), 1, "{file}: {found:?}");
    for part in want {
        assert!(found[0].contains(part), "{file}: {} lacks {part}", found[0]);
    }
}

#[test]
fn nothing_said_means_the_defaults() {
    let config = parse("", &[], &[]).config;
    assert_eq!(config.server.listen, SocketAddr::from(([127, 0, 0, 1], 7070)));
    assert_eq!(config.server.max_deadline, Duration::from_secs(30));
    assert_eq!(config.limits.max_intent_bytes, 32 << 10);
    assert_eq!(config.limits.max_tools_per_registration, 2048);
    assert_eq!(config.limits.max_message_bytes, 4 << 20);
    assert_eq!(config.store.path, Path::new("/home/ada/.local/share/toolgate"));
    let model = "/home/ada/.cache/toolgate/models/all-MiniLM-L6-v2";
    assert_eq!(config.encoder.model_dir, Path::new(model));
    assert_eq!(config.encoder.threads, None);
    assert_eq!(config.router.top_k, 10);
    assert!((config.router.threshold - 0.28).abs() < f32::EPSILON);
    let KeySource::Kept(path) = &config.handle.key else {
        panic!("{:?}", config.handle.key);
    };
    assert_eq!(path, Path::new("/home/ada/.local/share/toolgate/handle.key"));
    assert_eq!(config.log.level, LogLevel::Info);
    assert!(!config.log.intents);
}

/// Returns a value of `key` that is not its default, as a variable holds it.
fn other_value(key: &KeySpec) -> String {
    let defaults = Settings::defaults();
    let default = defaults.get(key).value.to_string();
    let candidates = match key.kind {
        Kind::Address => ["127.0.0.1:1".to_owned(), String::new()],
        Kind::Count { min, max } => [min.to_string(), max.to_string()],
        Kind::Size { min, max } => [format!("{min}B"), format!("{max}B")],
        Kind::Duration { min, max } => [units::format_duration(min), units::format_duration(max)],
        Kind::Decimal { min, max } => [min.to_string(), max.to_string()],
        Kind::Flag => ["true".to_owned(), "false".to_owned()],
        Kind::Choice(words) => [words[0].to_owned(), words[1].to_owned()],
        Kind::Words(words) => [words[0].to_owned(), String::new()],
        Kind::Certificates => ["cn:a=acme:agent".to_owned(), String::new()],
        Kind::Secret => ["A".repeat(43), String::new()],
        Kind::StoreUrl => ["postgres://other/d".to_owned(), String::new()],
        Kind::Path | Kind::Text | Kind::Patterns => ["other".to_owned(), String::new()],
        Kind::Device | Kind::Devices => ["cpu".to_owned(), String::new()],
        Kind::Gpus => ["auto".to_owned(), String::new()],
        Kind::Workers => ["a:1".to_owned(), String::new()],
        Kind::Mode => ["off".to_owned(), String::new()],
        Kind::TenantModes => ["acme=off".to_owned(), String::new()],
        Kind::Tenants => ["acme".to_owned(), String::new()],
        Kind::Origins => ["https://a.example".to_owned(), String::new()],
    };
    let differs = |text: &String| {
        let value = value::Raw::Untyped(text.clone()).parse(&key.kind).expect(key.name);
        value.to_string() != default
    };
    candidates.into_iter().find(differs).expect(key.name)
}

/// Returns the configuration that `flags` give, whether or not they contradict each other.
fn unchecked(flags: &[(&str, String)]) -> Config {
    let flag = |(key, value): &(&str, String)| FlagValue {
        flag: "--set".into(),
        key: (*key).to_owned(),
        value: value.clone(),
    };
    let environment = [("HOME".to_owned(), "/home/ada".to_owned())].into();
    let flags = flags.iter().map(flag).collect();
    let inputs = Inputs { file: None, environment, flags };
    Config::from(&settings::gather(&inputs).expect("values of the right type").0)
}

#[test]
fn every_key_changes_the_configuration() {
    // Many keys have a meaning only beside another one.
    let beside = [
        &keys::STORE_URL_FILE.spec,
        &keys::AUTH_JWKS_URL.spec,
        &keys::AUTH_ISSUER.spec,
        &keys::AUTH_AUDIENCE.spec,
        &keys::TLS_CERT_FILE.spec,
        &keys::TLS_KEY_FILE.spec,
        &keys::TELEMETRY_OTLP_ENDPOINT.spec,
    ];
    for key in KEYS {
        let without: Vec<_> = beside
            .iter()
            .filter(|one| one.name != key.name)
            .map(|one| (one.name, "first".to_owned()))
            .collect();
        let mut with = without.clone();
        with.push((key.name, other_value(key)));
        let before = format!("{:?}", unchecked(&without));
        assert_ne!(format!("{:?}", unchecked(&with)), before, "{} is never read", key.name);
    }
}

#[test]
fn keys_are_declared_once_and_documented() {
    let words = |text: &'static str| text.split(|letter: char| !is_of_a_name(letter));
    let sections: Vec<_> = KEYS.iter().map(|key| key.section()).collect();
    for (index, key) in KEYS.iter().enumerate() {
        assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
        assert!(key.doc.ends_with('.'), "{}", key.name);
        for word in words(key.doc).map(|word| word.trim_end_matches('.')) {
            let section = word.split_once('.').map_or("", |(section, _)| section);
            let is_key = keys::find(word).is_some();
            assert!(is_key || !sections.contains(&section), "{}: {word} is no key", key.name);
        }
    }
}

/// Returns true for letters of keys' names, and of paths, which are none.
fn is_of_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._/".contains(letter)
}

#[test]
fn some_keys_are_live() {
    let is_live = |name| keys::find(name).expect(name).is_live;
    for name in ["log.level", "limits.max_intents", "deferral.mode", "deferral.tenants"] {
        assert!(is_live(name), "{name}");
    }
    for name in ["server.listen", "limits.max_message_size", "log.format", "handle.key"] {
        assert!(!is_live(name), "{name}");
    }
}

#[test]
fn a_difference_names_the_keys_and_secrets_are_compared() {
    let with = |key: &str, level: &str| {
        let flags = [format!("handle.key={key}"), format!("log.level={level}")];
        parse("", &[], &flags.each_ref().map(String::as_str)).settings
    };
    let key = |begins: &str| format!("{begins}{}", "A".repeat(42));
    let before = with(&key("A"), "info");
    let after = with(&key("Q"), "debug");
    let names: Vec<_> = before.differing(&after).iter().map(|key| key.name).collect();
    assert_eq!(names, ["handle.key", "log.level"]);
    assert!(before.differing(&before.clone()).is_empty());
}

#[test]
fn flags_win_over_environment_over_file() {
    let file = "[router]\ntop_k = 1\n[log]\nlevel = \"warn\"\nformat = \"json\"";
    let variables = ["TOOLGATE_ROUTER_TOP_K=2", "TOOLGATE_LOG_LEVEL=debug"];
    let parsed = parse(file, &variables, &["router.top_k=3"]);
    assert_eq!(parsed.config.router.top_k, 3);
    assert_eq!(parsed.config.log.level, LogLevel::Debug);
    assert_eq!(parsed.config.log.format, LogFormat::Json);
    let source = |key| parsed.settings.get(key).source.to_string();
    assert_eq!(source(&keys::ROUTER_TOP_K.spec), "flag --set router.top_k");
    assert_eq!(source(&keys::LOG_LEVEL.spec), "environment variable TOOLGATE_LOG_LEVEL");
    assert_eq!(source(&keys::LOG_FORMAT.spec), "t.toml:5");
    assert_eq!(source(&keys::LOG_INTENTS.spec), "default");
}

#[test]
fn every_mistake_is_reported_at_once() {
    let file = "listen = \"1.2.3.4:5\"\n\n[server]\nlisten = \"localhost:7070\"\nmax_deadlin = \"3s\"\n\
                [rooter]\ntop_k = 3\n[router]\ntop_k = \"ten\"\nthreshold = 1.5\n";
    let found = mistakes(
        file,
        &["TOOLGATE_LOG_LEVL=info", "TOOLGATE_SHARD_MEMORY_BUDGET=1MB"],
        &["log.form=x"],
    );
    let text = found.join("\n");
    for part in [
        "t.toml:1: listen: no such key; did you mean server.listen?",
        "t.toml:4: server.listen: expected an IP address and port such as \"127.0.0.1:7070\", found the \
         string \"localhost:7070\" (host names are not looked up",
        "t.toml:5: server.max_deadlin: no such key; did you mean server.max_deadline?",
        "t.toml:6: [rooter]: no such section; did you mean [router]?",
        "t.toml:9: router.top_k: expected a whole number from 1 to 100, found the string \"ten\"",
        "t.toml:10: router.threshold: expected a number from -1 to 1, found the number 1.5",
        "environment variable TOOLGATE_LOG_LEVL: no such setting; did you mean TOOLGATE_LOG_LEVEL?",
        "TOOLGATE_SHARD_MEMORY_BUDGET: shard.memory_budget: expected a size",
        "flag --set log.form: log.form: no such key; did you mean log.format?",
    ] {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
    assert_eq!(found.len(), 9, "{text}");
    let lines: Vec<&str> = found.iter().filter_map(|one| one.strip_prefix("t.toml:")).collect();
    assert!(
        lines.is_sorted_by_key(|line| line
            .split(':')
            .next()
            .and_then(|line| line.parse::<u32>().ok()))
    );
}

#[test]
fn a_mistake_is_found_even_where_it_is_overridden() {
    let found = mistakes("[router]\ntop_k = 0", &[], &["router.top_k=5"]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn single_mistakes() {
    check_one("[server\nlisten = 1", &["t.toml:1", "not TOML"]);
    check_one("[server]\nmax_deadline = \"1s\"\nlisten = \n", &["t.toml:3", "not TOML"]);
    check_one("[log]\nlevel = \"info\"\nlevel = \"warn\"", &["t.toml:3", "not TOML"]);
    check_one("[server]\nlisten = \":7070\"", &["0.0.0.0"]);
    check_one("[server]\nmax_deadline = 30", &["a duration from 10ms to 10m", "the integer 30"]);
    check_one("[server]\nmax_deadline = \"30\"", &["the unit is missing"]);
    check_one("[server]\nmax_connections = -1", &["from 1 to 1000000", "-1"]);
    check_one("[server]\nmax_connections = 0x0", &["found the integer 0"]);
    check_one("[server]\nmax_connections = 99999999999999999999999999999999999999999999", &["999"]);
    check_one("[server]\nlisten = {}", &["found a table"]);
    check_one("server = 3", &["t.toml:1: server: no such key"]);
    check_one("[router]\nthreshold = nan", &["from -1 to 1"]);
    check_one("[log]\nintents = \"yes\"", &["true or false"]);
    check_one("[store]\npath = \"\"", &["it is empty"]);
    check_one("[log]\nformat = \"xml\"", &["one of text, json", "\"xml\""]);
    check_one(
        "[server]\nadmin_listen = \"127.0.0.1:7070\"",
        &["same as server.listen", "another port"],
    );
    check_one("[encoder]\nworkers = [\"a\"]", &["a list of addresses", "the port is missing"]);
    check_one("[encoder]\nworkers = [1]", &["found an array"]);
    check_one("[encoder]\nworkers = \"a:1\"", &["found the string"]);
    check_one(
        "[memory]\ntenants = [\"acme\", \"Not One\"]",
        &["a list of tenants", "no tenant's name"],
    );
    check_one("[encoder]\nlocal_workers = [\"auto\"]", &["device of its own"]);
    check_one("[encoder]\ndevice = \"gpu\"", &["a device: auto, cpu"]);
    check_one("[encoder]\nin_process = false", &["nothing would embed"]);
    check_one(
        "[limits]\nmax_schema_size = \"8MiB\"",
        &["t.toml:2", "less than limits.max_message_size"],
    );
    check_one(
        "[server]\nresponse_buffer_limit = \"2MiB\"",
        &["t.toml:2", "at least limits.max_message_size, which is 4MiB"],
    );
}

#[test]
fn what_would_leave_a_server_more_open_than_it_looks_is_a_mistake() {
    check_one("[auth]\nmethods = [\"basic\"]", &["a list of api-key, jwt, mtls", "basic"]);
    check_one(
        "[auth]\nissuer = \"x\"",
        &["auth.issuer: has no effect unless auth.methods has jwt"],
    );
    check_one("[auth]\nadmin_key_file = \"k\"", &["unless auth.methods has api-key"]);
    check_one("[tls]\ncert_file = \"c\"", &["needs tls.key_file"]);
    check_one(
        "[auth]\nmethods = [\"mtls\"]\ntrust_domain = \"x\"",
        &["mtls needs tls.client_ca_file"],
    );
    let jwt = "[auth]\nmethods = [\"jwt\"]\nissuer = \"i\"\naudience = \"a\"\n";
    check_one(jwt, &["jwt needs auth.jwks_file or auth.jwks_url"]);
    for url in ["http://x/", "https://u:p@x/", "x"] {
        check_one(&format!("{jwt}jwks_url = \"{url}\""), &["must be an https:// URL"]);
    }
    check_one(&format!("{jwt}jwks_url = \"https://x/\"\njwks_file = \"f\""), &["keep one"]);
    check_one(&format!("{jwt}jwks_file = \"f\"\njwks_ca_file = \"c\""), &["is for auth.jwks_url"]);
    check_one("[auth]\nmethods = [\"jwt\"]\nissuer = \"i\"\njwks_file = \"f\"", &["auth.audience"]);
    let mtls = "[tls]\ncert_file = \"c\"\nkey_file = \"k\"\nclient_ca_file = \"a\"\n[auth]\nmethods = [\"mtls\"]\n";
    check_one(mtls, &["auth.trust_domain or auth.certificates"]);
    check_one(&format!("{mtls}certificates = [\"cn:a=*:agent\"]"), &["only an admin"]);
}

#[test]
fn credentials_are_read_whole() {
    let file = "[auth]\nmethods = [\"mtls\", \"jwt\"]\nissuer = \"i\"\naudience = \"a\"\njwks_url = \"https://x/\"\n\
                jwks_ca_file = \"~/ca.pem\"\ncertificates = [\"cn:a=acme:agent\", \"cn:b=*:admin\"]\n\
                [tls]\ncert_file = \"c\"\nkey_file = \"k\"\nclient_ca_file = \"a\"\n[audit]\nfile = \"x\"";
    let config = parse(file, &["TOOLGATE_AUTH_CLOCK_SKEW=5s"], &[]).config;
    assert_eq!(config.auth.methods, [AuthMethod::Jwt, AuthMethod::Mtls]);
    let tokens = config.auth.tokens.expect("they are taken");
    let ca_file = Some(PathBuf::from("/home/ada/ca.pem"));
    assert_eq!(tokens.keys, JwksPlace::Url { url: "https://x/".into(), ca_file });
    assert_eq!(
        (tokens.clock_skew, tokens.tenant_claim.as_str()),
        (Duration::from_secs(5), "tenant")
    );
    assert_eq!(config.auth.certificates.len(), 2);
    assert!(config.tls.expect("it is on").client_certificate_optional);
    assert_eq!(config.audit.file, Some("x".into()));
    let plain = parse("", &[], &[]).config;
    assert!(plain.auth.methods.is_empty() && plain.auth.tokens.is_none() && plain.tls.is_none());
}

#[test]
fn workers_and_prefixes_are_read_alike_from_every_source() {
    let file = "[encoder]\nworkers = [\"a:1\", \"dns://w.x:2\"]\ngpus = 2\nlocal_workers = [\"cpu\"]\n\
                device = \"cpu\"\ndtype = \"bf16\"\nquery_prefix = \"query: \"\npassage_prefix = \"\"";
    let from_file = parse(file, &[], &[]).config.encoder;
    let variables = [
        "TOOLGATE_ENCODER_WORKERS=a:1, dns://w.x:2",
        "TOOLGATE_ENCODER_LOCAL_WORKERS=cuda:0,cuda:1,cpu",
        "TOOLGATE_ENCODER_QUERY_PREFIX=query: ",
    ];
    let from_environment = parse("", &variables, &[]).config.encoder;
    let behind = WorkerAddress::Behind { name: "w.x".into(), port: 2 };
    for encoder in [&from_file, &from_environment] {
        assert_eq!(encoder.pool.workers, [WorkerAddress::One("a:1".into()), behind.clone()]);
        let devices: Vec<_> = encoder.pool.local.iter().map(ToString::to_string).collect();
        assert_eq!(devices, ["cuda:0", "cuda:1", "cpu"]);
        assert_eq!(encoder.query_prefix.as_deref(), Some("query: "), "its space counts");
    }
    assert_eq!(from_file.passage_prefix.as_deref(), Some(""), "none, whatever the model says");
    assert_eq!(from_environment.passage_prefix, None);
    assert!(parse("", &[], &[]).config.encoder.pool.is_empty());
}

#[test]
fn gpus_are_a_number_or_have_to_be_found() {
    let of = |file: &str| parse(file, &[], &[]).config.encoder.pool;
    for (file, gpus, local) in [
        ("", Gpus::First(0), 0),
        ("[encoder]\ngpus = \"off\"", Gpus::First(0), 0),
        ("[encoder]\ngpus = \"2\"", Gpus::First(2), 2),
        ("[encoder]\ngpus = 2", Gpus::First(2), 2),
        ("[encoder]\ngpus = \"auto\"", Gpus::Auto, 0),
        ("[encoder]\ngpus = \"require\"", Gpus::Require, 0),
    ] {
        let pool = of(file);
        assert_eq!((pool.gpus, pool.local.len()), (gpus, local), "{file}");
    }
    check_one("[encoder]\ngpus = 65", &["auto, require, off or a whole number from 0 to 64"]);
}

#[test]
fn connections_to_a_worker_follow_the_cores_unless_there_is_a_number() {
    let of = |file: &str| parse(file, &[], &[]).config.encoder.pool.connections;
    assert_eq!(of(""), None);
    assert_eq!(of("[encoder]\nconnections = 0"), None);
    assert_eq!(of("[encoder]\nconnections = 3").map(NonZeroUsize::get), Some(3));
}

#[test]
fn tenants_opt_in_by_name() {
    let of = |config: &Config| {
        let tenants = config.memory.tenants.iter();
        tenants.map(|tenant| tenant.as_str().to_owned()).collect::<Vec<_>>()
    };
    let none = parse("", &[], &[]).config;
    assert!(none.memory.tenants.is_empty(), "nobody is remembered who did not ask for it");
    let file = "[memory]\ntenants = [\"acme\", \"b-2\"]\nhalf_life_days = 7";
    let named = parse(file, &[], &[]).config;
    assert_eq!(of(&named), ["acme", "b-2"]);
    assert_eq!(named.memory.half_life.as_secs(), 7 * 86_400);
    let from_environment = parse("", &["TOOLGATE_MEMORY_TENANTS=acme,b-2"], &[]).config;
    assert_eq!(of(&from_environment), of(&named));
}

#[test]
fn spans_go_nowhere_until_a_collector_is_named() {
    assert_eq!(parse("", &[], &[]).config.telemetry.traces, None);
    assert_eq!(parse("[telemetry]\notlp_endpoint = \"\"", &[], &[]).config.telemetry.traces, None);
    let file =
        "[telemetry]\notlp_endpoint = \"http://c:4317\"\nsample_ratio = 0.25\ntimeout = \"2s\"";
    let traces = parse(file, &[], &[]).config.telemetry.traces.expect("a collector");
    assert_eq!(
        (traces.endpoint.as_str(), traces.service_name.as_str()),
        ("http://c:4317", "toolgate")
    );
    assert_eq!(traces.timeout, Duration::from_secs(2));
    assert!((traces.sample_ratio - 0.25).abs() < f64::EPSILON);
    check_one("[telemetry]\notlp_endpoint = \"c:4317\"", &["t.toml:2", "http:// or https://"]);
    check_one("[telemetry]\nsample_ratio = 2.0", &["from 0 to 1"]);
}

#[test]
fn a_secret_is_never_repeated() {
    let key = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";
    let found = mistakes("[handle]\nkey = \"c2VjcmV0\"", &["TOOLGATE_HANDLE_KEY=hush!"], &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("only 6 bytes") && !found.concat().contains("c2VjcmV0"), "{found:?}");
    assert!(!found.concat().contains("hush"), "{found:?}");
    let parsed = parse(&format!("[handle]\nkey = \"{key}\""), &[], &[]);
    assert!(matches!(parsed.config.handle.key, KeySource::Given(_)));
    let shown = format!("{parsed:?} {}", parsed.settings.get(&keys::HANDLE_KEY.spec).value);
    assert!(!shown.contains("secretsecret") && !shown.contains("115, 101"), "{shown}");
    assert!(!shown.contains(key), "{shown}");
    let both = mistakes(&format!("[handle]\nkey = \"{key}\"\nkey_file = \"k\""), &[], &[]);
    assert!(both.len() == 1 && both[0].contains("keep one"), "{both:?}");
}

#[test]
fn a_model_and_a_model_directory_are_one_too_many() {
    let file = "[encoder]\nmodel = \"multilingual-e5-small\"\n";
    for (file, variables, flags) in [
        (format!("{file}model_dir = \"/m\""), &[][..], &[][..]),
        (file.to_owned(), &["TOOLGATE_MODEL_DIR=/m"], &[]),
        (String::new(), &[], &["encoder.model=all-MiniLM-L6-v2", "encoder.model_dir=/m"]),
    ] {
        let found = mistakes(&file, variables, flags);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("encoder.model is set too"), "{found:?}");
    }
    // A flag is for this run, whatever the file and the environment say.
    let config = parse(file, &[], &["encoder.model_dir=/m"]).config;
    assert_eq!(config.encoder.model_dir, Path::new("/m"));
    let flag = ["encoder.model=multilingual-e5-small"];
    let config = parse("[encoder]\nmodel_dir = \"/m\"", &["TOOLGATE_MODEL_DIR=/n"], &flag).config;
    assert!(config.encoder.model_dir.ends_with("models/multilingual-e5-small"));
    check_one("[encoder]\nmodel = \"e5\"", &["all-MiniLM-L6-v2, multilingual-e5-small"]);
}

#[test]
fn foreign_and_empty_variables_do_no_harm() {
    let variables = [
        "TOOLGATE_PORT=tcp://10.0.0.1:7070",
        "TOOLGATE_SERVICE_HOST=10.0.0.1",
        "TOOLGATE_ENDPOINT=http://x",
        "TOOLGATE_WORKER_LISTEN=127.0.0.1:1",
        "TOOLGATE_SERVER_LISTEN=",
        "OTHER=1",
    ];
    let parsed = parse("", &variables, &[]);
    let names: Vec<String> =
        parsed.warnings.iter().map(|warning| warning.source.to_string()).collect();
    assert_eq!(
        names,
        ["environment variable TOOLGATE_PORT", "environment variable TOOLGATE_SERVICE_HOST"]
    );
}

#[test]
fn directories_follow_the_environment() {
    let variables = ["XDG_DATA_HOME=/data", "XDG_CACHE_HOME=relative", "TOOLGATE_STORE_PATH="];
    let config = parse("[handle]\nkey_file = \"~/key\"", &variables, &[]).config;
    assert_eq!(config.store.path, Path::new("/data/toolgate"));
    assert!(config.encoder.model_dir.starts_with("/home/ada/.cache"));
    assert!(
        matches!(config.handle.key, KeySource::File(path) if path == Path::new("/home/ada/key"))
    );
    let config = parse("", &["TOOLGATE_MODEL_DIR=/m"], &[]).config;
    assert_eq!(config.encoder.model_dir, PathBuf::from("/m"));
    let multilingual = "[encoder]\nmodel = \"multilingual-e5-small\"";
    let config = parse(multilingual, &["XDG_CACHE_HOME=/c"], &[]).config;
    assert_eq!(config.encoder.model, KnownModel::MultilingualE5Small);
    let place = Path::new("/c/toolgate/models/multilingual-e5-small");
    assert_eq!(config.encoder.model_dir, place);
    let homeless = mistakes("", &["HOME="], &[]);
    assert_eq!(homeless.len(), 2, "{homeless:?}");
    assert!(homeless[0].contains("TOOLGATE_STORE_PATH"), "{homeless:?}");
}

#[test]
fn the_example_changes_nothing_and_its_lines_are_valid() {
    let text = example();
    let plain = parse(&text, &[], &[]);
    assert!(plain.settings.iter().all(|setting| setting.source == Source::Default));
    let enabled: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            // The model has a name or a directory, not both.
            Some(rest) if rest.starts_with("model = ") => format!("{line}\n"),
            Some(rest) if !rest.starts_with(' ') && !rest.ends_with("\"\"") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let parsed = parse(&enabled, &[], &[]);
    for setting in parsed.settings.iter() {
        let default = plain.settings.get(setting.key);
        assert_eq!(setting.value.to_string(), default.value.to_string(), "{}", setting.key.name);
        let absent = matches!(setting.value, Value::Absent) || setting.key.name == "encoder.model";
        assert!(
            absent || setting.source != Source::Default,
            "{} is not in the example",
            setting.key.name
        );
        assert!(text.contains(&setting.key.env()), "{}", setting.key.name);
    }
    assert!(text.lines().all(|line| line.len() <= 110), "{text}");
}

#[test]
fn a_shared_store_needs_one_url_and_one_handle_key() {
    let key = format!("key = {:?}", "A".repeat(43));
    let whole = format!("[store]\nurl = \"postgres://u:s3cret@h/d\"\n[handle]\n{key}");
    let parsed = parse(&whole, &[], &[]);
    let shared = parsed.config.store.shared.clone().expect("a shared store");
    assert_eq!((shared.max_connections, shared.notify), (10, true));
    assert_eq!(shared.url.load().expect("a URL").expose(), "postgres://u:s3cret@h/d");
    let shown: String = parsed.settings.iter().map(|setting| setting.value.to_string()).collect();
    assert!(!format!("{shown}{parsed:?}").contains("s3cret"));
    check_one("[store]\nurl = \"postgres://h/d\"", &["store.url", "set handle.key_file"]);
    check_one("[store]\nurl_file = \"f\"", &["store.url_file", "set handle.key_file"]);
    let both = format!("[store]\nurl = \"postgres://h/d\"\nurl_file = \"f\"\n[handle]\n{key}");
    check_one(&both, &["store.url_file", "store.url is set too"]);
    let other =
        mistakes(&format!("[store]\nurl = \"mysql://u:s3cret@h\"\n[handle]\n{key}"), &[], &[]);
    assert!(other.len() == 1 && other[0].contains("postgres://"), "{other:?}");
    assert!(!other[0].contains("s3cret"), "{other:?}");
    assert!(parse("", &[], &[]).config.store.shared.is_none());
}
