//! Whole files: what they say, and their mistakes.

use std::path::Path;
use std::time::Duration;

use toolgate_upstream::{Authorization, Pauses, Start, Upstream};

use super::{Config, ConfigError, EntryFile, ServerConfig};

fn parsed(text: &str) -> Result<Config, String> {
    let config = Config::parse(text, Path::new("gateway.toml"));
    config
        .and_then(|config| config.entries().map(|_entries| config))
        .map_err(|error| error.to_string())
}

#[test]
fn an_empty_file_is_a_gateway_on_this_machine() {
    let config = parsed("").expect("a configuration");
    assert_eq!(config.gateway.listen.to_string(), "127.0.0.1:7080");
    assert!(config.entries().expect("entries").is_empty());
}

#[test]
fn commands_keep_their_words() {
    let text = "[server.git]\ncommand = [\"uvx\", \"a b\", \"it's\"]\nenv = { A = \"1\" }";
    let entries = parsed(text).expect("a configuration").entries().expect("entries");
    let Upstream::Process(launch) = &entries[0].upstream else { panic!("a process") };
    assert_eq!(launch.program, "uvx");
    assert_eq!(launch.arguments, ["a b", "it's"]);
    assert_eq!(launch.environment.get("A").map(String::as_str), Some("1"));
}

#[test]
fn a_server_has_a_folder_and_pauses() {
    let folder = std::env::temp_dir();
    let text = format!(
        "[server.a]\ncommand = [\"x\"]\ncwd = {folder:?}\nstart = \"lazy\"\nrestart = {{ min = \"2s\", max = \"1m\" }}"
    );
    let entries = parsed(&text).expect("a configuration").entries().expect("entries");
    let Upstream::Process(launch) = &entries[0].upstream else { panic!("a process") };
    assert_eq!(launch.folder.as_ref(), Some(&folder));
    let seconds = Duration::from_secs;
    let pauses = Pauses { first: seconds(2), last: seconds(60), healthy_after: seconds(60) };
    assert_eq!(entries[0].limits.pauses, pauses);
    assert_eq!(entries[0].limits.start, Start::Lazy);
}

#[test]
fn mistakes_are_told_with_a_remedy() {
    for (text, told) in [
        ("[gateway]\nlisten = \"0.0.0.0:1\"", "public_url"),
        ("[gateway.auth]\nmethods = [\"jwt\"]", "issuer"),
        ("[gateway.auth]\nmethods = [\"jwt\"]\nissuer = \"i\"", "jwks_url"),
        ("[gateway.auth]\nmethods = [\"jwt\"]\nissuer = \"i\"\njwks_url = \"http://i\"", "https"),
        ("[gateway.auth]\nscopes = [\"mcp\"]", "must have \"jwt\""),
        ("[gateway.auth]\nkey_store = \"x\"", "must have \"api-key\""),
        ("[gateway.auth]\nmethods = [\"api-key\"]\nallow_anybody = true", "leave one out"),
        ("[gateway.auth]\nmethods = [\"magic\"]", "unknown variant"),
        ("[gateway.auth]\nmethods = [\"mtls\"]", "client_ca_file"),
        ("[gateway.tls]\ncert_file = \"c\"", "need each other"),
        ("[gateway]\ncolour = 1", "unknown field"),
        ("[gateway]\nresult_limit = \"1KB\"", "no size"),
        ("[gateway]\nresult_limit_max = \"1KB\"", "no size"),
        ("[gateway]\ncall_timeout = \"1h\"", "no duration"),
        ("[server.a]", "either `command` or `url`"),
        ("[server.a]\ncommand = [\"x\"]\nurl = \"https://x\"", "either"),
        ("[server.a__b]\ncommand = [\"x\"]", "\"__\""),
        ("[server.a]\nurl = \"http://tools.example\"", "https"),
        ("[server.a]\nurl = \"ls\"", "https"),
        ("[server.a]\nurl = \"https://x\"\nenv = { A = \"1\" }", "headers"),
        ("[server.a]\ncommand = [\"x\"]\nheaders = { A = \"1\" }", "env"),
        ("[server.a]\ncommand = [\"${file:/no/such}\"]", "text of a file"),
        (
            "[gateway.spawn]\nallow = [\"/opt/*\"]\n[server.a]\ncommand = [\"/opt/${X:-../sh}\"]",
            "spawn.allow",
        ),
        ("[server.a]\ncommand = [\"x\"]\nconcurrency = 0", "at least 1"),
        ("[server.a]\ncommand = [\"x\"]\ncwd = \"/no/such/folder\"", "no folder"),
        ("[server.a]\nurl = \"https://x\"\ncwd = \".\"", "`cwd`"),
        ("[server.a]\nurl = \"https://x\"\nsandbox = {}", "`sandbox`"),
        ("[server.a]\ncommand = [\"x\"]\nrestart = { min = \"1ms\" }", "100ms"),
        ("[server.a]\ncommand = [\"x\"]\nrestart = { max = \"200ms\" }", "at least `min`"),
        ("[gateway.spawn]\nallow = [\"npx\"]\n[server.a]\ncommand = [\"x\"]", "spawn.allow"),
    ] {
        let problem = parsed(text).expect_err(text);
        assert!(problem.contains(told), "{text}: {problem}");
    }
}

