//! The body of a request on its way to a provider: how much of it was taken, so that deadlines count from there.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::way::{Payload, Piece, Pieces};

/// Bytes of a body that are handed over at a time. A smaller body is taken at once.
const CHUNK: usize = 64 << 10;

/// Deadlines of a request that is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// Time between two pieces of the request that the provider takes.
    pub(crate) piece: Duration,
    /// Time from the request's end until the answer begins.
    pub(crate) answer: Duration,
}

/// Deadline that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// The provider takes no more of the request.
    Piece,
    /// The provider does not answer the request, which it has.
    Answer,
}

/// Progress of a body. It is told anew with each piece.
#[derive(Debug, Default)]
struct Progress {
    is_whole: bool,
    /// Error that the host's side broke off with.
    broken: Option<Broken>,
}

/// Error of the side that a body comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) is_late: bool,
    pub(crate) problem: String,
}

/// Body that is watched.
struct WatchedBody {
    pieces: Pieces,
    progress: watch::Sender<Progress>,
}

/// Watch over a body that is sent.
#[derive(Debug)]
pub(crate) struct Upload(watch::Receiver<Progress>);

impl Upload {
    /// Returns a body, and the watch over it.
    pub(crate) fn of(body: Payload) -> (Payload, Self) {
        let pieces = match body {
            Payload::Whole(bytes) if bytes.len() <= CHUNK => {
                return (Payload::Whole(bytes), Self::whole());
            }
            Payload::Whole(bytes) => chunks(bytes),
            Payload::Pieces(pieces) => pieces,
        };
        let (sender, progress) = watch::channel(Progress::default());
        let watched = WatchedBody { pieces, progress: sender };
        (Payload::Pieces(Box::pin(watched.into_stream())), Self(progress))
    }

    /// Returns the watch over a body that is taken at once.
    pub(crate) fn whole() -> Self {
        let progress = Progress { is_whole: true, ..Progress::default() };
        Self(watch::channel(progress).1)
    }

    /// Returns what the body broke off with on the host's side.
    pub(crate) fn broken(&self) -> Option<Broken> {
        self.0.borrow().broken.clone()
    }

    /// Waits for an answer as long as the body goes on in time, and then as long as the answer may take.
    pub(crate) async fn answered<T>(
        &mut self,
        deadlines: Deadlines,
        answered: impl Future<Output = T>,
    ) -> Result<T, Late> {
        let mut answered = std::pin::pin!(answered);
        let mut is_gone = false;
        loop {
            // A body whose last byte is sent may be dropped before it says that it has no more.
            let is_whole = self.0.borrow_and_update().is_whole || is_gone;
            let late = if is_whole { Late::Answer } else { Late::Piece };
            let limit = if is_whole { deadlines.answer } else { deadlines.piece };
            let went_on = async {
                if is_whole { std::future::pending().await } else { self.0.changed().await }
            };
            tokio::select! {
                answer = answered.as_mut() => return Ok(answer),
                went_on = timeout(limit, went_on) => {
                    is_gone = went_on.map_err(|_| late)?.is_err();
                }
            }
        }
    }
}

/// Returns a body in chunks.
fn chunks(bytes: Bytes) -> Pieces {
    Box::pin(stream::unfold(bytes, |mut left| async move {
        let next = left.split_to(left.len().min(CHUNK));
        (!next.is_empty()).then_some((Ok(next), left))
    }))
}

impl WatchedBody {
    /// Returns the pieces, each of which is noted.
    fn into_stream(self) -> impl Stream<Item = Piece> {
        stream::unfold(self, |mut watched| async move {
            let next = watched.pieces.next().await;
            watched.progress.send_modify(|progress| match &next {
                // That there is one is all.
                Some(Ok(_)) => {}
                Some(Err(error)) => progress.broken = Some(Broken::of(error)),
                None => progress.is_whole = true,
            });
            Some((next?, watched))
        })
    }
}

impl Broken {
    fn of(error: &io::Error) -> Self {
        Self { is_late: is_late(error), problem: error.to_string() }
    }
}

/// Returns true if time ran out, at any depth of an error.
fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    match error.downcast_ref::<io::Error>() {
        Some(error) => {
            error.kind() == io::ErrorKind::TimedOut
                || error.get_ref().is_some_and(|inner| is_late(inner))
        }
        None => error.source().is_some_and(is_late),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    const DEADLINES: Deadlines =
        Deadlines { piece: Duration::from_secs(10), answer: Duration::from_secs(60) };

    fn pieces_of(body: Payload) -> Pieces {
        match body {
            Payload::Pieces(pieces) => pieces,
            Payload::Whole(_) => panic!("it is handed over in chunks"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_answers_time_begins_when_the_request_is_sent() {
        let body = Payload::Whole(vec![7; 20 * CHUNK].into());
        let (body, mut upload) = Upload::of(body);
        let mut pieces = pieces_of(body);
        let begun = Instant::now();
        // Slow, and longer than an answer may take, but never silent.
        let sent = async {
            let mut bytes = 0;
            while let Some(piece) = pieces.next().await {
                bytes += piece.expect("a piece").len();
                sleep(Duration::from_secs(9)).await;
            }
            assert_eq!(bytes, 20 * CHUNK);
            sleep(Duration::from_secs(59)).await;
        };
        assert_eq!(upload.answered(DEADLINES, sent).await, Ok(()));
        assert_eq!(begun.elapsed(), Duration::from_secs(20 * 9 + 59));
    }

    #[tokio::test(start_paused = true)]
    async fn each_deadline_has_its_name() {
        let silent = || std::future::pending::<()>();
        let (_whole, mut upload) = Upload::of(Payload::Whole(Bytes::from_static(b"{}")));
        let begun = Instant::now();
        assert_eq!(upload.answered(DEADLINES, silent()).await, Err(Late::Answer));
        assert_eq!(begun.elapsed(), DEADLINES.answer);

        let (body, mut upload) = Upload::of(Payload::Whole(vec![7; 2 * CHUNK].into()));
        let mut pieces = pieces_of(body);
        let stuck = async {
            pieces.next().await.expect("a chunk").expect("no error");
            silent().await;
        };
        let begun = Instant::now();
        assert_eq!(upload.answered(DEADLINES, stuck).await, Err(Late::Piece));
        assert_eq!(begun.elapsed(), DEADLINES.piece);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_dropped_behind_its_last_byte_was_sent() {
        let (body, mut upload) = Upload::of(Payload::Whole(vec![7; 2 * CHUNK].into()));
        let mut pieces = pieces_of(body);
        let sent = async {
            for _ in 0..2 {
                pieces.next().await.expect("a chunk").expect("no error");
            }
            drop(pieces);
            sleep(DEADLINES.answer / 2).await;
        };
        assert_eq!(upload.answered(DEADLINES, sent).await, Ok(()));
    }

    #[tokio::test]
    async fn what_breaks_off_on_the_hosts_side_is_told() {
        for (error, is_late) in [
            (io::Error::other(io::Error::from(io::ErrorKind::TimedOut)), true),
            (io::Error::other("gone"), false),
        ] {
            let given: Pieces = Box::pin(stream::iter([Err(error)]));
            let (body, upload) = Upload::of(Payload::Pieces(given));
            assert_eq!(upload.broken(), None);
            pieces_of(body).next().await.expect("an error").expect_err("an error");
            assert_eq!(upload.broken().map(|broken| broken.is_late), Some(is_late));
        }
    }
}
