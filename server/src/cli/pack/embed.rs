//! `toolgate pack embed`: embeds the requests of packs once, so that a server need not do it at each start.

use std::path::PathBuf;

use clap::Args;

use super::super::arguments::ConfigArguments;
use super::super::embedding::with_encoders;
use super::super::failure::{Exit, Failure};
use super::super::text::counted;
use super::super::{files, output, serve};
use crate::serve::load_packs;
use toolgate_config::PacksConfig;
use toolgate_lab::eval::{Progress, Sides};
use toolgate_routing::packs::MEANS_FILE;

/// Embed the requests of packs once, so that no start of a server has to.
///
/// Those of the directory, and the shipped ones, and the requests that need no tool. The file belongs beside the packs of the directory; a server whose
/// encoder is another one, or whose packs have changed since, embeds what it needs itself.
#[derive(Debug, Args)]
pub(super) struct Embed {
    /// Packs of your own (packs.directory). Without it, the configuration's; the shipped ones alone where there is none.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Embed the packs of this MCP server alone; may be given more than once. The file replaces one that has more.
    #[arg(long, value_name = "NAME")]
    server: Vec<String>,
    /// The file to write. Without it, means.safetensors in the directory.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The encoder's model directory. Without it, the configuration's.
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(embed: Embed) -> Result<Exit, Failure> {
    let config = embed.config.load_for_model(embed.model_dir.as_deref())?;
    let directory = embed.directory.or_else(|| config.packs.directory.clone());
    let out = embed.out.or_else(|| directory.as_deref().map(|dir| dir.join(MEANS_FILE)));
    let out =
        out.ok_or_else(|| Failure::usage("there is no directory: say --directory or --out"))?;
    let draft = files::draft_of(&out);
    files::check_writable(&draft)?;
    let packs = load_packs(&PacksConfig { enabled: true, directory });
    let packs =
        packs.map_err(|error| Failure::new(serve::with_causes(&error)))?.unwrap_or_default();
    let mut packs = if embed.server.is_empty() {
        packs
    } else {
        let unknown = |name| {
            Failure::usage(format!("no pack is for the server {name:?}: see `toolgate pack list`"))
        };
        packs.only(&embed.server).map_err(unknown)?
    };
    let count: usize = packs.all().iter().map(toolgate_routing::packs::Pack::requests).sum();
    let work = async move |sides: Sides<'_>, progress: &Progress| {
        packs.means_file(sides.queries, progress).await
    };
    let content = with_encoders(&config, "the embedding", work).await?;
    files::replace(&out, &content)?;
    output::note(format_args!("{}: {}", out.display(), counted(count, "request")));
    Ok(Exit::Done)
}
