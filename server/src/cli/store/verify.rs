//! `toolgate store verify`: reads everything back and checks it.

use clap::Args;
use serde_json::json;

use super::{StoreArguments, failed, no_catalog, parse_tenant};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::text::counted;
use crate::serve::load_sides;
use toolgate_config::EncoderConfig;
use toolgate_core::error::{Error, with_causes};
use toolgate_core::identity::TenantId;
use toolgate_routing::catalog::sample::{self, Drawn, Wrong};
use toolgate_routing::catalog::verify;
use toolgate_routing::encoder::{Embedded, Encoder, Flow, Prefixed};
use toolgate_store::Store;

const EXAMPLES: &str = "\
Examples:
  toolgate store verify
  toolgate store verify --tenant acme --json
  toolgate store verify --sample 1 --sweep

Hashes, token counts and numbers of tools are made again and compared, texts parsed, embeddings looked through, and a
sample of them made again with the configured encoder in this process. A server may be running. Exit code 3 when
something is wrong.";

/// Default sampling of embeddings: one in this many is computed again.
const SAMPLE: usize = 100;

/// Number of texts that are embedded at a time.
const CHUNK: usize = 64;

/// Look through a store for what is damaged or does not agree.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Verify {
    /// Only this tenant.
    #[arg(long, value_parser = parse_tenant, value_name = "NAME")]
    tenant: Option<TenantId>,
    /// Delete embeddings that are of no tool's summary, and those that the sample shows to be damaged: a server makes
    /// them anew when it loads the catalog next.
    #[arg(long)]
    sweep: bool,
    /// Make one embedding in N again and compare, 64 of each tenant at least; 0 for none. Left out: 100, and without the
    /// encoder's model none.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
}

/// Findings in all checked tenants.
#[derive(Default)]
struct VerifiedTenants {
    tenants: usize,
    tools: usize,
    problems: Vec<(TenantId, String)>,
    /// Number of embeddings that belong to no tool's summary.
    orphans: usize,
    /// Number of embeddings that were computed again.
    compared: usize,
}

/// Settings of the check.
struct Look {
    sweeps: bool,
    /// Encoder that computes embeddings again; `None` to skip this.
    encoder: Option<Prefixed>,
    one_in: usize,
}

pub(super) async fn run(arguments: Verify) -> Result<Exit, Failure> {
    let config = arguments.store.load_all()?;
    let store = super::open_existing(&config.store).await?;
    let encoder = encoder(&config.encoder, arguments.sample).await?;
    let one_in = arguments.sample.unwrap_or(SAMPLE);
    let look = Look { sweeps: arguments.sweep, encoder, one_in };
    let tenants = super::tenants(&*store, arguments.tenant.as_ref()).await;
    let tenants = tenants.map_err(|error| failed(&error))?;
    let bar = output::progress_over(tenants.len(), "tenants");
    let mut found = VerifiedTenants { tenants: tenants.len(), ..VerifiedTenants::default() };
    for tenant in &tenants {
        look_through(&*store, tenant, &look, &mut found).await?;
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
    look: &Look,
    found: &mut VerifiedTenants,
) -> Result<(), Failure> {
    let content = store.read_content(tenant).await.map_err(|error| failed(&error))?;
    let content = content.ok_or_else(|| no_catalog(tenant))?;
    found.tools += content.catalog.all_tools().count();
    // Counting the tokens of many definitions keeps a core busy for a while.
    let fingerprint = look.encoder.as_ref().map_or("", |encoder| encoder.fingerprint()).to_owned();
    let one_in = look.one_in;
    let looking = move || Looked {
        problems: verify::problems(&content),
        orphans: verify::orphans(&content),
        drawn: sample::draw(&content, &fingerprint, one_in),
    };
    let looked = tokio::task::spawn_blocking(looking).await;
    let Looked { problems, orphans, drawn } =
        looked.map_err(|error| Failure::new(Error::internal(error).to_string()))?;
    if look.sweeps && orphans > 0 {
        // Saving an empty list removes the embeddings that belong to no summary.
        store.save_embeddings(tenant, "", &[]).await.map_err(|error| failed(&error))?;
    }
    found.problems.extend(problems.into_iter().map(|problem| (tenant.clone(), problem)));
    found.orphans += orphans;
    if let Some(encoder) = &look.encoder {
        found.compared += drawn.len();
        let wrong = compare(encoder, &drawn).await?;
        if look.sweeps && !wrong.is_empty() {
            let texts: Vec<_> = wrong.iter().map(|wrong| wrong.text_hash).collect();
            let dropped = store.drop_embeddings(tenant, encoder.fingerprint(), &texts).await;
            dropped.map_err(|error| failed(&error))?;
        }
        found.problems.extend(wrong.into_iter().map(|wrong| (tenant.clone(), wrong.problem)));
    }
    Ok(())
}

/// Findings in one tenant, and a sample of texts to embed again.
struct Looked {
    problems: Vec<String>,
    orphans: usize,
    drawn: Vec<Drawn>,
}

/// Loads the encoder for comparing embeddings. If it can't be loaded, that is an error only if the user asked for a
/// sample.
async fn encoder(
    config: &EncoderConfig,
    sample: Option<usize>,
) -> Result<Option<Prefixed>, Failure> {
    if sample == Some(0) {
        return Ok(None);
    }
    match load_sides(config).await {
        Ok((passages, _)) => Ok(Some(passages)),
        Err(error) if sample.is_some() => Err(Failure::new(with_causes(&error))),
        Err(error) => {
            output::note(format!("no embedding was made again: {}", with_causes(&error)));
            Ok(None)
        }
    }
}

/// Embeds the sampled texts again, and returns those whose stored embeddings differ.
async fn compare(encoder: &Prefixed, drawn: &[Drawn]) -> Result<Vec<Wrong>, Failure> {
    let mut wrong = Vec::new();
    for drawn in drawn.chunks(CHUNK) {
        let texts = drawn.iter().map(|one| one.text.clone()).collect();
        let embedded: Vec<Embedded> = encoder
            .embed(texts, Flow::ALONE, None)
            .await
            .map_err(|error| Failure::new(with_causes(&error)))?;
        wrong.extend(sample::wrong(drawn, &embedded));
    }
    Ok(wrong)
}

impl VerifiedTenants {
    fn as_json(&self) -> serde_json::Value {
        let problem = |(tenant, problem): &(TenantId, String)| json!({ "tenant": tenant.as_str(), "problem": problem });
        json!({
            "ok": self.problems.is_empty(),
            "tenants": self.tenants,
            "tools": self.tools,
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "orphans": self.orphans,
            "compared": self.compared,
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
        if self.compared > 0 {
            output::note(format!("made {} again", counted(self.compared, "embedding")));
        }
        let verdict = match self.problems.len() {
            0 => "all is well".to_owned(),
            problems => counted(problems, "problem"),
        };
        let tenants = counted(self.tenants, "tenant");
        let tools = counted(self.tools, "tool");
        output::print(&format!("{tenants}, {tools}: {verdict}\n"))?;
        Ok(())
    }
}
