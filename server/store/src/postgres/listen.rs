//! Listener for the commits of other processes. A hint triggers an early poll. A replica that can't listen, for
//! instance behind a pooler, only polls.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::debug;

/// Notification channel for commits.
const CHANNEL: &str = "toolgate_changes";

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Notifies `news` at each hint, and after a lost connection, because hints may have been missed. Runs forever.
pub(super) async fn listen(options: PgConnectOptions, timeout: Duration, news: Arc<Notify>) {
    // A dedicated connection for the whole lifetime.
    let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let pool = one.acquire_timeout(timeout).connect_lazy_with(options);
    let mut pause = FIRST_PAUSE;
    loop {
        let outcome: Result<(), sqlx::Error> = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            pause = FIRST_PAUSE;
            while listener.try_recv().await?.is_some() {
                news.notify_one();
            }
            Ok(())
        }
        .await;
        if let Err(error) = outcome {
            debug!(%error, "hints of changes are not heard; they are polled for");
        }
        news.notify_one();
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
