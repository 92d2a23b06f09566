//! Embeds everything that an evaluation needs: each text once, in batches large enough to keep the encoder
//! busy.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use toolgate_core::error::Error;
use toolgate_routing::catalog::plan::text_hash;
use toolgate_routing::encoder::{Encoder, Flow};
use toolgate_routing::router::background::Background;
use toolgate_store::ContentHash;

/// Texts in one call to the encoder, which packs them into batches of its own.
const CHUNK: usize = 256;

/// Hears how many texts of how many are embedded.
pub type Progress = dyn Fn(usize, usize) + Send + Sync;

/// The encoders of both sides of a search, which a model's prefixes tell apart.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// Embeds summaries.
    pub passages: &'a dyn Encoder,
    /// Embeds queries.
    pub queries: &'a dyn Encoder,
}

/// How long texts took that were embedded in batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Batches {
    /// How many, each once.
    pub texts: usize,
    /// All of them.
    pub time: Duration,
}

impl Batches {
    /// The time of one text in microseconds; 0 when there was none.
    #[must_use]
    pub fn micros_a_text(&self) -> f64 {
        self.time.as_secs_f64() * 1e6 / self.texts.max(1) as f64
    }
}

/// Embeddings by hash of their text.
#[derive(Debug, Default)]
pub struct Embeddings {
    summaries: HashMap<ContentHash, Vec<f32>>,
    queries: HashMap<ContentHash, Vec<f32>>,
    truncated: HashSet<ContentHash>,
    /// How long the summaries took.
    pub of_summaries: Batches,
    /// How long the queries took.
    pub of_queries: Batches,
}

/// Texts by their hashes, each once.
type Distinct<'a> = Vec<(ContentHash, &'a str)>;

impl Embeddings {
    /// Embeds summaries and queries.
    ///
    /// # Errors
    /// As [`Encoder::embed`].
    pub async fn of(
        sides: Sides<'_>,
        summaries: &[&str],
        queries: &[&str],
        progress: &Progress,
    ) -> Result<Self, Error> {
        let summaries = distinct(summaries);
        let queries = distinct(queries);
        let of_summaries = summaries.len();
        let all = summaries.len() + queries.len();
        let mut made = Self::default();
        progress(0, all);
        let began = Instant::now();
        made.summaries =
            made.embed(sides.passages, &summaries, &|done| progress(done, all)).await?;
        made.of_summaries = Batches { texts: summaries.len(), time: began.elapsed() };
        let began = Instant::now();
        let queries_done = |done| progress(of_summaries + done, all);
        made.queries = made.embed(sides.queries, &queries, &queries_done).await?;
        made.of_queries = Batches { texts: queries.len(), time: began.elapsed() };
        Ok(made)
    }

    async fn embed(
        &mut self,
        encoder: &dyn Encoder,
        texts: &Distinct<'_>,
        done: &(dyn Fn(usize) + Send + Sync),
    ) -> Result<HashMap<ContentHash, Vec<f32>>, Error> {
        let mut vectors = HashMap::with_capacity(texts.len());
        for chunk in texts.chunks(CHUNK) {
            let wanted = chunk.iter().map(|(_, text)| (*text).to_owned()).collect();
            let embedded = encoder.embed(wanted, Flow::ALONE, None).await?;
            for ((hash, _), one) in chunk.iter().zip(embedded) {
                vectors.insert(*hash, one.vector);
                if one.truncated {
                    self.truncated.insert(*hash);
                }
            }
            done(vectors.len());
        }
        Ok(vectors)
    }

    /// The summaries', as a shard is built from.
    #[must_use]
    pub fn vectors(&self) -> &HashMap<ContentHash, Vec<f32>> {
        &self.summaries
    }

    /// The embedding of a query; `None` when it was not embedded.
    #[must_use]
    pub fn vector(&self, query: &str) -> Option<&[f32]> {
        self.queries.get(&text_hash(query)).map(Vec::as_slice)
    }

    /// Those of the background that tells when no tool fits; none where it was not embedded.
    #[must_use]
    pub fn background(&self) -> Vec<Vec<f32>> {
        let vectors = Background::texts().iter().filter_map(|text| self.vector(text));
        vectors.map(<[f32]>::to_vec).collect()
    }

    /// Whether the encoder did not read all of the text.
    #[must_use]
    pub fn is_truncated(&self, text: &str) -> bool {
        self.truncated.contains(&text_hash(text))
    }
}

fn distinct<'a>(texts: &[&'a str]) -> Distinct<'a> {
    let mut seen = HashSet::new();
    let hashed = texts.iter().map(|text| (text_hash(text), *text));
    hashed.filter(|(hash, _)| seen.insert(*hash)).collect()
}
