//! Requests from packs for the tools of one catalog.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::lines::Lines;
use super::means::Gist;
use toolgate_core::identity::ToolId;

/// Weight of a summary's embedding in a row, relative to the mean of its requests' embeddings. Recall at 1 / 5 of 250
/// intents of people, and of 735 prompts that were made of descriptions (Azure, 190 of 235 tools with packs): .563/.852
/// and .854/.993 with a tenth; .550/.854 and .899/.995 with .4; .552/.841 and .914/.995 with .8; without packs
/// .258/.559 and .899/.981.
const OWN: f32 = 0.4;

/// Requests by tool and, if they were embedded, the mean of their embeddings.
#[derive(Debug, Default)]
pub struct Attached {
    tools: HashMap<ToolId, Given>,
    everyday: Option<Arc<[f32]>>,
}

/// Record of how a row was mixed from a summary and requests.
#[derive(Debug, Clone)]
pub struct Mixed {
    gist: Arc<Gist>,
    /// Length of the sum, by which it was divided.
    length: f32,
    /// Lengths of the sums with each kind of requests instead of the mean.
    kind_lengths: Box<[f32]>,
}

/// Requests of one tool, and what is kept of their embeddings.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) lines: Arc<Lines>,
    pub(super) gist: Option<Arc<Gist>>,
}

impl Attached {
    pub(super) fn new(tools: HashMap<ToolId, Given>, everyday: Option<Arc<[f32]>>) -> Self {
        Self { tools, everyday }
    }

    /// Returns the mean embedding of everyday requests, or `None` if they could not be embedded yet.
    #[must_use]
    pub fn everyday(&self) -> Option<&Arc<[f32]>> {
        self.everyday.as_ref()
    }

    /// Returns the mean overlap of a vector with everyday requests, or 0 while their mean is unknown.
    #[must_use]
    pub fn nearness(&self, vector: &[f32]) -> f32 {
        let everyday = self.everyday.as_deref().unwrap_or_default();
        vector.iter().zip(everyday).map(|(value, mean)| value * mean).sum()
    }

    /// Returns the requests for a tool.
    #[must_use]
    pub fn lines(&self, tool: &ToolId) -> Option<&Arc<Lines>> {
        self.tools.get(tool).map(|given| &given.lines)
    }

    /// Returns the number of tools that have requests.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tools.len()
    }

    /// Returns true if all requests were embedded, and the sample of everyday requests too.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_measured = self.tools.is_empty() || self.everyday.is_some();
        is_measured && self.tools.values().all(|given| given.gist.is_some())
    }

    /// Returns a tool's row of the dense index, and how it was mixed. The row is the mean of its requests' embeddings
    /// plus .4 of its summary's, at unit length. A tool without requests has its summary's embedding.
    #[must_use]
    pub fn row<'a>(&self, tool: &ToolId, summary: &'a [f32]) -> (Cow<'a, [f32]>, Option<Mixed>) {
        let Some(Given { gist: Some(gist), .. }) = self.tools.get(tool) else {
            return (Cow::Borrowed(summary), None);
        };
        let mean = &gist.mean;
        let sum = mix(summary, mean);
        let length = length(&sum);
        // Rows must have unit length, whatever an encoder answers.
        if mean.len() == summary.len() && length.is_finite() && length > f32::EPSILON {
            let row = sum.into_iter().map(|value| value / length).collect();
            (Cow::Owned(row), Some(Mixed::of(Arc::clone(gist), length, summary)))
        } else {
            (Cow::Borrowed(summary), None)
        }
    }
}

/// Returns the sum of requests' embeddings and the summary's share.
fn mix(summary: &[f32], requests: &[f32]) -> Vec<f32> {
    summary.iter().zip(requests).map(|(own, requests)| OWN * own + requests).collect()
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|value| value * value).sum::<f32>().sqrt()
}

impl Mixed {
    fn of(gist: Arc<Gist>, length: f32, summary: &[f32]) -> Self {
        let kinds = gist.kinds.chunks_exact(summary.len().max(1));
        let kind_lengths = kinds.map(|kind| self::length(&mix(summary, kind))).collect();
        Self { gist, length, kind_lengths }
    }

    #[cfg(test)]
    pub(crate) fn new(mean: Arc<[f32]>, length: f32) -> Self {
        Self::of(Arc::new(Gist::of_mean(mean)), length, &[])
    }