#[test]
fn mistakes_of_credentials_are_told_with_a_remedy() {
    for (text, told) in [
        ("[server.a]\ncommand = [\"x\"]\nauth = \"oauth\"", "`auth` is for a `url`"),
        ("[server.a]\ncommand = [\"x\"]\noauth = {}", "`oauth` is for a `url`"),
        ("[server.a]\nurl = \"https://x\"\nauth = \"magic\"", "client-credentials"),
        ("[server.a]\nurl = \"https://x\"\nauth = \"headers\"", "needs `headers`"),
        ("[server.a]\nurl = \"https://x\"\nauth = \"token-exchange\"", "\"jwt\" among"),
        ("[server.a]\nurl = \"https://x\"\nauth = \"none\"\noauth = {}", "`oauth` is for"),
        (
            "[server.a]\nurl = \"https://x\"\nauth = \"oauth\"\nheaders = { authorization = \"x\" }",
            "names another",
        ),
        ("[server.a]\nurl = \"https://x\"\nauth = \"client-credentials\"", "client_secret"),
        (
            "[server.a]\nurl = \"https://x\"\noauth = { client_secret = \"hunter2\" }",
            "no place for it",
        ),
        (
            "[server.a]\nurl = \"https://x\"\noauth = { client_secret = \"env:PATH\" }",
            "needs `oauth.client_id`",
        ),
        ("[server.a]\nurl = \"https://x\"\noauth = { client_id = \" \" }", "empty"),
        ("[server.a]\nurl = \"https://x\"\noauth = { scopes = [\"a b\"] }", "one word each"),
        ("[server.a]\nurl = \"https://x\"\noauth = { issuer = \"http://y\" }", "https://"),
        ("[server.a]\nurl = \"https://x\"\noauth = { issuer = \"y\" }", "no URL"),
        ("[server.a]\nurl = \"https://x\"\noauth = { colour = 1 }", "unknown field"),
        (
            "[server.a]\nurl = \"https://x\"\noauth = { client_metadata_url = \"https://y\" }",
            "with a path",
        ),
        (
            "[server.a]\nurl = \"https://x\"\noauth = { client_id = \"i\", client_metadata_url = \"https://y/z\" }",
            "exclude",
        ),
        (
            "[server.a]\nurl = \"https://x\"\nauth = \"client-credentials\"\noauth = { client_id = \"i\", client_secret = \"env:PATH\", redirect_port = 1 }",
            "for logins",
        ),
    ] {
        let problem = parsed(text).expect_err(text);
        assert!(problem.contains(told), "{text}: {problem}");
    }
}

#[test]
fn an_address_that_others_reach_needs_authentication() {
    let start = "[gateway]\nlisten = \"0.0.0.0:1\"\npublic_url = \"https://gw.example/\"\n";
    let exposed = |more: &str| {
        parsed(&format!("{start}[gateway.auth]\n{more}")).expect("a configuration").check_exposure()
    };
    assert!(exposed("").expect_err("open").contains("gateway.auth.methods"));
    assert_eq!(exposed("allow_anybody = true"), Ok(()));
    assert_eq!(exposed("methods = [\"api-key\"]"), Ok(()));
    assert_eq!(parsed("").expect("a configuration").check_exposure(), Ok(()));
}

