//! Marks of tools, which find the few tools that a registration is compared with. Each tool's marks come and go with
//! its row.

use super::Column::{Integer, Text};
use super::read::select_tools;
use super::rows::{self, integer, number};
use super::{Insert, Sql, Transaction, Value, sql, values};
use crate::{Comparison, Revision, SimilarTools, StoreError, ToolRecord};
use toolgate_core::safety::imitation::Other;
use toolgate_core::safety::marks;

const INSERT: Insert = Insert {
    into: "tool_marks (tenant, mark, server, name, share)",
    columns: &[Text, Integer, Text, Text, Integer],
    then: "",
};

/// Number of tools whose marks are in memory at once.
const TOOLS_AT_ONCE: u32 = 256;

/// Selects the shown tools that share marks `$3` of [`marks::ENOUGH`] `$4` in all. SQLite would read all marks of the
/// tenant for a subquery of the keys; it keeps the order of a CROSS JOIN.
pub(crate) const SIMILAR: Sql = select_tools!(
    "AND status <> 'quarantined' AND (server, name) IN (
                 SELECT server, name FROM "
    [either "json_each($3) AS sought", "unnest($3) AS sought (value)"]
    " CROSS JOIN tool_marks
                 WHERE tenant = $1 AND mark = sought.value AND server <> $2
                 GROUP BY server, name HAVING sum(share) >= $4)
             ORDER BY summary_revision, server, name"
);

/// Selects a row if an MCP server that changed after revision `$2` has such a tool.
pub(crate) const SIMILAR_SINCE: Sql = sql!(
    "SELECT 1 AS found FROM "
    [either "json_each($4) AS sought", "unnest($4) AS sought (value)"]
    " CROSS JOIN tool_marks
     WHERE tenant = $1 AND mark = sought.value AND server <> $3
         AND server IN (SELECT name FROM servers WHERE tenant = $1 AND revision > $2)
     GROUP BY server, name HAVING sum(share) >= $5 LIMIT 1"
);

/// Returns the shown tools of other MCP servers with enough of these marks. Returns `None` if the tenant's marks are of
/// another version, so that [`ensure`] must make them first.
pub(super) async fn similar(
    snapshot: &mut impl Transaction,
    tenant: &str,
    server: &str,
    marks: &[i64],
) -> Result<Option<SimilarTools>, StoreError> {
    let found = sql!("SELECT revision, marks FROM tenants WHERE tenant = $1");
    let Some(row) = snapshot.optional(found, &values![tenant]).await? else {
        return Ok(Some(SimilarTools::default()));
    };
    if number::<u32>(&row, "marks")? != marks::VERSION {
        return Ok(None);
    }
    let revision = number(&row, "revision")?;
    let keys = Value::Integers(marks.to_vec());
    let values = [tenant.into(), server.into(), keys, marks::ENOUGH.into()];
    let found = snapshot.all(SIMILAR, &values).await?;
    let tools = found.iter().map(rows::tool).collect::<Result<_, _>>()?;
    Ok(Some(SimilarTools { revision, tools }))
}

/// Returns true if another MCP server with a similar tool has changed since the comparison.
pub(super) async fn is_stale(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    comparison: &Comparison,
) -> Result<bool, StoreError> {
    let others = sql!(
        "SELECT 1 AS found FROM servers WHERE tenant = $1 AND revision > $2 AND name <> $3 LIMIT 1"
    );
    let since = integer(comparison.revision)?;
    if transaction.optional(others, &values![tenant, since, server]).await?.is_none() {
        return Ok(false);
    }
    let keys = Value::Integers(comparison.marks.clone());
    let values = [tenant.into(), since.into(), server.into(), keys, marks::ENOUGH.into()];
    Ok(transaction.optional(SIMILAR_SINCE, &values).await?.is_some())
}

