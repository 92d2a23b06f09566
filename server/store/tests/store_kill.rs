//! Test of a process that registers tools and is killed, or may not write, at any moment. Everything that it
//! acknowledged exists afterwards, and nothing exists in part. The process is this test binary itself.
#![cfg(unix)]

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use toolgate_core::identity::{ServerName, TenantId, ToolName};
use toolgate_core::mcp_server::TrustTier;
use toolgate_store::sqlite::SqliteStore;
use toolgate_store::{
    CatalogStore as _, EmbeddingStore as _, PendingRequest, Revision, ServerChange, ServerRecord,
    StoreError, StoredEmbedding, ToolRecord, ToolStatus,
};

const DATABASE: &str = "TOOLGATE_TEST_KILL_DATABASE";
const KILLS: u32 = 220;
/// Number of kills after which the database is read completely.
const READ_EVERY: u32 = 5;
const SERVERS: u64 = 6;
const ENCODER: &str = "encoder";

/// Acknowledgements of the child: the newest generation and revision of each server, and the newest revision of all.
#[derive(Debug, Default)]
struct Acknowledged {
    generations: HashMap<u64, (u64, Revision)>,
    newest: Revision,
    commits: u64,
}

/// Runs as the child: commits registrations forever and reports each one. Without the variable it tests nothing.
#[tokio::test]
async fn store_child() {
    let Ok(path) = std::env::var(DATABASE) else { return };
    // The test harness has begun a line of its own, so end it first.
    say("");
    let store = match SqliteStore::open(Path::new(&path)).await {
        Ok(store) => store,
        Err(error) => return say(&format!("unavailable {error}: {:?}", error.source())),
    };
    let mut bases = HashMap::new();
    for server in 0..SERVERS {
        let read = store.read_server(&tenant(), &server_name(server)).await.expect("a read");
        let stored =
            read.map(|(stored, _)| (stored.revision, generation(&stored.record.description)));
        bases.insert(server, stored);
    }
    for turn in 0.. {
        let server = turn % SERVERS;
        let before = bases[&server];
        let generation = before.map_or(1, |(_, generation)| generation + 1);
        let change = registration(server, before, generation);
        let committed = match store.commit(&tenant(), change).await {
            Ok(committed) => committed,
            Err(StoreError::Unavailable(cause)) => {
                return say(&format!("unavailable {cause}"));
            }
            Err(other) => panic!("{other}"),
        };
        bases.insert(server, Some((committed.revision, generation)));
        say(&format!("committed {server} {generation} {}", committed.revision));
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("a parent that listens");
}

#[tokio::test]
async fn store_survives_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("catalog.db");
    let mut acknowledged = Acknowledged::default();
    let mut random = fastrand::Rng::with_seed(1);
    for kill in 1..=KILLS {
        // Delays range from before the database is open to well into the loop.
        let delay = Duration::from_micros(random.u64(..60_000));
        let wait_for_commit = !kill.is_multiple_of(4);
        kill_child(child(&path, None), wait_for_commit, delay, &mut acknowledged);
        if kill.is_multiple_of(READ_EVERY) || kill == KILLS {
            check(&path, &acknowledged).await;
        }
    }
    assert!(acknowledged.commits >= u64::from(KILLS / 2), "{acknowledged:?}");
}

#[tokio::test]
async fn store_survives_a_refused_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("catalog.db");
    let mut acknowledged = Acknowledged::default();
    for blocks in [1_200, 1_500, 2_000] {
        let mut child = child(&path, Some(blocks));
        let output = child.stdout.take().expect("the child's output");
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let rest: Vec<_> = lines.filter(|line| !acknowledged.note(line)).collect();
        let refused = rest.iter().any(|line| line.starts_with("unavailable"));
        assert!(refused, "no write was refused at {blocks} blocks: {rest:?}");
        assert!(child.wait().expect("an exit").success());
        check(&path, &acknowledged).await;
    }
    assert!(acknowledged.commits > 10, "{acknowledged:?}");
}

/// Starts the child. `blocks` limits the size of its files, in blocks of 512 bytes.
fn child(path: &Path, blocks: Option<u32>) -> Child {
    let binary = std::env::current_exe().expect("this binary");
    let mut command = match blocks {
        None => Command::new(binary),
        Some(blocks) => {
            let mut shell = Command::new("sh");
            // While the signal is ignored, the write returns an error instead.
            let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
            shell.args(["-c", &limited]).arg(binary);
            shell
        }
    };
    command.args(["--exact", "store_child", "--nocapture"]).env(DATABASE, path);
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a child")
}

/// Kills the child `delay` after its first commit or after its start, and records what it reported until then.
fn kill_child(mut child: Child, wait_for_commit: bool, delay: Duration, noted: &mut Acknowledged) {
    let output = child.stdout.take().expect("the child's output");
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.for_each(|line| drop(sender.send(line)));
    });
    while wait_for_commit && !lines.recv().is_ok_and(|line| noted.note(&line)) {}
    std::thread::sleep(delay);
    child.kill().expect("a kill");
    child.wait().expect("an exit");
    reader.join().expect("a reader");
    for line in lines {
        noted.note(&line);
    }
}

