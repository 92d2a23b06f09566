//! Comparisons of workers' answers with this process. Some answers are drawn at random and compared after the call has
//! been answered. Only this finds a worker that answers checks correctly and lies to all other callers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;

use super::canaries::KnownText;
use super::member::Member;
use super::reference::{COMPARED_COSINE_MIN, Reference};
use crate::encoder::EncoderMetrics;
use crate::encoder::{Embedded, Encoder, Flow};

/// Maximum answers that wait. They are compared one by one: if this process is too slow, fewer are compared.
const WAITING_MAX: usize = 8;

/// Maximum bytes of a text that is compared. The model reads less of any text.
const TEXT_MAX: usize = 16 * 1024;

/// Maximum time for one comparison in this process.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Flow of comparisons, which wait for each other and for no other texts.
const FLOW: u64 = u64::MAX;

/// Sampler of answers to compare.
pub(super) struct Comparisons {
    /// Rate of comparisons: one text in this many.
    one_in: usize,
    waiting: Sender<ComparedText>,
    metrics: EncoderMetrics,
}

/// A worker's answer for one text.
struct ComparedText {
    member: Arc<Member>,
    text: String,
    vector: Vec<f32>,
}

/// Task that compares answers with those of a trusted encoder.
struct Comparing {
    encoder: Arc<dyn Encoder>,
    reference: Arc<Reference>,
    metrics: EncoderMetrics,
}

impl Comparisons {
    /// Starts a task that compares one text in `one_in` with `encoder`, until `stop`. Needs a tokio runtime.
    pub(super) fn start(
        one_in: usize,
        encoder: Arc<dyn Encoder>,
        reference: Arc<Reference>,
        metrics: EncoderMetrics,
        stop: &CancellationToken,
    ) -> Self {
        let (sender, receiver) = channel(WAITING_MAX);
        let comparing = Comparing { encoder, reference, metrics: metrics.clone() };
        tokio::spawn(stop.clone().run_until_cancelled_owned(comparing.run(receiver)));
        Self { one_in, waiting: sender, metrics }
    }

    /// Queues one of the request's texts for comparison, at random. The probability grows with the number of texts, so
    /// that a worker that lies only about large requests is found just as soon. Does not wait.
    pub(super) fn offer(&self, member: &Arc<Member>, texts: &[String], embedded: &[Embedded]) {
        if !is_drawn(self.one_in, texts.len()) {
            return;
        }
        let drawn = fastrand::usize(..texts.len());
        let Some((text, one)) = texts.get(drawn).zip(embedded.get(drawn)) else { return };
        if text.len() > TEXT_MAX {
            return;
        }
        let member = Arc::clone(member);
        let vector = one.vector.clone();
        if self.waiting.try_send(ComparedText { member, text: text.clone(), vector }).is_err() {
            self.metrics.compared("skipped");
        }
    }
}

/// Returns true, at random, if a request of `texts` texts is to be compared. On average, one text in `one_in` is.
fn is_drawn(one_in: usize, texts: usize) -> bool {
    fastrand::usize(..one_in.max(1)) < texts
}

impl Comparing {
    async fn run(self, mut answers: Receiver<ComparedText>) {
        while let Some(answer) = answers.recv().await {
            let result = self.compare(answer).await;
            self.metrics.compared(result);
        }
    }

    async fn compare(&self, answer: ComparedText) -> &'static str {
        let ComparedText { member, text, vector } = answer;
        let deadline = Some(Instant::now() + TIME_MAX);
        let embedded = self.encoder.embed(vec![text.clone()], Flow::new(FLOW), deadline).await;
        // This process is busy or stopping, which says nothing about the worker.
        let Some(trusted) = embedded.ok().and_then(|mut embedded| embedded.pop()) else {
            return "skipped";
        };
        let trusted = KnownText { text, vector: trusted.vector, cosine_min: COMPARED_COSINE_MIN };
        if self.reference.agree(&trusted, &vector) {
            return "same";
        }
        member.contradicted(trusted);
        "different"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_drawn_in_proportion_to_their_texts() {
        assert!((0..1_000).all(|_| is_drawn(64, 64) && is_drawn(64, 100)));
        // The bounds are 12 standard deviations wide.
        for (texts, least, most) in [(1, 155, 626), (64, 23_350, 26_650)] {
            let drawn = (0..100_000).filter(|_| is_drawn(256, texts)).count();
            assert!((least..most).contains(&drawn), "{drawn} with {texts} texts");
        }
    }
}