#[test]
fn audiences_are_the_gateways_urls() {
    let text = "[gateway]\npublic_url = \"https://gw.example/\"\n[server.a]\ncommand = [\"x\"]";
    let address = "127.0.0.1:7080".parse().expect("an address");
    let audiences = parsed(text).expect("a configuration").audiences(address);
    assert_eq!(audiences[0], "https://gw.example");
    assert!(audiences.contains(&"https://gw.example/mcp/s/a".to_owned()), "{audiences:?}");
    let here = parsed("").expect("a configuration").audiences(address);
    assert_eq!(here[2], "http://127.0.0.1:7080/mcp");
}

#[test]
fn mistakes_of_servers_are_told_with_their_line() {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("toolgate-mistake-{}.toml", std::process::id()));
    let text = "[server.a]\nurl = \"https://x\"\n[server.a.oauth]\nscopes = []\nissuer = \"y\"\n";
    std::fs::write(&path, text).expect("written");
    let error = Config::read(&path).expect_err("a mistake").to_string();
    std::fs::remove_file(&path).expect("removed");
    assert!(error.starts_with("line 5: server.a: `oauth.issuer`"), "{error}");
}

#[test]
fn a_url_without_headers_takes_logins() {
    let authorization = |text: &str| {
        let text = format!("[server.a]\nurl = \"https://x\"\n{text}");
        let entries = parsed(&text).expect("a configuration").entries().expect("entries");
        let Upstream::Http(endpoint) = entries[0].upstream.clone() else { panic!("a URL") };
        endpoint.authorization
    };
    assert!(matches!(authorization(""), Authorization::Login(_)));
    assert_eq!(authorization("auth = \"none\""), Authorization::Headers);
    assert_eq!(authorization("headers = { X-Key = \"1\" }"), Authorization::Headers);
    let both = "auth = \"oauth\"\nheaders = { X-Team = \"1\" }";
    assert!(matches!(authorization(both), Authorization::Login(_)));
    let client = "auth = \"client-credentials\"\noauth = { client_id = \"i\", client_secret = \"env:PATH\", scopes = [\"s\"] }";
    let Authorization::ClientCredentials(client) = authorization(client) else {
        panic!("client credentials")
    };
    assert_eq!(client.id.as_deref(), Some("i"));
    assert_eq!(client.scopes, ["s"]);
}

#[test]
fn credentials_of_principals_need_callers_with_names() {
    let problem = |methods: &str, server: &str| {
        let text = format!(
            "[gateway.auth]\nmethods = [{methods}]\n[server.a]\nurl = \"https://x\"\n{server}"
        );
        let entries = |config: Config| config.entries().map_err(|error| error.to_string());
        parsed(&text).and_then(entries).err()
    };
    let per_user = "auth = \"oauth-per-user\"";
    assert!(problem("", per_user).is_some_and(|told| told.contains("gateway.auth.methods")));
    assert_eq!(problem("\"api-key\"", per_user), None);
    let exchange = |more: &str| {
        format!(
            "auth = \"token-exchange\"\noauth = {{ client_id = \"i\", client_secret = \"env:PATH\"{more} }}"
        )
    };
    let keys = problem("\"api-key\"", &exchange(", issuer = \"https://y\""));
    assert!(keys.is_some_and(|told| told.contains("jwt")));
    let jwt = "\"jwt\"]\nissuer = \"https://y\"\njwks_file = \"x\"\naudiences = [\"z\"";
    assert!(problem(jwt, &exchange("")).is_some_and(|told| told.contains("oauth.issuer")));
    assert_eq!(problem(jwt, &exchange(", issuer = \"https://y\", audience = \"a\"")), None);
    let audience = problem("", "oauth = { audience = \"a\" }");
    assert!(audience.is_some_and(|told| told.contains("token-exchange")));
}

