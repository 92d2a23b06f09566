//! The watch of a catalog, which survives broken connections.

use std::time::Duration;

use futures_util::stream::try_unfold;
use tokio::time::sleep;
use tonic::Streaming;
use toolgate_proto::v1;

use crate::call::{Rpc, backoff};
use crate::client::Client;
use crate::error::Error;
use crate::items::ItemStream;

const NAME: &str = "WatchCatalog";
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Client {
    /// Streams changes of the catalog as they are committed. If the connection breaks or the service goes down, the
    /// watch connects again, with no limit on attempts, and continues from the last revision that it saw. Dropping it
    /// ends it. Only opening the watch has a deadline. A service that can't be reached at first is an error, as in
    /// every call.
    ///
    /// ```no_run
    /// # async fn example(client: toolgate_client::Client) -> Result<(), toolgate_client::Error> {
    /// let mut changes = client.watch_catalog(Default::default());
    /// while let Some(change) = changes.next().await {
    ///     let change = change?;
    ///     println!("revision {}: {:?}", change.catalog_revision, change.servers);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_catalog(
        &self,
        mut request: v1::WatchCatalogRequest,
    ) -> ItemStream<v1::WatchCatalogResponse> {
        self.fill_tenant(&mut request.tenant);
        let watch = Watch { client: self.clone(), request, state: State::New, failures: 0 };
        ItemStream::new(try_unfold(watch, |mut watch| async {
            let change = watch.next().await?;
            Ok(Some((change, watch)))
        }))
    }
}

struct Watch {
    client: Client,
    request: v1::WatchCatalogRequest,
    state: State,
    /// Number of failures in a row.
    failures: u32,
}

enum State {
    New,
    Open(Box<Streaming<v1::WatchCatalogResponse>>),
    Broken,
}

impl Watch {
    async fn next(&mut self) -> Result<v1::WatchCatalogResponse, Error> {
        loop {
            let error = match &mut self.state {
                State::Open(stream) => match stream.message().await {
                    Ok(Some(change)) => {
                        self.failures = 0;
                        self.request.since_revision = Some(change.catalog_revision);
                        return Ok(change);
                    }
                    // The server ended the stream without an error, so the watch may connect again.
                    Ok(None) => None,
                    Err(status) => Some(Error::from_status(NAME, self.client.endpoint(), &status)),
                },
                State::New => {
                    self.state = State::Open(self.open().await?);
                    continue;
                }
                State::Broken => match self.open().await {
                    Ok(stream) => {
                        self.state = State::Open(stream);
                        continue;
                    }
                    Err(error) => Some(error),
                },
            };
            self.pause_after(error).await?;
        }
    }

    async fn open(&self) -> Result<Box<Streaming<v1::WatchCatalogResponse>>, Error> {
        self.client
            .call(Rpc::stream(NAME), self.request.clone(), |request| {
                let mut service = self.client.catalog();
                async move { service.watch_catalog(request).await }
            })
            .await
            .map(Box::new)
    }

    /// Waits until the stream may be opened again. Returns an error that waiting can't fix.
    async fn pause_after(&mut self, error: Option<Error>) -> Result<(), Error> {
        self.state = State::Broken;
        self.failures += 1;
        let mut pause =
            backoff(self.client.options().retry.base_delay, LONGEST_PAUSE, self.failures);
        if let Some(error) = error {
            if !error.is_unavailable() && !matches!(error, Error::Deadline { .. }) {
                return Err(error);
            }
            pause = pause.max(error.retry_delay().unwrap_or_default());
        }
        sleep(pause).await;
        Ok(())
    }
}
