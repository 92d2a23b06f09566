//! Reads everything stored for a tenant, with a list of damaged content, and stores content that was read elsewhere.

use std::collections::BTreeMap;

use super::Column::{Flag, Integer, Text};
use super::rows::{self, integer, number, to_json};
use super::{
    Insert, Row, Sql, Transaction, Value, changes, embeddings, marks, memory, past, policies,
    removed, sql, tools, usage, values,
};
use crate::content::RemovedServer;
use crate::{
    Committed, Revision, StoreError, StoredCatalog, StoredEmbedding, StoredServer, TenantContent,
    UsageAddition, UsageCount,
};
use toolgate_core::identity::ServerName;

const SERVERS: Insert = Insert {
    into: "servers (tenant, name, description, transport_hint, trust_tier, precondition,
             required_scopes, revision, updated_ms, tool_count, pending)",
    columns: &[Text, Text, Text, Integer, Integer, Text, Text, Integer, Integer, Integer, Flag],
    then: "",
};

const REMOVED_TOOLS: Insert = Insert {
    into: "removed_tools (tenant, model_name, revision)",
    columns: &[Text, Text, Integer],
    then: "",
};

const REMOVED_SERVERS: Insert = Insert {
    into: "removed_servers (tenant, name, revision)",
    columns: &[Text, Text, Integer],
    then: "",
};

pub(super) async fn read(
    snapshot: &mut impl Transaction,
    tenant: &str,
) -> Result<Option<TenantContent>, StoreError> {
    let found = sql!(
        "SELECT revision, pool_floor, changes_floor FROM tenants WHERE tenant = $1 AND revision > 0"
    );
    let Some(row) = snapshot.optional(found, &values![tenant]).await? else { return Ok(None) };
    let mut damage = Vec::new();
    let mut sift = Sift { tenant, damage: &mut damage };
    let floors = (number(&row, "revision")?, number(&row, "pool_floor")?);
    let changes_floor = number(&row, "changes_floor")?;
    let catalog = catalog(snapshot, &mut sift, floors).await?;
    let all = sql!("SELECT name, revision FROM removed_servers WHERE tenant = $1 ORDER BY name");
    let removed_servers = sift.all(snapshot, all, "removed server", removed_server).await?;
    let all = sql!("SELECT * FROM past_tools WHERE tenant = $1 ORDER BY server, name");
    let past_tools = sift.all(snapshot, all, "removed tool", past::read).await?;
    let all = sql!(
        "SELECT fingerprint, text_hash, vector FROM embeddings WHERE tenant = $1
         ORDER BY fingerprint, text_hash"
    );
    let embeddings = sift.all(snapshot, all, "embedding", embedding).await?;
    let all = sql!("SELECT * FROM exemplars WHERE tenant = $1 ORDER BY server, name, place");
    let exemplars = sift.all(snapshot, all, "exemplar", memory::kept).await?;
    let all = sql!("SELECT hour, item, amount FROM usage WHERE tenant = $1 ORDER BY hour, item");
    let usage = sift.all(snapshot, all, "counter of usage", counter).await?;
    Ok(Some(TenantContent {
        catalog,
        hides: policies::hides(snapshot, tenant).await?,
        changes_floor,
        removed_servers,
        past_tools,
        embeddings,
        memory: memory::versions(snapshot, tenant).await?,
        exemplars,
        usage,
        damage,
    }))
}

async fn catalog(
    snapshot: &mut impl Transaction,
    sift: &mut Sift<'_>,
    (revision, pool_floor): (Revision, Revision),
) -> Result<StoredCatalog, StoreError> {
    let servers = sql!("SELECT * FROM servers WHERE tenant = $1 ORDER BY name");
    let servers = sift.all(snapshot, servers, "server", rows::server).await?;
    let all = sql!("SELECT * FROM tools WHERE tenant = $1 ORDER BY server, name");
    let all = sift.all(snapshot, all, "tool", tools::checked).await?;
    let (mut tools, quarantined) = StoredCatalog::apart(all);
    tools.sort_by_key(|tool| tool.summary_revision);
    let removed = removed::list(snapshot, sift.tenant).await?;
    let policy = policies::read(snapshot, sift.tenant).await?;
    Ok(StoredCatalog { revision, servers, tools, quarantined, removed, pool_floor, policy })
}

/// Reader that collects valid rows and describes damaged ones.
struct Sift<'a> {
    tenant: &'a str,
    damage: &'a mut Vec<String>,
}

impl Sift<'_> {
    async fn all<T: Transaction, K: Send>(
        &mut self,
        snapshot: &mut T,
        sql: Sql,
        what: &str,
        read: impl Fn(&T::Row) -> Result<K, StoreError> + Send + Sync,
    ) -> Result<Vec<K>, StoreError> {
        let mut kept = Vec::new();
        let damage = &mut *self.damage;
        let values = values![self.tenant];
        let found = snapshot.each(sql, &values, |row| {
            match read(row) {
                Ok(one) => kept.push(one),
                Err(StoreError::Damaged(problem)) => {
                    damage.push(format!("{what}{}: {problem}", name_of(row)));
                }
                Err(other) => return Err(other),
            }
            Ok(())
        });
        found.await?;
        Ok(kept)
    }
}