#[test]
fn entries_of_hosts_files_have_the_variables_of_hosts() {
    let entry = |server: ServerConfig| {
        let mut config = Config::default();
        let server = ServerConfig { file: EntryFile::Host, ..server };
        config.server.insert("a".to_owned(), server);
        config.entries().map_err(|error: ConfigError| error.to_string())
    };
    let path = std::env::var("PATH").expect("a path");
    let command = ["${TOOLGATE_NOT_SET:-x}", "env:PATH", "${PATH}"].map(str::to_owned).to_vec();
    let env = [("A".to_owned(), "file:/no".to_owned()), ("B".to_owned(), "${PATH}".to_owned())];
    let server = ServerConfig { command, env: env.into_iter().collect(), ..Default::default() };
    let entries = entry(server).expect("entries");
    let Upstream::Process(launch) = &entries[0].upstream else { panic!("a process") };
    assert_eq!(launch.program, "x");
    assert_eq!(launch.arguments, ["env:PATH".to_owned(), path.clone()]);
    assert_eq!((&*launch.environment["A"], &launch.environment["B"]), ("file:/no", &path));
    let url = |url: &str| ServerConfig { url: Some(url.to_owned()), ..Default::default() };
    let entries = entry(url("https://${TOOLGATE_NOT_SET:-tools.example}/mcp")).expect("entries");
    let Upstream::Http(endpoint) = &entries[0].upstream else { panic!("a URL") };
    assert_eq!(endpoint.url.as_str(), "https://tools.example/mcp");
    let entries = entry(url("${TOOLGATE_NOT_SET}/mcp")).expect("entries");
    assert_eq!(entries[0].waits_for.as_deref(), Some("set TOOLGATE_NOT_SET"));
}

#[test]
fn programs_of_hosts_files_are_those_that_the_operator_allows() {
    let problem = |allow: &[&str], command: &str, env: &[(&str, &str)]| {
        let mut config = Config::default();
        config.gateway.spawn.allow = Some(allow.iter().map(|&program| program.into()).collect());
        let pairs = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let server = ServerConfig {
            file: EntryFile::Host,
            command: vec![command.to_owned()],
            env: pairs.collect(),
            ..ServerConfig::default()
        };
        config.server.insert("a".to_owned(), server);
        config.entries().err().map(|error| error.to_string())
    };
    let allow = ["npx", "/opt/mcp/*"];
    assert_eq!(problem(&allow, "npx", &[]), None);
    assert_eq!(problem(&allow, "/opt/mcp/server", &[("PATH", "/elsewhere")]), None);
    assert_eq!(problem(&allow, "${TOOLGATE_NOT_SET}", &[]), None, "it waits");
    for program in ["sh", "/opt/mcp/../sh", "./npx", "${TOOLGATE_NOT_SET:-sh}"] {
        let told = problem(&allow, program, &[]).expect(program);
        assert!(told.contains("server.a: `command` starts"), "{told}");
        let list = "not among gateway.spawn.allow ([\"npx\", \"/opt/mcp/*\"]): add it there";
        assert!(told.contains(list), "{told}");
        assert!(told.contains("take the server out of this file"), "{told}");
    }
    assert!(problem(&[], "npx", &[]).is_some_and(|told| told.contains("(it is empty)")));
    // The name would be that of another program.
    let told = problem(&allow, "npx", &[("PATH", "/elsewhere")]).expect("another program");
    assert!(told.contains("`env` sets PATH"), "{told}");
    assert_eq!(problem(&allow, "npx", &[("PATH", "${PATH}")]), None);
}

#[test]
fn a_server_that_lacks_something_waits_and_the_others_run() {
    let text = r#"[server.a]
command = ["x", "${TOOLGATE_NOT_A}"]
env = { B = "env:TOOLGATE_NOT_B", C = "${env:TOOLGATE_NOT_B}", D = "${PATH}" }
cwd = "env:TOOLGATE_NOT_C"
[server.b]
command = ["y"]
[server.c]
url = "https://${TOOLGATE_NOT_A}/mcp"
headers = { Authorization = "Bearer ${file:/no/such}" }
[server.d]
url = "https://x"
auth = "client-credentials"
oauth = { client_id = "i", client_secret = "env:TOOLGATE_NOT_D" }
"#;
    let config = parsed(text).expect("a configuration");
    let entries = config.entries().expect("entries");
    let waits: Vec<Option<&str>> = entries.iter().map(|entry| entry.waits_for.as_deref()).collect();
    assert_eq!(waits[0], Some("set TOOLGATE_NOT_A, TOOLGATE_NOT_C, TOOLGATE_NOT_B"));
    assert_eq!(waits[1], None);
    assert!(
        waits[2].is_some_and(|told| told.starts_with("set TOOLGATE_NOT_A; /no/such can't be read"))
    );
    assert_eq!(waits[3], Some("set TOOLGATE_NOT_D"));
    let waiting = config.waiting();
    assert_eq!(waiting.keys().collect::<Vec<_>>(), ["a", "c", "d"]);
    let missing = &waiting["a"][2];
    assert_eq!(missing.key, "env.B");
    assert!(missing.remedy().contains("export TOOLGATE_NOT_B=..."), "{}", missing.remedy());
    assert_eq!(super::line_of(text, "a", &missing.key), Some(3));
    let command = waiting["a"][0].remedy();
    assert!(command.contains("or write \"$${\""), "{command}");
}