    #[cfg(test)]
    pub(crate) fn with_kinds(self, kinds: Arc<[f32]>, summary: &[f32]) -> Self {
        let mean = Arc::clone(&self.gist.mean);
        Self::of(Arc::new(Gist { mean, kinds, nearness: 0.0 }), self.length, summary)
    }

    /// Returns the mean embedding of the tool's requests.
    #[must_use]
    pub fn mean(&self) -> &[f32] {
        &self.gist.mean
    }

    /// Returns the cosine of a query and the nearest kind of the tool's requests, mixed with the summary as the row is.
    /// `of_summary` is the cosine of the query and the summary, and `product` is the dot product with the query. `None`
    /// if the kinds are unknown.
    pub fn of_kinds(&self, of_summary: f32, product: impl Fn(&[f32]) -> f32) -> Option<f32> {
        let kinds = self.gist.kinds.chunks_exact(self.gist.mean.len().max(1));
        let lengths = self.kind_lengths.iter().map(|length| length.max(f32::EPSILON));
        let cosines =
            kinds.zip(lengths).map(|(kind, length)| (OWN * of_summary + product(kind)) / length);
        cosines.reduce(f32::max)
    }

    /// Returns about the mean of [`Self::of_kinds`] over everyday requests, whose mean overlap with the summary is
    /// `of_summary`. 0 if the kinds are unknown.
    #[must_use]
    pub fn nearness(&self, of_summary: f32) -> f32 {
        let lengths = self.kind_lengths.iter().sum::<f32>() / self.kind_lengths.len().max(1) as f32;
        if lengths > f32::EPSILON { (OWN * of_summary + self.gist.nearness) / lengths } else { 0.0 }
    }

    /// Returns the cosine of a query and the summary. `overlap` is the cosine of the query and the row, and `with_mean`
    /// is the dot product of the query and [`Self::mean`]. This avoids keeping a second row for the summary.
    #[must_use]
    pub fn of_summary(&self, overlap: f32, with_mean: f32) -> f32 {
        ((overlap * self.length - with_mean) / OWN).clamp(-1.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_made_of_requests_and_the_summary() {
        let id = |name: &str| ToolId {
            server: toolgate_core::identity::ServerName::parse("s").expect("a name"),
            name: toolgate_core::identity::ToolName::parse(name).expect("a name"),
        };
        let lines = Arc::new(Lines::new(["a", "b", "c"].map(str::to_owned).into_iter()));
        let given = |mean: Option<Vec<f32>>| Given {
            lines: Arc::clone(&lines),
            gist: mean.map(|mean| Arc::new(Gist::of_mean(mean.into()))),
        };
        let attached = Attached::new(
            HashMap::from([
                (id("known"), given(Some(vec![0.0, 1.0]))),
                (id("unembedded"), given(None)),
                (id("broken"), given(Some(vec![f32::NAN, 0.0]))),
                (id("short"), given(Some(vec![0.5]))),
                (id("opposite"), given(Some(vec![-OWN, 0.0]))),
            ]),
            None,
        );
        let row = |name: &str| attached.row(&id(name), &[1.0, 0.0]).0.into_owned();
        let length = OWN.hypot(1.0);
        let wanted = [OWN / length, 1.0 / length];
        assert!(row("known").iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6));
        for name in ["unembedded", "broken", "short", "opposite", "unknown"] {
            assert_eq!(row(name), [1.0, 0.0], "{name}");
        }
        let (row, mixed) = attached.row(&id("known"), &[1.0, 0.0]);
        let query = [0.6, 0.8];
        let with_query = |row: &[f32]| row.iter().zip(query).map(|(row, query)| row * query).sum();
        let mixed = mixed.expect("it has requests");
        let own = mixed.of_summary(with_query(&row), with_query(mixed.mean()));
        assert!((own - 0.6).abs() < 1e-6, "{own}");
        assert_eq!(mixed.of_kinds(0.6, |_| 0.0), None, "it has no kinds");
        let mixed = mixed.with_kinds(Arc::from([0.0, 1.0, 1.0, 0.0]), &[1.0, 0.0]);
        let best = mixed.of_kinds(0.6, |kind| kind.iter().zip(query).map(|(a, b)| a * b).sum());
        let wanted = (OWN * 0.6 + 0.8) / OWN.hypot(1.0);
        assert!((best.expect("two kinds") - wanted).abs() < 1e-6, "{best:?}");
    }
}
