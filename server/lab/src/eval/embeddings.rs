//! Embeddings of everything that an evaluation needs. Each text is embedded once, in batches large enough to keep the
//! encoder busy.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use toolgate_core::error::Error;
use toolgate_routing::catalog::plan::text_hash;
use toolgate_routing::encoder::{Encoder, Flow};
use toolgate_routing::router::ranking::background::Background;
use toolgate_store::ContentHash;

/// Number of texts in one call to the encoder, which splits them into batches of its own.
const CHUNK: usize = 256;

/// Callback that receives the number of embedded texts and the number of all texts.
pub type Progress = dyn Fn(usize, usize) + Send + Sync;

/// Encoders of both sides of a search, which differ by the model's prefixes.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// Encoder of the summaries.
    pub passages: &'a dyn Encoder,
    /// Encoder of the queries.
    pub queries: &'a dyn Encoder,
}

/// Time that texts took to embed in batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Batches {
    /// Number of texts, without duplicates.
    pub texts: usize,
    /// Time for all texts together.
    pub time: Duration,
}

impl Batches {
    /// Returns the time per text in microseconds; 0 without texts.
    #[must_use]
    pub fn micros_a_text(&self) -> f64 {
        self.time.as_secs_f64() * 1e6 / self.texts.max(1) as f64
    }
}

/// Embeddings by the hash of their text.
#[derive(Debug, Default)]
pub struct Embeddings {
    summaries: HashMap<ContentHash, Vec<f32>>,
    queries: HashMap<ContentHash, Vec<f32>>,
    truncated: HashSet<ContentHash>,
    /// Time that the summaries took to embed.
    pub of_summaries: Batches,
    /// Time that the queries took to embed.
    pub of_queries: Batches,
}

/// Texts with their hashes, without duplicates.
type Distinct<'a> = Vec<(ContentHash, &'a str)>;

impl Embeddings {
    /// Embeds summaries and queries.
    ///
    /// # Errors
    /// Same as [`Encoder::embed`].
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

    /// Returns the embeddings of the summaries, from which a shard is built.
    #[must_use]
    pub fn vectors(&self) -> &HashMap<ContentHash, Vec<f32>> {
        &self.summaries
    }

    /// Returns the embedding of a query; `None` if it was not embedded.
    #[must_use]
    pub fn vector(&self, query: &str) -> Option<&[f32]> {
        self.queries.get(&text_hash(query)).map(Vec::as_slice)
    }

    /// Returns the embeddings of the background requests, which show when no tool fits. They are empty if they were not
    /// embedded.
    #[must_use]
    pub fn background(&self) -> Vec<Vec<f32>> {
        let vectors = Background::texts().iter().filter_map(|text| self.vector(text));
        vectors.map(<[f32]>::to_vec).collect()
    }

    /// Returns true if the encoder did not read all of the text.
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
