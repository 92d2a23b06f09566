//! `toolgate store`: an operator's work on a store. It migrates the schema, verifies the content, and moves it to
//! another store. It opens the configured store itself and asks no server.

mod export;
mod import;
mod migrate;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use crate::serve;
use crate::serve::DATABASE;
use toolgate_config::{Config, FlagValue, StoreConfig, keys};
use toolgate_core::error::with_causes;
use toolgate_core::identity::TenantId;
use toolgate_store::{Store, StoreError, TenantArchive};

const EXAMPLES: &str = "\
Examples:
  toolgate store migrate --check
  toolgate store verify
  toolgate store export --out catalogs.jsonl
  TOOLGATE_STORE_URL=postgres://toolgate@db/toolgate toolgate store import catalogs.jsonl

The store is the one that the configuration names: store.url, or else the database in store.path.";

/// Bring a store's schema up to date, look through it, or move what is in it to another.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StoreCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Migrate(migrate::Migrate),
    Verify(verify::Verify),
    Export(export::Export),
    Import(import::Import),
}

/// Which store.
#[derive(Debug, Args)]
struct StoreArguments {
    /// The data directory (store.path).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(command: StoreCommand) -> Result<Exit, Failure> {
    match command.action {
        Action::Migrate(migrate) => migrate::run(migrate).await,
        Action::Verify(verify) => verify::run(verify).await,
        Action::Export(export) => export::run(export).await,
        Action::Import(import) => import::run(import).await,
    }
}

impl StoreArguments {
    fn load(&self) -> Result<StoreConfig, Failure> {
        Ok(self.load_all()?.store)
    }

    fn load_all(&self) -> Result<Config, Failure> {
        let flag = self.data_dir.as_ref().map(|directory| FlagValue {
            flag: "--data-dir".into(),
            key: keys::STORE_PATH.to_string(),
            value: directory.to_string_lossy().into_owned(),
        });
        Ok(self.config.load(flag.into_iter().collect())?.config)
    }
}

/// Opens a store for reading. A missing store is not created.
async fn open_existing(config: &StoreConfig) -> Result<Arc<dyn Store>, Failure> {
    must_exist(config)?;
    open(config).await
}

/// Refuses an embedded store that does not exist.
pub(super) fn must_exist(config: &StoreConfig) -> Result<(), Failure> {
    let path = config.path.join(DATABASE);
    if config.shared.is_some() || path.exists() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: there is no store (store.path names another place, store.url another store)",
        path.display()
    )))
}

/// Opens a store and migrates its schema.
async fn open(config: &StoreConfig) -> Result<Arc<dyn Store>, Failure> {
    let opened = serve::open_now(config).await;
    opened.map_err(|error| Failure::new(with_causes(&error)))
}

/// Returns the named tenant, or all tenants.
async fn tenants(
    store: &dyn TenantArchive,
    named: Option<&TenantId>,
) -> Result<Vec<TenantId>, StoreError> {
    if let Some(tenant) = named {
        return Ok(vec![tenant.clone()]);
    }
    let mut all: Vec<TenantId> = Vec::new();
    loop {
        let page = store.list_tenants(all.last(), PAGE).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// Number of tenants per read from the store.
const PAGE: u32 = 1_000;

fn failed(error: &StoreError) -> Failure {
    Failure::new(with_causes(error))
}

fn no_catalog(tenant: &TenantId) -> Failure {
    Failure::new(format!("tenant {:?} has no catalog in this store", tenant.as_str()))
}

fn parse_tenant(text: &str) -> Result<TenantId, String> {
    TenantId::parse(text).map_err(|error| error.to_string())
}
