//! `toolgate store export`: writes everything as one stream of JSON lines.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{StoreArguments, failed, no_catalog, parse_tenant};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::text::counted;
use toolgate_core::identity::TenantId;
use toolgate_store::{TenantArchive, TenantContent, stream};

const EXAMPLES: &str = "\
Examples:
  toolgate store export --out catalogs.jsonl
  toolgate store export --tenant acme | gzip > acme.jsonl.gz

One stream of lines of JSON: catalogs with their revisions, embeddings, policies, what is remembered, usage. Ids of
requests are not in it. Each tenant is read at one moment; a server may be running. The file holds what the store
does: keep it as safe.";

/// Write everything that a store holds as one stream.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// Only this tenant.
    #[arg(long, value_parser = parse_tenant, value_name = "NAME")]
    tenant: Option<TenantId>,
    /// The file to write, which must not be there yet. Without it the stream goes to stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArguments,
}

pub(super) async fn run(export: Export) -> Result<Exit, Failure> {
    let store = super::open_existing(&export.store.load()?).await?;
    let tenants = super::tenants(&*store, export.tenant.as_ref()).await;
    let tenants = tenants.map_err(|error| failed(&error))?;
    let exported = match &export.out {
        Some(path) => {
            let written = write(&*store, &tenants, BufWriter::new(create(path)?)).await;
            if written.is_err() {
                // An import refuses a partial export, so the file would be useless.
                drop(std::fs::remove_file(path));
            }
            let (file, tools) = written?;
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            tools
        }
        None => write(&*store, &tenants, BufWriter::new(io::stdout().lock())).await?.1,
    };
    let tenants = counted(tenants.len(), "tenant");
    let tools = counted(exported, "tool");
    output::note(format_args!("exported {tenants}, {tools}"));
    Ok(Exit::Done)
}

async fn write<W: Write>(
    store: &dyn TenantArchive,
    tenants: &[TenantId],
    mut out: W,
) -> Result<(W, usize), Failure> {
    let bar = output::progress_over(tenants.len(), "tenants");
    let mut tools = 0;
    out.write_all(stream::head().as_bytes())?;
    for tenant in tenants {
        let content = store.read_content(tenant).await.map_err(|error| failed(&error))?;
        let content = content.ok_or_else(|| no_catalog(tenant))?;
        refuse_damage(tenant, &content)?;
        tools += content.catalog.all_tools().count();
        for line in stream::lines(tenant, content) {
            out.write_all(line.as_bytes())?;
        }
        bar.inc(1);
    }
    out.write_all(stream::end(tenants.len() as u64).as_bytes())?;
    out.flush()?;
    bar.finish_and_clear();
    Ok((out, tools))
}

/// Fails if a tenant has damaged content. It would be missing from the export without notice.
fn refuse_damage(tenant: &TenantId, content: &TenantContent) -> Result<(), Failure> {
    match content.damage.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(format!(
            "tenant {:?}: {first}; `toolgate store verify` lists all that is damaged",
            tenant.as_str()
        ))),
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let created = options.open(path);
    created.map_err(|error| Failure::new(format!("{} cannot be made: {error}", path.display())))
}
