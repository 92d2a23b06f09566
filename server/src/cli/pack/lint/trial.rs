//! Ranks the tools of a catalog for the requests of packs. Each request is left out of its own tool's data.

use super::report::JudgedBy;
use super::{Lint, Linted, Warning};
use crate::cli::embedding::with_encoders;
use crate::cli::failure::Failure;
use crate::cli::{documents, output, serve};
use toolgate_config::Config;
use toolgate_core::error::Error;
use toolgate_lab::eval::stock::Stock;
use toolgate_lab::eval::{CatalogServer, Progress, Sides};
use toolgate_lab::pack_trial::{
    Bed, Limits, Misplaced, Placed, Request, Requests, left_one_out, misplaced,
};
use toolgate_routing::packs::{Pack, Packs};

/// A catalog, and the packs of its MCP servers.
#[derive(Debug, Clone)]
struct Ground {
    stock: Stock,
    requests: Requests,
    /// Indexes of the packs to check. Other packs only compete with them.
    looked_at: Vec<usize>,
    clauses: bool,
}

/// Adds the warnings to the files.
pub(super) async fn warn(
    lint: &Lint,
    config: &Config,
    files: &mut [Linted],
) -> Result<JudgedBy, Failure> {
    let packs: Vec<Pack> = files.iter().filter_map(|file| file.pack.clone()).collect();
    if packs.is_empty() {
        return Ok(JudgedBy::Nothing);
    }
    let grounds = grounds(lint, config, &packs)?;
    let (by, placed) = place(lint, config, &grounds).await?;
    let mut found = Vec::new();
    for (ground, placed) in grounds.iter().zip(&placed) {
        found.extend(ground.warnings(placed, lint.limits()));
    }
    for file in files {
        let Some(pack) = &file.pack else { continue };
        // A pack is recognised by its content, because names of servers may repeat.
        let is_own = |warning: &Warning| {
            pack.tools.get(&warning.tool).is_some_and(|tool| {
                tool.voices.get(&warning.voice).is_some_and(|said| said.contains(&warning.request))
            })
        };
        file.warnings = found.iter().filter(|warning| is_own(warning)).cloned().collect();
    }
    Ok(by)
}

/// Returns the given catalog, or a catalog made of each pack if none is given.
fn grounds(lint: &Lint, config: &Config, packs: &[Pack]) -> Result<Vec<Ground>, Failure> {
    let ground = |servers: &[CatalogServer], all: &Packs| {
        let stock = Stock::check(servers, &config.limits);
        let requests = Requests::of(&stock, all, 0);
        let is_given = |place: &usize| packs.iter().any(|pack| requests.is(*place, pack));
        let looked_at = (0..requests.packs()).filter(is_given).collect();
        Ground { stock, requests, looked_at, clauses: config.router.clauses }
    };
    if lint.catalog.is_empty() {
        output::note(
            "no --catalog: requests are asked among the tools of their own pack, which have no descriptions",
        );
        let alone = |pack: &Pack| ground(&[tools_of(pack)], &Packs::of(vec![pack.clone()]));
        return Ok(packs.iter().map(alone).collect());
    }
    let servers = documents::read_catalogs(&lint.catalog)?;
    let shipped = Packs::shipped();
    let all = packs.iter().chain(shipped.all()).cloned().collect();
    let ground = ground(&servers, &Packs::of(all));
    for pack in packs {
        let is_used = |server: &CatalogServer| ground.has(server, pack);
        if !servers.iter().any(is_used) {
            let name = pack.servers.first().map_or("", String::as_str);
            output::warn(format_args!("no MCP server of the catalog has the pack of {name:?}"));
        }
    }
    Ok(vec![ground])
}

/// Returns an MCP server whose tools have only names.
fn tools_of(pack: &Pack) -> CatalogServer {
    let tool = |name: &String| {
        serde_json::json!({ "name": name, "inputSchema": { "type": "object" } }).to_string().into()
    };
    CatalogServer {
        name: pack.servers.first().cloned().unwrap_or_default(),
        description: String::new(),
        tools: pack.tools.keys().map(tool).collect(),
    }
}

type AllPlaced = Vec<Vec<Option<Placed>>>;

/// Ranks the tools for all requests, with the encoder if it is available.
async fn place(
    lint: &Lint,
    config: &Config,
    grounds: &[Ground],
) -> Result<(JudgedBy, AllPlaced), Failure> {
    if !lint.no_encoder {
        let grounds = grounds.to_vec();
        let work = async move |sides: Sides<'_>, progress: &Progress| {
            let mut placed = Vec::with_capacity(grounds.len());
            for ground in &grounds {
                let Ground { stock, requests, clauses, .. } = ground;
                let bed = Bed::embed(stock, *clauses, requests, &[], sides, progress).await?;
                placed.push(ground.place(&bed).await?);
            }
            Ok(placed)
        };
        match with_encoders(config, "the check", work).await {
            Ok(placed) => return Ok((JudgedBy::Encoder, placed)),
            Err(failure) => output::warn(format_args!(
                "{}\n  requests are judged by words alone",
                failure.message()
            )),
        }
    }
    let mut placed = Vec::with_capacity(grounds.len());
    for ground in grounds {
        let asked = ground.place(&Bed::of_words(&ground.stock)).await;
        placed.push(asked.map_err(|error| Failure::new(serve::with_causes(&error)))?);
    }
    Ok((JudgedBy::Words, placed))
}

impl Ground {
    async fn place(&self, bed: &Bed<'_>) -> Result<Vec<Option<Placed>>, Error> {
        let is_looked_at = |request: &Request| self.looked_at.contains(&request.pack);
        left_one_out(bed, &self.requests, is_looked_at).await
    }

    fn has(&self, server: &CatalogServer, pack: &Pack) -> bool {
        let names = self.stock.catalog.servers.iter().map(|stored| &stored.record.name);
        let mut own = names.filter(|name| self.stock.names.in_file(name) == server.name);
        own.any(|name| {
            self.requests.pack_of(name).is_some_and(|place| self.requests.is(place, pack))
        })
    }

    fn warnings(&self, placed: &[Option<Placed>], limits: Limits) -> Vec<Warning> {
        let warning = |found: Misplaced<'_>| {
            let first = found
                .first
                .map(|id| format!("{}/{}", self.stock.names.in_file(&id.server), id.name.as_str()));
            Warning {
                tool: found.request.tool.clone(),
                voice: found.request.voice.clone(),
                request: found.request.text.clone(),
                rank: found.rank,
                first: first.unwrap_or_default(),
                lead: found.lead,
            }
        };
        misplaced(&self.requests.all, placed, limits).into_iter().map(warning).collect()
    }
}