impl Acknowledged {
    /// Records a line of the child. Returns true if it reports a commit.
    fn note(&mut self, line: &str) -> bool {
        let mut words = line.split(' ');
        if words.next() != Some("committed") {
            return false;
        }
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let [server, generation, revision] = numbers[..] else { return false };
        assert!(revision > self.newest, "{line} after {self:?}");
        self.generations.insert(server, (generation, revision));
        self.newest = revision;
        self.commits += 1;
        true
    }
}

/// Checks that every acknowledged registration, or a newer one, is stored completely.
async fn check(path: &Path, acknowledged: &Acknowledged) {
    let store = SqliteStore::open(path).await.expect("a store");
    let Some(catalog) = store.load_catalog(&tenant()).await.expect("a read") else {
        assert_eq!(acknowledged.commits, 0);
        return;
    };
    assert!(catalog.revision >= acknowledged.newest, "{} lost", acknowledged.newest);
    let embeddings = store.load_embeddings(&tenant(), ENCODER).await.expect("a read");
    let mut expected = 0;
    for server in 0..SERVERS {
        let known = acknowledged.generations.get(&server).copied();
        let read = store.read_server(&tenant(), &server_name(server)).await.expect("a read");
        let Some((stored, tools)) = read else {
            assert_eq!(known, None, "server {server} is lost");
            continue;
        };
        let found = generation(&stored.record.description);
        let (generation, revision) = known.unwrap_or_default();
        assert!(found >= generation && stored.revision >= revision, "{server}: {known:?}");
        assert!(stored.revision <= catalog.revision);
        let records: Vec<_> = tools.iter().map(|tool| &tool.record).collect();
        let whole = tools_of(server, found);
        assert_eq!(records, whole.iter().collect::<Vec<_>>(), "server {server} is not whole");
        assert!(whole.iter().all(|tool| embeddings.contains_key(&hash(&tool.summary))));
        let request = store.find_request(&tenant(), &request_id(server, found)).await;
        let request = request.expect("a read").expect("the request of the registration");
        assert_eq!(request.committed.revision, stored.revision);
        expected += whole.len();
    }
    assert_eq!((catalog.tools.len(), embeddings.len()), (expected, expected));
    drop(store);
    let mut raw = SqliteConnectOptions::new().filename(path).connect().await.expect("a connection");
    let orphans = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut raw).await;
    assert!(orphans.expect("a check").is_empty());
    let integrity = sqlx::query_scalar::<_, String>("PRAGMA integrity_check").fetch_one(&mut raw);
    assert_eq!(integrity.await.expect("a check"), "ok");
}

fn registration(server: u64, before: Option<(Revision, u64)>, generation: u64) -> ServerChange {
    let upserts = tools_of(server, generation);
    let old = before.map(|(_, generation)| tools_of(server, generation)).unwrap_or_default();
    let stays = |name: &ToolName| upserts.iter().any(|tool| tool.name == *name);
    let removals = old.into_iter().map(|tool| tool.name).filter(|name| !stays(name)).collect();
    let id = request_id(server, generation);
    ServerChange {
        base: before.map(|(revision, _)| revision),
        server: ServerRecord {
            description: format!("generation {generation}"),
            trust_tier: TrustTier::Untrusted,
            ..ServerRecord::new(server_name(server))
        },
        removals,
        embeddings: upserts
            .iter()
            .map(|t| StoredEmbedding { text_hash: hash(&t.summary), vector: vec![0.5; 96] })
            .collect(),
        upserts,
        fingerprint: ENCODER.to_owned(),
        comparison: None,
        max_tools: 10_000,
        max_servers: 100,
        request: Some(PendingRequest { body_hash: hash(&id), id, answer: vec![1; 100] }),
    }
}

/// Returns the tools of a generation. Their number and names depend on the generation.
fn tools_of(server: u64, generation: u64) -> Vec<ToolRecord> {
    let tool = |n: u64| ToolRecord {
        server: server_name(server),
        name: ToolName::parse(&format!("tool-{n:03}")).expect("a tool's name"),
        model_name: format!("mcp__server-{server}__tool-{n:03}"),
        summary: format!("generation {generation} of tool {n} of {server}"),
        search_hint: String::new(),
        definition: format!("{{\"generation\": {generation}, \"text\": \"{}\"}}", "x".repeat(600)),
        hash: hash(&generation.to_string()),
        precondition: None,
        required_scopes: vec![format!("scope-{generation}")],
        always_load: false,
        critical: false,
        schema_tokens: 1,
        summary_tokens: 1,
        status: ToolStatus::Active,
    };
    let first = generation % 7;
    (first..first + 10 + generation % 13).map(tool).collect()
}

fn generation(description: &str) -> u64 {
    description.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a generation")
}

fn request_id(server: u64, generation: u64) -> String {
    format!("{server}-{generation}")
}

fn tenant() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

fn server_name(server: u64) -> ServerName {
    ServerName::parse(&format!("server-{server}")).expect("an MCP server's name")
}

fn hash(text: &str) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(text.as_bytes()).into()
}
