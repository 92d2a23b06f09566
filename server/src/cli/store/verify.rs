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
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
}

pub(super) async fn run(arguments: Verify) -> Result<Exit, Failure> {
    let store = super::open_existing(&arguments.store.load()?).await?;
    let tenants = super::tenants(&*store, arguments.tenant.as_ref()).await;
    let tenants = tenants.map_err(|error| failed(&error))?;
    let bar = output::progress_over(tenants.len(), "tenants");
    let (mut problems, mut tools) = (Vec::new(), 0);
    for tenant in &tenants {
        let content = store.read_content(tenant).await.map_err(|error| failed(&error))?;
        let content = content.ok_or_else(|| no_catalog(tenant))?;
        tools += content.catalog.all_tools().count();
        // Tokens of many definitions take a core for a while.
        let found = tokio::task::spawn_blocking(move || verify::problems(&content)).await;
        let found = found.map_err(|error| Failure::new(Error::internal(error).to_string()))?;
        problems.extend(found.into_iter().map(|problem| (tenant.clone(), problem)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let is_well = problems.is_empty();
    if arguments.json {
        let problems = problems
            .iter()
            .map(|(tenant, problem)| json!({ "tenant": tenant.as_str(), "problem": problem }));
        let problems: Vec<_> = problems.collect();
        let (ok, tenants) = (is_well, tenants.len());
        output::print_json(
            &json!({ "ok": ok, "tenants": tenants, "tools": tools, "problems": problems }),
        )?;
    } else {
        let line =
            |(tenant, problem): &(TenantId, String)| format!("{}: {problem}\n", tenant.as_str());
        output::print(&problems.iter().map(line).collect::<String>())?;
        let (tenants, tools) = (counted(tenants.len(), "tenant"), counted(tools, "tool"));
        let verdict = match is_well {
            true => "all is well".to_owned(),
            false => counted(problems.len(), "problem"),
        };
        output::print(&format!("{tenants}, {tools}: {verdict}\n"))?;
    }
    Ok(if is_well { Exit::Done } else { Exit::Refused })
}
