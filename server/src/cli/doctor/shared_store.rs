//! Checks that the configured user can use the database that replicas share.

use super::check::Check;
use crate::serve;
use toolgate_config::SharedStoreConfig;
use toolgate_core::error::with_causes;
use toolgate_store::StoreError;
use toolgate_store::postgres::PostgresStore;

const NAME: &str = "shared store";

/// Checks the database without changing anything.
pub(super) async fn check(config: &SharedStoreConfig) -> Check {
    let reached_by = match serve::reached_by(config) {
        Ok(reached_by) => reached_by,
        Err(error) => {
            return Check::fail(NAME, with_causes(&error)).advice("mend store.url_file");
        }
    };
    match look(PostgresStore::new(&reached_by)).await {
        Ok(check) => check,
        Err(error) => Check::fail(NAME, with_causes(&error)).advice(
            "`psql` with the same URL tells more; docs/store.md says which rights are needed",
        ),
    }
}

async fn look(store: Result<PostgresStore, StoreError>) -> Result<Check, StoreError> {
    let store = store?;
    let schema = store.schema().await?;
    let place = store.place();
    if store.is_above_rows().await? {
        let detail = format!("{place}: this user is superuser or has BYPASSRLS");
        let advice = "name a user without either, so that the database itself keeps tenants apart";
        return Ok(Check::warn(NAME, detail).advice(advice));
    }
    if schema.is_current() {
        return Ok(Check::ok(NAME, format!("{place}, schema {}", schema.found)));
    }
    let found = schema.found;
    let wanted = schema.wanted;
    let detail = format!("{place}: its schema is {found}; a server brings it to {wanted}");
    Ok(Check::warn(NAME, detail).advice("or `toolgate store migrate`, as a user who may"))
}