/// Returns the name of a row for messages, as far as it can be read.
fn name_of(row: &impl Row) -> String {
    let text = |column| row.text(column).ok();
    let parts: Vec<_> = ["server", "name", "item"].into_iter().filter_map(text).collect();
    if parts.is_empty() { String::new() } else { format!(" {:?}", parts.join("/")) }
}

fn removed_server(row: &impl Row) -> Result<RemovedServer, StoreError> {
    let name = rows::name(row, "name", ServerName::parse)?;
    Ok(RemovedServer { name, revision: number(row, "revision")? })
}

fn embedding(row: &impl Row) -> Result<(String, StoredEmbedding), StoreError> {
    let text_hash = rows::hash(row, "text_hash")?;
    let vector = embeddings::vector(row.bytes("vector")?)?;
    Ok((rows::text(row, "fingerprint")?, StoredEmbedding { text_hash, vector }))
}

fn counter(row: &impl Row) -> Result<UsageCount, StoreError> {
    Ok(UsageCount {
        hour: number(row, "hour")?,
        item: rows::text(row, "item")?,
        amount: number(row, "amount")?,
    })
}

pub(super) async fn restore(
    transaction: &mut impl Transaction,
    tenant: &str,
    content: &TenantContent,
) -> Result<(), StoreError> {
    put_tenant(transaction, tenant, content).await?;
    marks::ensure(transaction, tenant).await?;
    let catalog = &content.catalog;
    let rows = catalog.servers.iter().map(|server| server_row(tenant, server));
    transaction.insert(&SERVERS, &rows.collect::<Result<Vec<_>, _>>()?).await?;
    let lines = catalog.all_tools().map(|tool| (&tool.record, tool.summary_revision));
    tools::insert_lines(transaction, tenant, lines).await?;
    let rows = catalog.removed.iter().map(|gone| named(tenant, &gone.model_name, gone.revision));
    transaction.insert(&REMOVED_TOOLS, &rows.collect::<Result<Vec<_>, _>>()?).await?;
    let gone = &content.removed_servers;
    let rows = gone.iter().map(|gone| named(tenant, gone.name.as_str(), gone.revision));
    transaction.insert(&REMOVED_SERVERS, &rows.collect::<Result<Vec<_>, _>>()?).await?;
    past::restore(transaction, tenant, &content.past_tools).await?;
    if let Some(policy) = &catalog.policy {
        let set = Committed { revision: policy.revision, updated_ms: policy.updated_ms };
        policies::put(transaction, tenant, &policy.document, content.hides, &set).await?;
    }
    let mut of_encoders: BTreeMap<&str, Vec<StoredEmbedding>> = BTreeMap::new();
    for (fingerprint, embedding) in &content.embeddings {
        of_encoders.entry(fingerprint).or_default().push(embedding.clone());
    }
    for (fingerprint, of_encoder) in of_encoders {
        embeddings::save(transaction, tenant, fingerprint, &of_encoder).await?;
    }
    memory::restore(transaction, tenant, content.memory, &content.exemplars).await?;
    let tenant_id = toolgate_core::identity::TenantId::parse(tenant)
        .map_err(|error| StoreError::Damaged(error.to_string()))?;
    let counts = content.usage.iter();
    let counts =
        counts.map(|count| UsageAddition { tenant: tenant_id.clone(), count: count.clone() });
    usage::add(transaction, &counts.collect::<Vec<_>>()).await?;
    changes::enumerate(transaction, tenant).await
}

async fn put_tenant(
    transaction: &mut impl Transaction,
    tenant: &str,
    content: &TenantContent,
) -> Result<(), StoreError> {
    let put = sql!(
        "INSERT INTO tenants (tenant, revision, pool_floor, changes_floor) VALUES ($1, $2, $3, $4)
         ON CONFLICT (tenant) DO UPDATE SET revision = excluded.revision,
             pool_floor = excluded.pool_floor, changes_floor = excluded.changes_floor
         WHERE tenants.revision = 0"
    );
    let catalog = &content.catalog;
    let revision = integer(catalog.revision)?;
    let floor = integer(catalog.pool_floor)?;
    let values = values![tenant, revision, floor, integer(content.changes_floor)?];
    match transaction.run(put, &values).await? {
        0 => Err(StoreError::Conflict),
        _ => Ok(()),
    }
}

fn server_row<'a>(tenant: &'a str, stored: &'a StoredServer) -> Result<Vec<Value<'a>>, StoreError> {
    let server = &stored.record;
    Ok(vec![
        tenant.into(),
        server.name.as_str().into(),
        Value::from(&server.description),
        server.transport_hint.number().into(),
        server.trust_tier.number().into(),
        server.precondition.as_ref().map(to_json).transpose()?.into(),
        to_json(&server.required_scopes)?.into(),
        integer(stored.revision)?.into(),
        stored.updated_ms.into(),
        stored.tool_count.into(),
        server.pending.into(),
    ])
}

fn named<'a>(
    tenant: &'a str,
    name: &'a str,
    revision: Revision,
) -> Result<Vec<Value<'a>>, StoreError> {
    Ok(vec![tenant.into(), name.into(), integer(revision)?.into()])
}
