//! Work that embeds texts in this process. It loads the encoders of both sides and shows the progress.

use std::sync::Arc;

use super::failure::Failure;
use super::{output, serve};
use crate::serve::{load_packs, load_sides};
use toolgate_config::Config;
use toolgate_core::error::Error;
use toolgate_lab::eval::{Progress, Sides};
use toolgate_routing::packs::Packs;

/// Loads the packs of the configuration, without those for the named MCP servers.
pub(super) fn packs(config: &Config, without: &[String]) -> Result<Option<Arc<Packs>>, Failure> {
    let packs = load_packs(&config.packs);
    let packs = packs.map_err(|error| Failure::new(serve::with_causes(&error)))?;
    Ok(packs.map(|packs| Arc::new(packs.without(without.to_vec()))))
}

/// Runs `work`, which is called `what` in messages, with the configured encoder. It has a thread of its own, because it
/// computes for seconds and Ctrl-C must still work.
pub(super) async fn with_encoders<T: Send + 'static>(
    config: &Config,
    what: &str,
    work: impl AsyncFnOnce(Sides<'_>, &Progress) -> Result<T, Error> + Send + 'static,
) -> Result<T, Failure> {
    let loaded = load_sides(&config.encoder).await;
    let (passages, queries) = loaded.map_err(|error| Failure::new(serve::with_causes(&error)))?;
    let (bar, progress) = output::progress_of_texts();
    let runtime = tokio::runtime::Handle::current();
    let outcome = tokio::task::spawn_blocking(move || {
        let sides = Sides { passages: &passages, queries: &queries };
        runtime.block_on(work(sides, &progress))
    });
    let outcome = outcome.await;
    bar.finish_and_clear();
    match outcome {
        Ok(done) => done.map_err(|error| Failure::new(serve::with_causes(&error))),
        Err(error) => Err(Failure::new(format!("{what} broke off: {error}"))),
    }
}
