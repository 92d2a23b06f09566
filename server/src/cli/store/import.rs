//! `toolgate store import`: reads an export into another store.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{StoreArguments, failed, parse_tenant};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::text::counted;
use crate::serve;
use toolgate_core::identity::TenantId;
use toolgate_store::stream::{Reader, StreamError};
use toolgate_store::{StoreError, TenantArchive, TenantContent};

const EXAMPLES: &str = "\
Examples:
  toolgate store import catalogs.jsonl
  gunzip < acme.jsonl.gz | toolgate store import -
  toolgate store import catalogs.jsonl --tenant acme

Tenants that the store has already are refused, and what came before them stays: each tenant is stored whole or not
at all, with the revisions it had. No server may be running on a store in a data directory.";

/// Store what was exported from another store.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Import {
    /// The export; - for standard input.
    file: PathBuf,
    /// Only this tenant of it.
    #[arg(long, value_parser = parse_tenant, value_name = "NAME")]
    tenant: Option<TenantId>,
    #[command(flatten)]
    store: StoreArguments,
}

pub(super) async fn run(import: Import) -> Result<Exit, Failure> {
    let config = import.store.load()?;
    let source = open(&import.file)?;
    let held = config.shared.is_none().then(|| serve::hold(&config.path)).transpose();
    let _held = held.map_err(|error| Failure::new(error.to_string()))?;
    let store = super::open(&config).await?;
    let (tenants, tools) = take_in(&*store, source, &import).await?;
    store.close().await.map_err(|error| failed(&error))?;
    if let (Some(tenant), 0) = (&import.tenant, tenants) {
        let name = tenant.as_str();
        return Err(Failure::new(format!("the export has no tenant {name:?}")));
    }
    output::note(format_args!(
        "imported {}, {}",
        counted(tenants, "tenant"),
        counted(tools, "tool")
    ));
    Ok(Exit::Done)
}

async fn take_in(
    store: &dyn TenantArchive,
    mut source: Box<dyn BufRead>,
    import: &Import,
) -> Result<(usize, usize), Failure> {
    let unreadable =
        |error: StreamError| Failure::new(format!("{}: {error}", import.file.display()));
    let mut reader = Reader::default();
    let mut line = String::new();
    let mut tenants = 0;
    let mut tools = 0;
    let bar = output::progress_over(0, "tenants");
    loop {
        line.clear();
        let read = source.read_line(&mut line);
        let read = read.map_err(|error| {
            Failure::new(format!("{} cannot be read: {error}", import.file.display()))
        })?;
        if read == 0 {
            break;
        }
        let Some((tenant, content)) = reader.take(&line).map_err(unreadable)? else { continue };
        if import.tenant.as_ref().is_none_or(|wanted| *wanted == tenant) {
            restore(store, &tenant, &content).await?;
            (tenants, tools) = (tenants + 1, tools + content.catalog.all_tools().count());
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    reader.finish().map_err(unreadable)?;
    Ok((tenants, tools))
}

async fn restore(
    store: &dyn TenantArchive,
    tenant: &TenantId,
    content: &TenantContent,
) -> Result<(), Failure> {
    let name = tenant.as_str();
    match store.restore_content(tenant, content).await {
        Err(StoreError::Conflict) => Err(Failure::new(format!(
            "tenant {name:?} is in this store already: import into an empty one, or name another with --tenant"
        ))),
        Err(error) => {
            let cause = toolgate_core::error::with_causes(&error);
            Err(Failure::new(format!("tenant {name:?} could not be stored: {cause}")))
        }
        Ok(()) => Ok(()),
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(BufReader::new(file))),
        Err(error) => Err(Failure::new(format!("{} cannot be read: {error}", path.display()))),
    }
}
