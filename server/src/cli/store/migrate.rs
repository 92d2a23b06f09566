//! `toolgate store migrate`: updates or checks the schema of a store.

use clap::Args;
use serde_json::json;

use super::{StoreArguments, failed};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::serve::{self, DATABASE};
use toolgate_config::StoreConfig;
use toolgate_core::error::with_causes;
use toolgate_store::SchemaState;
use toolgate_store::postgres::PostgresStore;
use toolgate_store::sqlite::SqliteStore;

const EXAMPLES: &str = "\
Examples:
  toolgate store migrate
  toolgate store migrate --check                exit code 3 when something is to be done

A server does this itself when it starts. Where its database user may not change the schema, do it before, as a
user who may (docs/store.md).";

/// Bring a store's schema up to date.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Migrate {
    /// Say what is to be done, and do nothing.
    #[arg(long)]
    check: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
}

pub(super) async fn run(migrate: Migrate) -> Result<Exit, Failure> {
    let config = migrate.store.load()?;
    let (place, state) = look(&config).await?;
    let is_current = state.is_current();
    let found = state.found;
    let wanted = state.wanted;
    if !migrate.check && !is_current {
        super::open(&config).await?.close().await.map_err(|error| failed(&error))?;
    }
    if migrate.json {
        let done = !migrate.check;
        let found = json!({ "store": place, "found": found, "wanted": wanted, "migrated": done && !is_current });
        output::print_json(&found)?;
    } else if is_current {
        output::print(&format!("{place}: schema {found}, up to date\n"))?;
    } else if migrate.check {
        output::print(&format!("{place}: schema {found}, to be brought to {wanted}\n"))?;
    } else {
        output::print(&format!("{place}: schema brought from {found} to {wanted}\n"))?;
    }
    Ok(if migrate.check && !is_current { Exit::Refused } else { Exit::Done })
}

/// Returns the name of the store, and the state of its schema.
async fn look(config: &StoreConfig) -> Result<(String, SchemaState), Failure> {
    let Some(shared) = &config.shared else {
        let path = config.path.join(DATABASE);
        let state = SqliteStore::schema(&path).await.map_err(|error| failed(&error))?;
        return Ok((path.display().to_string(), state));
    };
    let reached_by =
        serve::reached_by(shared).map_err(|error| Failure::new(with_causes(&error)))?;
    let store = PostgresStore::new(&reached_by).map_err(|error| failed(&error))?;
    let state = store.schema().await.map_err(|error| failed(&error))?;
    Ok((store.place().to_owned(), state))
}
