//! Course of one request: it goes to the best worker, to a second one if the first is late, and to another if one
//! failed, as far as the budget allows. If no worker is left, this process embeds the texts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Inner;
use super::member::{Failed, Load, Member};
use super::roster::tier_name;
use crate::encoder::{Embedded, Flow};
use toolgate_core::error::Error;
use toolgate_encoder::estimated_tokens as tokens_of;

/// Number of texts for which the attempt timeout is meant. More texts get more time.
const TEXTS_IN_TIME: usize = 8;

/// Returns the maximum time that a worker has for `texts` texts. `timeout` is the time for up to 8 texts.
pub(super) fn usual_time(timeout: Duration, texts: usize) -> Duration {
    let times = texts.div_ceil(TEXTS_IN_TIME).max(1);
    timeout.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
}

/// Maximum time for texts without a deadline.
const NO_DEADLINE: Duration = Duration::from_secs(120);

/// Request for embeddings.
pub(super) struct Ask {
    texts: Vec<String>,
    flow: Flow,
    tokens: u64,
    deadline: Option<Instant>,
    until: Instant,
}

/// Embeddings, and the name of the tier that made them.
struct PoolAnswer {
    embedded: Vec<Embedded>,
    by: &'static str,
}

/// Progress of one request over its attempts.
#[derive(Default)]
struct Progress {
    tried: Vec<Arc<Member>>,
    hedged: bool,
    failure: Option<Error>,
}

/// Encoder that is asked in addition to a late worker.
enum Second {
    Worker(Load),
    Here,
}

impl Ask {
    pub(super) fn new(texts: Vec<String>, flow: Flow, deadline: Option<Instant>) -> Self {
        let tokens = tokens_of(&texts);
        let until = deadline.unwrap_or_else(|| Instant::now() + NO_DEADLINE);
        Self { texts, flow, tokens, deadline, until }
    }

    /// Returns true if the request has at most 8 texts. A user waits for such a request, and its time shows how fast
    /// workers are.
    fn is_short(&self) -> bool {
        self.texts.len() <= TEXTS_IN_TIME
    }
}

impl Inner {
    /// Embeds the texts of one request, at most `CHUNK`.
    pub(super) async fn answer(&self, ask: &Ask) -> Result<Vec<Embedded>, Error> {
        self.budget.earn(Instant::now());
        let mut progress = Progress::default();
        while let Some(load) = self.next(ask, &progress) {
            match self.race(ask, load, &mut progress).await {
                Ok(answer) => {
                    self.metrics.answered(answer.by);
                    return Ok(answer.embedded);
                }
                Err(failure) => progress.failure = Some(failure),
            }
        }
        let answer = self.fall_back(ask, progress.failure).await;
        self.metrics.answered(answer.as_ref().map_or("none", |answer| answer.by));
        Ok(answer?.embedded)
    }

    /// Returns the next worker to ask. The first one is free; each one after it counts as a retry.
    fn next(&self, ask: &Ask, progress: &Progress) -> Option<Load> {
        let now = Instant::now();
        if now >= ask.until {
            return None;
        }
        let load = self.roster.pick(ask.tokens, &progress.tried)?;
        if progress.tried.is_empty() {
            return Some(load);
        }
        if !self.budget.spend(now) {
            self.metrics.over_budget("retry");
            return None;
        }
        self.metrics.failover("worker");
        Some(load)
    }

    /// Asks a worker, and a second encoder as well if the worker is late.
    async fn race(
        &self,
        ask: &Ask,
        load: Load,
        progress: &mut Progress,
    ) -> Result<PoolAnswer, Error> {
        progress.tried.push(Arc::clone(&load.member));
        let first = self.attempt(ask, load);
        tokio::pin!(first);
        if !self.hedge || progress.hedged || !ask.is_short() {
            return first.await;
        }
        tokio::select! {
            answer = &mut first => return answer,
            () = tokio::time::sleep(self.latency.hedge_delay()) => {}
        }
        let Some(second) = self.second(ask, progress) else { return first.await };
        let second = self.ask_second(ask, second);
        tokio::pin!(second);
        // The first answer wins. After a failure, the other answer is waited for.
        let (answer, winner) = tokio::select! {
            answer = &mut first => match answer {
                Err(_) => (second.await, "second"),
                answer => (answer, "first"),
            },
            answer = &mut second => match answer {
                Err(_) => (first.await, "first"),
                answer => (answer, "second"),
            },
        };
        self.metrics.hedge(if answer.is_ok() { winner } else { "none" });
        answer
    }

    fn second(&self, ask: &Ask, progress: &mut Progress) -> Option<Second> {
        let load = self.roster.pick(ask.tokens, &progress.tried);
        if load.is_none() && self.in_process.is_none() {
            return None;
        }
        if !self.budget.spend(Instant::now()) {
            self.metrics.over_budget("hedge");
            return None;
        }
        progress.hedged = true;
        let Some(load) = load else { return Some(Second::Here) };
        progress.tried.push(Arc::clone(&load.member));
        Some(Second::Worker(load))
    }

    async fn ask_second(&self, ask: &Ask, second: Second) -> Result<PoolAnswer, Error> {
        match second {
            Second::Worker(load) => self.attempt(ask, load).await,
            Second::Here => self.fall_back(ask, None).await,
        }
    }

    async fn attempt(&self, ask: &Ask, load: Load) -> Result<PoolAnswer, Error> {
        let began = Instant::now();
        let within = self.time_for(ask);
        let embedded =
            load.member.embed(ask.texts.clone(), ask.flow, &self.reference, within).await?;
        if ask.is_short() {
            self.latency.record(began.elapsed());
        }
        if let Some(comparisons) = &self.comparisons {
            comparisons.offer(&load.member, &ask.texts, &embedded);
        }
        Ok(PoolAnswer { embedded, by: tier_name(load.member.tier()) })
    }

    /// Returns the time for one attempt: all the remaining time if no other encoder could answer, or else half of it.
    fn time_for(&self, ask: &Ask) -> Duration {
        let left = ask.until.saturating_duration_since(Instant::now());
        let alone = self.in_process.is_none() && self.roster.serving() <= 1;
        let share = if alone { left } else { left / 2 };
        share.min(usual_time(self.attempt_timeout, ask.texts.len()))
    }

    /// Embeds in this process because no worker is left. The budget does not apply, because this costs the workers
    /// nothing.
    async fn fall_back(&self, ask: &Ask, failure: Option<Error>) -> Result<PoolAnswer, Error> {
        let Some(encoder) = &self.in_process else {
            return Err(match failure {
                _ if Instant::now() >= ask.until => Error::DeadlineExceeded,
                Some(failure) => failure,
                None => Error::EncoderUnavailable("no encoder worker is in use".into()),
            });
        };
        if failure.is_some() {
            self.metrics.failover("in_process");
        }
        let embedded = encoder.embed(ask.texts.clone(), ask.flow, ask.deadline).await?;
        Ok(PoolAnswer { embedded, by: "in_process" })
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        Self::EncoderUnavailable(Box::new(failed))
    }
}
