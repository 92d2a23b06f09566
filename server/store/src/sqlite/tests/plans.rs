//! Tests of how SQLite finds rows.

use sqlx::{AssertSqlSafe, Row as _};

use super::open;
use crate::sql::marks::{SIMILAR, SIMILAR_SINCE};

/// Tests that the rows read for a registration do not grow with the catalog: each mark is looked up by itself.
#[tokio::test]
async fn similar_tools_are_found_by_their_marks() {
    let fixture = open().await;
    for sql in [SIMILAR, SIMILAR_SINCE] {
        let explain = format!("EXPLAIN QUERY PLAN {}", sql.sqlite);
        let rows = sqlx::query(AssertSqlSafe(explain)).fetch_all(&fixture.store.readers).await;
        let rows = rows.expect("a plan");
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        let by_mark = "SEARCH tool_marks USING PRIMARY KEY (tenant=? AND mark=?";
        assert!(plan.iter().any(|step| step.starts_with(by_mark)), "{plan:?}");
        let is_scan = |step: &String| step.starts_with("SCAN") && !step.contains("sought");
        assert!(!plan.iter().any(is_scan), "{plan:?}");
    }
}
