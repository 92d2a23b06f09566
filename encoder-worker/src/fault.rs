//! Fault injection for tests with real processes. It exists in debug builds only.
//!
//! `TOOLGATE_FAULT` is a kind, followed by conditions after commas:
//!
//! - `garbage` (unit vectors unrelated to the text), `lie` (the same, except for texts that came before the fault was
//!   on, like a worker that has learnt the texts it is checked with), `slow:MILLISECONDS`, `hang` (never answers),
//!   `fail` (every device call fails), `panic`;
//! - `after=N`: on after the Nth batch, warm-up and canaries included;
//! - `while=PATH`: on as long as the file exists.
//!
//! Examples: `garbage,while=/tmp/garbage` and `slow:300,after=100`.

use std::collections::HashSet;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use toolgate_encoder::{Backend, BackendError, Batch, BatchLimits};

const ENVIRONMENT: &str = "TOOLGATE_FAULT";

/// Most texts that a lying worker remembers.
const LEARNT_MAX: usize = 100_000;

/// Fault with the conditions under which it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    kind: Kind,
    after: u64,
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Garbage,
    Lie,
    Slow(Duration),
    Hang,
    Fail,
    Panic,
}

/// Reads the fault that the environment requests.
pub(super) fn from_environment() -> Result<Option<Fault>, String> {
    let Some(text) = std::env::var_os(ENVIRONMENT).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let fault = parse(&text.to_string_lossy()).map_err(|part| {
        format!("{ENVIRONMENT}: {part:?} is neither a fault nor a condition of one")
    })?;
    tracing::warn!(?fault, "this worker is made to fail");
    Ok(Some(fault))
}

fn parse(text: &str) -> Result<Fault, String> {
    let mut parts = text.split(',');
    let kind = kind(parts.next().unwrap_or_default())?;
    let mut fault = Fault { kind, after: 0, file: None };
    for part in parts {
        match part.split_once('=') {
            Some(("after", count)) => fault.after = count.parse().map_err(|_| part.to_owned())?,
            Some(("while", path)) => fault.file = Some(path.into()),
            _ => return Err(part.to_owned()),
        }
    }
    Ok(fault)
}

fn kind(text: &str) -> Result<Kind, String> {
    Ok(match text.split_once(':').unwrap_or((text, "")) {
        ("garbage", "") => Kind::Garbage,
        ("lie", "") => Kind::Lie,
        ("hang", "") => Kind::Hang,
        ("fail", "") => Kind::Fail,
        ("panic", "") => Kind::Panic,
        ("slow", millis) => {
            Kind::Slow(Duration::from_millis(millis.parse().map_err(|_| text.to_owned())?))
        }
        _ => return Err(text.to_owned()),
    })
}

impl Fault {
    pub(super) fn wrap(self, inner: Box<dyn Backend>) -> Box<dyn Backend> {
        Box::new(Faulty { inner, fault: self, batches: 0, learnt: HashSet::new() })
    }

    fn is_on(&self, batches: u64) -> bool {
        batches > self.after && self.file.as_ref().is_none_or(|file| file.exists())
    }
}

struct Faulty {
    inner: Box<dyn Backend>,
    fault: Fault,
    batches: u64,
    /// Tokens of texts that came while the fault was off.
    learnt: HashSet<Vec<u32>>,
}

impl Faulty {
    fn learn(&mut self, batch: &Batch) {
        for text in texts(batch) {
            if self.learnt.len() < LEARNT_MAX {
                self.learnt.insert(text.to_vec());
            }
        }
    }
}

/// Returns the tokens of each text.
fn texts(batch: &Batch) -> impl Iterator<Item = &[u32]> {
    batch.bounds().windows(2).map(|bounds| &batch.token_ids()[bounds[0]..bounds[1]])
}

impl Backend for Faulty {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn batch_tokens(&self) -> usize {
        self.inner.batch_tokens()
    }

    fn prepare(&mut self, limits: BatchLimits) -> Result<(), BackendError> {
        self.inner.prepare(limits)
    }

    fn settle(&mut self) {
        self.inner.settle();
    }

    fn rouse(&mut self) {
        self.inner.rouse();
    }

    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        self.batches += 1;
        let mut vectors = self.inner.forward(batch)?;
        if self.fault.is_on(self.batches) {
            match self.fault.kind {
                Kind::Garbage => vectors.iter_mut().for_each(|vector| spoil(vector, self.batches)),
                Kind::Lie => {
                    let strangers = texts(batch).zip(&mut vectors);
                    strangers
                        .filter(|(text, _)| !self.learnt.contains(*text))
                        .for_each(|(_, vector)| spoil(vector, self.batches));
                }
                Kind::Slow(time) => thread::sleep(time),
                Kind::Hang => loop {
                    thread::park();
                },
                Kind::Fail => return Err(BackendError(format!("by {ENVIRONMENT}"))),
                Kind::Panic => panic!("by {ENVIRONMENT}"),
            }
        } else if self.fault.kind == Kind::Lie {
            self.learn(batch);
        }
        Ok(vectors)
    }
}

/// Overwrites a vector with random values of length 1.
fn spoil(vector: &mut [f32], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    vector.iter_mut().for_each(|value| *value = random.f32() - 0.5);
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read() {
        let want =
            |kind, after, file: Option<&str>| Fault { kind, after, file: file.map(Into::into) };
        for (text, want) in [
            ("garbage", want(Kind::Garbage, 0, None)),
            ("lie,while=/x", want(Kind::Lie, 0, Some("/x"))),
            ("slow:250,after=3", want(Kind::Slow(Duration::from_millis(250)), 3, None)),
            ("hang,while=/x y,after=1", want(Kind::Hang, 1, Some("/x y"))),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
        for text in ["", "slow", "slow:x", "garbage:1", "garbage,after=x", "garbage,when=/x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn garbage_is_finite_and_of_length_one() {
        let mut vector = vec![0.0; 384];
        spoil(&mut vector, 1);
        let length: f32 = vector.iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
    }
}
