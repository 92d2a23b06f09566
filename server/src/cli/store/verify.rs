//! `toolgate store verify`: reads everything back.

use clap::Args;
use serde_json::json;

use super::{StoreArguments, failed, no_catalog, parse_tenant};
use crate::catalog::verify;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::text::counted;
use crate::error::Error;
use crate::identity::TenantId;
use crate::store::Store;

const EXAMPLES: &str = "\
Examples:
  toolgate store verify
  toolgate store verify --tenant acme --json

Hashes, token counts and numbers of tools are made again and compared, texts parsed, embeddings looked through. A
server may be running. Exit code 3 when something is wrong.";

/// Look through a store for what is damaged or does not agree.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Verify {
    /// Only this tenant.
    #[arg(long, value_parser = parse_tenant, value_name = "NAME")]
    tenant: Option<TenantId>,
    /// Delete embeddings that are of no tool's summary.
    #[arg(long)]
    sweep: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
}

/// What was found in all tenants that were looked through.
#[derive(Default)]
struct Found {
    tenants: usize,
    tools: usize,
    problems: Vec<(TenantId, String)>,
    /// Embeddings of no tool's summary.
    orphans: usize,
}

pub(super) async fn run(arguments: Verify) -> Result<Exit, Failure> {
    let store = super::open_existing(&arguments.store.load()?).await?;
    let tenants = super::tenants(&*store, arguments.tenant.as_ref()).await;
    let tenants = tenants.map_err(|error| failed(&error))?;
    let bar = output::progress_over(tenants.len(), "tenants");
    let mut found = Found { tenants: tenants.len(), ..Found::default() };
    for tenant in &tenants {
        look_through(&*store, tenant, arguments.sweep, &mut found).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    if arguments.json {
        output::print_json(&found.as_json())?;
    } else {
        found.print(arguments.sweep)?;
    }
    Ok(if found.problems.is_empty() { Exit::Done } else { Exit::Refused })
}

async fn look_through(
    store: &dyn Store,
    tenant: &TenantId,
    sweeps: bool,
    found: &mut Found,
) -> Result<(), Failure> {
    let content = store.read_content(tenant).await.map_err(|error| failed(&error))?;
    let content = content.ok_or_else(|| no_catalog(tenant))?;
    found.tools += content.catalog.all_tools().count();
    // Tokens of many definitions take a core for a while.
    let look = move || (verify::problems(&content), verify::orphans(&content));
    let looked = tokio::task::spawn_blocking(look).await;
    let looked = looked.map_err(|error| Failure::new(Error::internal(error).to_string()))?;
    let (problems, orphans) = looked;
    if sweeps && orphans > 0 {
        // Keeping none has those go that are of nothing.
        store.save_embeddings(tenant, "", &[]).await.map_err(|error| failed(&error))?;
    }
    found.problems.extend(problems.into_iter().map(|problem| (tenant.clone(), problem)));
    found.orphans += orphans;
    Ok(())
}

impl Found {
    fn as_json(&self) -> serde_json::Value {
        let problem = |(tenant, problem): &(TenantId, String)| json!({ "tenant": tenant.as_str(), "problem": problem });
        json!({
            "ok": self.problems.is_empty(),
            "tenants": self.tenants,
            "tools": self.tools,
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "orphans": self.orphans,
        })
    }

    fn print(&self, swept: bool) -> Result<(), Failure> {
        let line =
            |(tenant, problem): &(TenantId, String)| format!("{}: {problem}\n", tenant.as_str());
        output::print(&self.problems.iter().map(line).collect::<String>())?;
        if self.orphans > 0 {
            let orphans = counted(self.orphans, "embedding");
            let done = if swept { "deleted" } else { "--sweep deletes them" };
            output::note(format!("{orphans} of no tool's summary: {done}"));
        }
        let verdict = match self.problems.len() {
            0 => "all is well".to_owned(),
            problems => counted(problems, "problem"),
        };
        let (tenants, tools) = (counted(self.tenants, "tenant"), counted(self.tools, "tool"));
        output::print(&format!("{tenants}, {tools}: {verdict}\n"))?;
        Ok(())
    }
}