#[test]
fn variables_of_a_file_reach_the_program_and_env_goes_before_them() {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("toolgate-variables-{}.env", std::process::id()));
    std::fs::write(&path, "A=1\nB=\"two\"\n").expect("written");
    let text = |file: &str| {
        format!("[server.a]\ncommand = [\"x\"]\nenv_file = \"{file}\"\nenv = {{ A = \"own\" }}")
    };
    let entry = |file: &str| {
        let config = parsed(&text(file)).expect("a configuration");
        config.entries().expect("entries").remove(0)
    };
    let known = entry(&path.display().to_string());
    std::fs::write(&path, "A=1\nhush").expect("written");
    let broken = entry(&path.display().to_string());
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(known.waits_for, None);
    let Upstream::Process(launch) = &known.upstream else { panic!("a process") };
    assert_eq!((&*launch.environment["A"], &*launch.environment["B"]), ("own", "two"));
    let told = format!("{} can't be read: line 2 is not NAME=VALUE", path.display());
    assert_eq!(broken.waits_for, Some(told));
    let gone = entry("/no/such/.env").waits_for;
    assert!(gone.is_some_and(|told| told.starts_with("/no/such/.env can't be read: ")));
    assert_eq!(entry("${TOOLGATE_NOT_SET}/x").waits_for.as_deref(), Some("set TOOLGATE_NOT_SET"));
    let waiting = parsed(&text("/no/such/.env")).expect("a configuration").waiting();
    assert_eq!(waiting["a"][0].key, "env_file");
    let problem = parsed("[server.a]\nurl = \"https://x\"\nenv_file = \"e\"");
    assert!(problem.is_err_and(|told| told.contains("`env_file`")));
}

#[test]
fn a_file_of_variables_that_changes_after_it_was_read_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("own.env");
    std::fs::write(&path, "A=1\n").expect("written");
    let text = format!("[server.a]\ncommand = [\"x\"]\nenv_file = \"{}\"", path.display());
    let config = parsed(&text).expect("a configuration");
    let server = &config.server["a"];
    let variables = server.file_variables(|path| {
        let read = super::env_file::read(path);
        std::fs::remove_file(path).expect("removed");
        read
    });
    let entry = config.entry_of("a", server, variables).expect("an entry");
    assert_eq!(entry.waits_for, None);
    let Upstream::Process(launch) = &entry.upstream else { panic!("a process") };
    assert_eq!(launch.environment["A"], "1");
}

#[test]
fn a_program_that_is_not_known_yet_waits_and_is_checked_once_it_is() {
    let text = |program: &str| {
        format!(
            "[gateway.spawn]\nallow = [\"npx\"]\n[server.a]\ncommand = [\"{program}\"]\n[server.b]\ncommand = [\"npx\"]"
        )
    };
    let entries = parsed(&text("${TOOLGATE_NOT_SET}")).expect("waits").entries().expect("entries");
    assert_eq!(entries[0].waits_for.as_deref(), Some("set TOOLGATE_NOT_SET"));
    assert_eq!(entries[1].waits_for, None);
    let problem = parsed(&text("${PATH}")).expect_err("not allowed");
    assert!(problem.contains("gateway.spawn.allow"), "{problem}");
    parsed(&text("${TOOLGATE_NOT_SET:-npx}")).expect("allowed");
}

#[test]
fn scripts_in_commands_keep_what_only_a_shell_knows() {
    let text = "[server.a]\ncommand = [\"sh\", \"-c\", \"x ${A%/} ${#A} $${HOME} ${\"]";
    let entries = parsed(text).expect("a configuration").entries().expect("entries");
    assert_eq!(entries[0].waits_for, None);
    let Upstream::Process(launch) = &entries[0].upstream else { panic!("a process") };
    assert_eq!(launch.arguments, ["-c", "x ${A%/} ${#A} ${HOME} ${"]);
}