/// Makes the marks of all of the tenant's tools if they are of another version. Later changes keep them up to date.
pub(super) async fn ensure(
    transaction: &mut impl Transaction,
    tenant: &str,
) -> Result<(), StoreError> {
    let found = sql!("SELECT marks FROM tenants WHERE tenant = $1");
    let Some(row) = transaction.optional(found, &values![tenant]).await? else { return Ok(()) };
    if number::<u32>(&row, "marks")? == marks::VERSION {
        return Ok(());
    }
    let delete = sql!("DELETE FROM tool_marks WHERE tenant = $1");
    transaction.run(delete, &values![tenant]).await?;
    let page = sql!(
        "SELECT server, name, model_name, definition FROM tools
         WHERE tenant = $1 AND (server, name) > ($2, $3) ORDER BY server, name LIMIT $4"
    );
    let mut last = (String::new(), String::new());
    loop {
        let values = values![tenant, &last.0, &last.1, TOOLS_AT_ONCE];
        let found = transaction.all(page, &values).await?;
        let tools = found.iter().map(Marked::read).collect::<Result<Vec<_>, _>>()?;
        let Some(end) = tools.last() else { break };
        last = (end.server.clone(), end.name.clone());
        put(transaction, tenant, &tools).await?;
    }
    let done = sql!("UPDATE tenants SET marks = $2 WHERE tenant = $1");
    transaction.run(done, &values![tenant, marks::VERSION]).await.map(drop)
}

/// Stores the marks of new tools.
pub(super) async fn insert(
    transaction: &mut impl Transaction,
    tenant: &str,
    tools: &[(&ToolRecord, Revision)],
) -> Result<(), StoreError> {
    for tools in tools.chunks(TOOLS_AT_ONCE as usize) {
        let tools: Vec<_> = tools.iter().map(|(tool, _)| Marked::from(*tool)).collect();
        put(transaction, tenant, &tools).await?;
    }
    Ok(())
}

/// Deletes the marks of the tools with these names, or of all tools of the MCP server.
pub(super) async fn delete(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    names: Option<&[&str]>,
) -> Result<(), StoreError> {
    let all = sql!("DELETE FROM tool_marks WHERE tenant = $1 AND server = $2");
    let some =
        sql!("DELETE FROM tool_marks WHERE tenant = $1 AND server = $2 AND name IN " [texts 3]);
    match names {
        None => transaction.run(all, &values![tenant, server]).await.map(drop),
        Some(names) => {
            let names = Value::Texts(names.to_vec());
            transaction.run(some, &[tenant.into(), server.into(), names]).await.map(drop)
        }
    }
}

/// What a tool's marks are made of.
struct Marked {
    server: String,
    name: String,
    model_name: String,
    description: String,
}

impl Marked {
    fn read(row: &impl super::Row) -> Result<Self, StoreError> {
        Ok(Self {
            server: rows::text(row, "server")?,
            name: rows::text(row, "name")?,
            model_name: rows::text(row, "model_name")?,
            description: marks::description(&row.text("definition")?),
        })
    }

    fn marks(&self) -> Vec<marks::Mark> {
        marks::of_stored(&Other {
            server: &self.server,
            name: &self.name,
            model_name: &self.model_name,
            description: &self.description,
        })
    }
}

impl From<&ToolRecord> for Marked {
    fn from(tool: &ToolRecord) -> Self {
        Self {
            server: tool.server.as_str().to_owned(),
            name: tool.name.as_str().to_owned(),
            model_name: tool.model_name.clone(),
            description: marks::description(&tool.definition),
        }
    }
}

async fn put(
    transaction: &mut impl Transaction,
    tenant: &str,
    tools: &[Marked],
) -> Result<(), StoreError> {
    let mut rows: Vec<Vec<Value<'_>>> = Vec::new();
    for tool in tools {
        let row = |mark: marks::Mark| {
            let server = Value::from(&tool.server);
            vec![tenant.into(), mark.key.into(), server, (&tool.name).into(), mark.share.into()]
        };
        rows.extend(tool.marks().into_iter().map(row));
    }
    transaction.insert(&INSERT, &rows).await
}
