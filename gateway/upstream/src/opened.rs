//! Order of a session's first request and its stream for messages that belong to no call.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Time that the requests of a session wait for its stream. Some servers answer a GET only with their first message.
const WAIT: Duration = Duration::from_secs(2);

/// Session whose stream was answered last.
///
/// A server may ask on this stream for what a call needs, and has nobody to ask before the stream is open. The library
/// opens it beside the first request.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenedStream(Arc<watch::Sender<Option<Arc<str>>>>);

impl OpenedStream {
    /// Notes that the server has answered, if only to say that it has no such stream.
    pub(crate) fn answered(&self, session: Option<&Arc<str>>) {
        self.0.send_replace(session.cloned());
    }

    /// Waits until the stream of a session is answered, for [`WAIT`] at most. What took longer is not waited for again.
    pub(crate) async fn wait(&self, session: Option<&Arc<str>>) {
        let Some(session) = session else { return };
        let mut answered = self.0.subscribe();
        let is_its = |answered: &Option<Arc<str>>| answered.as_ref() == Some(session);
        if tokio::time::timeout(WAIT, answered.wait_for(is_its)).await.is_err() {
            self.answered(Some(session));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_the_stream_of_their_own_session() {
        let opened = OpenedStream::default();
        let session: Arc<str> = "second".into();
        opened.answered(Some(&"first".into()));
        let mut waiting = Box::pin(opened.wait(Some(&session)));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        opened.answered(Some(&session));
        assert!(futures_util::poll!(&mut waiting).is_ready());
        opened.wait(None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_never_answered_is_waited_for_once() {
        let opened = OpenedStream::default();
        let session: Arc<str> = "session".into();
        let began = Instant::now();
        opened.wait(Some(&session)).await;
        assert_eq!(began.elapsed(), WAIT);
        opened.wait(Some(&session)).await;
        assert_eq!(began.elapsed(), WAIT);
    }
}
