//! Tests of row-level security: a query that forgot its tenant can do nothing.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::cluster::{connect, run};
use super::{Fixture, config, open};
use crate::conformance::{
    change, commit, embedding, remember, removal, request, server_name, tenant, tool,
};
use crate::postgres::PostgresStore;
use crate::{
    CatalogStore as _, KeyStore as _, PolicyChange, StoredKey, UsageAddition, UsageCount,
    UsageStore as _,
};
use toolgate_core::identity::TenantId;

const TABLES: [&str; 13] = [
    "tenants",
    "servers",
    "tools",
    "embeddings",
    "removed_tools",
    "removed_servers",
    "past_tools",
    "tool_marks",
    "requests",
    "policies",
    "usage",
    "memories",
    "exemplars",
];

/// Table that is read before the tenant is known. No tenant can read it, only transactions with that purpose.
const KEYS: &str = "api_keys";

fn key(id: &str, of: &TenantId) -> StoredKey {
    StoredKey {
        id: id.to_owned(),
        secret_hash: [7; 32],
        tenant: Some(of.clone()),
        principal: "p".to_owned(),
        roles: Vec::new(),
        label: String::new(),
        created_ms: 1,
        expires_ms: None,
        revoked_ms: None,
        used_ms: None,
    }
}

/// Opens a store in which a tenant has a row in each table.
async fn filled() -> Fixture {
    let fixture = open().await;
    let store = &fixture.store;
    let t = tenant("acme");
    let mut first = change("s", None, vec![tool("s", "a", "A"), tool("s", "b", "B")]);
    first.embeddings = vec![embedding("A", &[1.0])];
    first.request = Some(request("r", "body"));
    commit(store, &t, first).await;
    let base = commit(store, &t, change("gone", None, Vec::new())).await;
    store.remove_server(&t, &server_name("gone"), base).await.expect("a removal");
    let policy = PolicyChange { base: None, document: "{}".to_owned(), hides: false };
    store.set_policy(&t, policy).await.expect("a policy");
    commit(store, &t, removal("s", 1, &["b"])).await;
    let count = UsageCount { hour: 7, item: "route_calls".to_owned(), amount: 1 };
    let added = [UsageAddition { tenant: t.clone(), count }];
    store.add_usage(&added).await.expect("added");
    remember(store, &t, "s", "a").await;
    store.create_key(&key("k", &t)).await.expect("a key");
    fixture
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM toolgate.{table}");
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await.expect("a count")
}

/// Begins a transaction for SET LOCAL with this tenant and purpose.
async fn begin(connection: &mut PgConnection, tenant: &str, work: &str) {
    run(
        connection,
        &format!(
            "BEGIN; SELECT set_config('toolgate.tenant', '{tenant}', TRUE);
             SELECT set_config('toolgate.work', '{work}', TRUE)"
        ),
    )
    .await;
}

#[tokio::test]
async fn every_table_with_tenants_is_held() {
    let fixture = filled().await;
    let mut connection = connect(&fixture.database.url).await;
    let sql = "SELECT relname::text AS name, relrowsecurity AND relforcerowsecurity AS is_held
         FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'tenant'
         WHERE relnamespace = 'toolgate'::regnamespace AND relkind = 'r'";
    let found = sqlx::query(sql).fetch_all(&mut connection).await.expect("tables");
    let mut names: Vec<String> = found.iter().map(|row| row.get("name")).collect();
    assert!(found.iter().all(|row| row.get("is_held")), "{names:?}");
    let mut wanted: Vec<_> = TABLES.into_iter().chain([KEYS]).map(str::to_owned).collect();
    names.sort();
    wanted.sort();
    assert_eq!(names, wanted);
}

#[tokio::test]
async fn a_query_without_its_tenant_sees_and_changes_nothing() {
    let fixture = filled().await;
    let mut admin = connect(&fixture.database.admin_url).await;
    // This user neither owns the tables nor lacks any right on them.
    run(&mut admin, "GRANT USAGE ON SCHEMA toolgate TO reader").await;
    run(&mut admin, "GRANT ALL ON ALL TABLES IN SCHEMA toolgate TO reader").await;
    for user in ["toolgate", "reader"] {
        let url = fixture.database.url.replace("//toolgate@", &format!("//{user}@"));
        let mut connection = connect(&url).await;
        for (tenant, work) in [("", ""), ("other", ""), ("%", ""), ("ACME", "following ")] {
            for table in TABLES.into_iter().chain([KEYS]) {
                begin(&mut connection, tenant, work).await;
                assert_eq!(count(&mut connection, table).await, 0, "{table} by {user} as {tenant}");
                for change in ["DELETE FROM toolgate.", "UPDATE toolgate."] {
                    let set =
                        if change.starts_with("UPDATE") { " SET tenant = tenant" } else { "" };
                    let changed = run(&mut connection, &format!("{change}{table}{set}")).await;
                    assert_eq!(changed, 0, "{change}{table}");
                }
                run(&mut connection, "ROLLBACK").await;
            }
        }
        let insert = "INSERT INTO toolgate.tenants (tenant) VALUES ('victim')";
        begin(&mut connection, "other", "").await;
        let error = sqlx::query(insert).execute(&mut connection).await.expect_err("a refusal");
        assert!(error.to_string().contains("row-level security"), "{error}");
        run(&mut connection, "ROLLBACK").await;
        begin(&mut connection, "acme", "").await;
        for table in TABLES {
            assert!(count(&mut connection, table).await > 0, "{table}: its own");
        }
        assert_eq!(count(&mut connection, KEYS).await, 0, "keys are no tenant's to see");
        run(&mut connection, "ROLLBACK").await;
    }
    // The rows that nobody could change still exist.
    for table in TABLES.into_iter().chain([KEYS]) {
        let found = count(&mut admin, table).await;
        assert!(found > 0, "{table}");
    }
}

#[tokio::test]
async fn work_over_all_tenants_reaches_no_further_than_it_needs() {
    let fixture = filled().await;
    let mut connection = connect(&fixture.database.url).await;
    let works =
        [("following", "tenants"), ("counting", "usage"), ("forgetting", "usage"), ("keys", KEYS)];
    for (work, seen) in works {
        begin(&mut connection, "", work).await;
        for table in TABLES.into_iter().chain([KEYS]) {
            let found = count(&mut connection, table).await;
            assert_eq!(found > 0, table == seen, "{table} while {work}");
        }
        for table in TABLES.into_iter().filter(|table| *table != "usage") {
            let changed = run(&mut connection, &format!("DELETE FROM toolgate.{table}")).await;
            assert_eq!(changed, 0, "{table} while {work}");
        }
        let forgotten = run(&mut connection, "DELETE FROM toolgate.usage").await;
        assert_eq!(forgotten > 0, work == "forgetting");
        run(&mut connection, "ROLLBACK").await;
    }
}

#[tokio::test]
async fn users_above_row_level_security_are_told() {
    let fixture = open().await;
    assert!(!fixture.store.is_above_rows().await.expect("an answer"));
    let admin = PostgresStore::open(&config(&fixture.database.admin_url)).await.expect("a store");
    assert!(admin.is_above_rows().await.expect("an answer"));
}
