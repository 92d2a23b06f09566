//! Tests of what a registration reads, and of registrations that conflict.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use super::*;
use crate::catalog::SafetyMetrics;
use crate::catalog::outcome::OutcomeKind;
use crate::catalog::vetting::Vetting;
use crate::encoder::{EmbedFuture, Embedded, Encoder, Flow};
use toolgate_config::LimitsConfig;
use toolgate_core::error::Code;
use toolgate_core::identity::ServerName;
use toolgate_core::live::Live;
use toolgate_core::safety::{Rules, Scanner};
use toolgate_store::sqlite::SqliteStore;
use toolgate_store::{CatalogStore as _, Store};

/// Encoder that registers an MCP server with another process's store right before each commit, as often as it is told.
struct Meddling {
    database: PathBuf,
    server: &'static str,
    left: AtomicUsize,
}

impl Encoder for Meddling {
    fn fingerprint(&self) -> &str {
        let is_due = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_due).is_ok() {
            let database = self.database.clone();
            let server = self.server;
            let meddle = std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(change_server(&database, server));
            });
            meddle.join().expect("no panic");
        }
        "e"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
        let embedded = texts.iter().map(|_| Embedded { vector: vec![1.0], truncated: false });
        Box::pin(std::future::ready(Ok(embedded.collect())))
    }
}

struct Fixture {
    catalog: Catalog,
    encoder: Arc<Meddling>,
    database: PathBuf,
    _folder: TempDir,
}

/// Creates a catalog with vetting. `server` is registered with one tool, `list_issues`, right before commits.
async fn fixture(server: &'static str) -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("catalog.db");
    let store = Arc::new(SqliteStore::open(&database).await.expect("a store"));
    let left = AtomicUsize::new(0);
    let encoder = Arc::new(Meddling { database: database.clone(), server, left });
    let vetting = Vetting {
        scanner: Arc::new(Live::new(Scanner::new(Rules::shipped()))),
        untrusted_by_default: false,
        metrics: SafetyMetrics::default(),
    };
    let limits = Arc::new(Live::new(LimitsConfig::default()));
    let catalog = Catalog::new(store, Arc::clone(&encoder) as _, limits);
    let catalog = catalog.with_vetting(Some(vetting));
    Fixture { catalog, encoder, database, _folder: folder }
}

fn tenant() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

fn registration(server: &str, names: &[&str]) -> Registration {
    let tool = |name: &&str| serde_json::json!({"name": name, "inputSchema": {"type": "object"}});
    let tools: Vec<_> = names.iter().map(tool).collect();
    let body = serde_json::json!({"tools": tools}).to_string();
    Registration {
        server: ServerRecord::new(ServerName::parse(server).expect("a name")),
        body: body.into_bytes().into(),
        settings: HashMap::new(),
        mode: Mode::Replace,
        etag: String::new(),
        request: None,
        all_or_nothing: false,
    }
}

/// Stores a new version of an MCP server with the tool `list_issues`.
async fn change_server(database: &Path, server: &'static str) {
    let quiet = Meddling { database: database.to_owned(), server, left: AtomicUsize::new(0) };
    let store = Arc::new(SqliteStore::open(database).await.expect("a store"));
    let limits = Arc::new(Live::new(LimitsConfig::default()));
    let catalog = Catalog::new(Arc::clone(&store) as _, Arc::new(quiet), limits);
    let mut change = registration(server, &["list_issues"]);
    let revision = store.revision(&tenant()).await.expect("a read");
    change.server.description = format!("at {revision:?}");
    catalog.register(&tenant(), change, None).await.expect("a registration");
    store.close().await.expect("closed");
}

async fn register(fixture: &Fixture, registration: Registration) -> Result<Registered, Error> {
    fixture.catalog.register(&tenant(), registration, None).await
}

fn findings(registered: &Registered) -> usize {
    registered.outcomes.iter().map(|outcome| outcome.findings.len()).sum()
}

async fn run_sql(database: &Path, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(database);
    let mut connection = options.connect().await.expect("a connection");
    sqlx::query(sql).execute(&mut connection).await.expect("a statement");
    connection.close().await.expect("closed");
}

/// Tests that a registration reads none of the other tools but similar ones: whoever reads a damaged one fails.
#[tokio::test]
async fn a_registration_reads_only_what_it_touches() {
    let fixture = fixture("none").await;
    let names: Vec<String> = (0..300).map(|n| format!("get_weather_of_{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["list_issues"]).collect();
    register(&fixture, registration("other", &names)).await.expect("a registration");
    register(&fixture, registration("own", &["own_tool"])).await.expect("a registration");
    run_sql(&fixture.database, "UPDATE tools SET hash = x'00' WHERE server = 'other'").await;
    assert!(fixture.catalog.whole(&tenant()).await.is_err(), "the others are damaged");

    let new = register(&fixture, registration("new", &["send_mail"])).await.expect("it is new");
    assert_eq!(new.outcomes[0].kind, OutcomeKind::Accepted);
    let own = registration("own", &["own_tool", "read_mail"]);
    assert_eq!(register(&fixture, own).await.expect("it has more").outcomes.len(), 2);
    let similar = register(&fixture, registration("hub", &["listIssues"])).await;
    assert!(matches!(similar, Err(Error::StoreDamaged(_))), "{similar:?}");
}

#[tokio::test]
async fn tools_of_before_the_marks_are_compared_too() {
    let fixture = fixture("none").await;
    register(&fixture, registration("a", &["list_issues"])).await.expect("a registration");
    run_sql(&fixture.database, "DELETE FROM tool_marks").await;
    run_sql(&fixture.database, "UPDATE tenants SET marks = 0").await;
    let same = register(&fixture, registration("b", &["list_issues"])).await;
    assert_eq!(findings(&same.expect("a registration")), 1);
}

#[tokio::test]
async fn a_registration_that_conflicts_once_is_tried_again() {
    let fixture = fixture("own").await;
    fixture.encoder.left.store(1, Ordering::SeqCst);
    let own = register(&fixture, registration("own", &["send_mail"])).await;
    assert_eq!(own.expect("a registration").revision, 2);
    // A similar tool of another server that came meanwhile is seen.
    let other = self::fixture("hub").await;
    other.encoder.left.store(1, Ordering::SeqCst);
    let new = register(&other, registration("new", &["list_issues"])).await;
    let new = new.expect("a registration");
    assert_eq!((new.revision, findings(&new)), (2, 1));
}

#[tokio::test]
async fn a_registration_that_always_conflicts_is_aborted() {
    let fixture = fixture("own").await;
    fixture.encoder.left.store(usize::MAX, Ordering::SeqCst);
    let error = register(&fixture, registration("own", &["send_mail"])).await;
    let error = error.expect_err("others always come first");
    assert_eq!(error.code(), Code::Aborted);
    let text = "registration conflicted with other registrations of this tenant 8 times; retry";
    assert_eq!(error.to_string(), text);
}
