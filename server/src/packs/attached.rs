//! What packs have for the tools of one catalog.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::lines::Lines;
use crate::identity::ToolId;

/// Requests and, where they were embedded, the mean of their embeddings, by tool.
#[derive(Debug, Default)]
pub struct Attached(HashMap<ToolId, Given>);

/// What one tool has.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) lines: Arc<Lines>,
    pub(super) mean: Option<Arc<[f32]>>,
}

impl Attached {
    pub(super) fn new(tools: HashMap<ToolId, Given>) -> Self {
        Self(tools)
    }

    /// The requests for a tool.
    #[must_use]
    pub fn lines(&self, tool: &ToolId) -> Option<&Arc<Lines>> {
        self.0.get(tool).map(|given| &given.lines)
    }

    /// Tools that have requests.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether all requests were embedded.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.values().all(|given| given.mean.is_some())
    }

    /// Whether a tool has a row that is made of requests.
    #[must_use]
    pub fn has_row(&self, tool: &ToolId) -> bool {
        self.0.get(tool).is_some_and(|given| given.mean.is_some())
    }

    /// A tool's row of the dense index: the mean of its summary's embedding and its requests', at unit length; the
    /// summary's where there are none.
    #[must_use]
    pub fn row<'a>(&self, tool: &ToolId, summary: &'a [f32]) -> Cow<'a, [f32]> {
        let Some(Given { lines, mean: Some(mean) }) = self.0.get(tool) else {
            return Cow::Borrowed(summary);
        };
        let count = lines.all().len() as f32;
        let sum: Vec<f32> =
            summary.iter().zip(&**mean).map(|(own, mean)| own + count * mean).collect();
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        // Rows must be of unit length, whatever an encoder answers.
        if mean.len() == summary.len() && length.is_finite() && length > f32::EPSILON {
            Cow::Owned(sum.into_iter().map(|value| value / length).collect())
        } else {
            Cow::Borrowed(summary)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_mean_of_summary_and_requests() {
        let id = |name: &str| ToolId {
            server: crate::identity::ServerName::parse("s").expect("a name"),
            name: crate::identity::ToolName::parse(name).expect("a name"),
        };
        let lines = Arc::new(Lines::new(["a", "b", "c"].map(str::to_owned).into_iter()));
        let given = |mean: Option<Vec<f32>>| Given {
            lines: Arc::clone(&lines),
            mean: mean.map(Into::into),
        };
        let attached = Attached::new(HashMap::from([
            (id("known"), given(Some(vec![0.0, 1.0]))),
            (id("unembedded"), given(None)),
            (id("broken"), given(Some(vec![f32::NAN, 0.0]))),
            (id("short"), given(Some(vec![0.5]))),
            (id("opposite"), given(Some(vec![-1.0 / 3.0, 0.0]))),
        ]));
        let row = |name: &str| attached.row(&id(name), &[1.0, 0.0]).into_owned();
        let length = 10.0_f32.sqrt();
        assert!(
            row("known")
                .iter()
                .zip([1.0 / length, 3.0 / length])
                .all(|(a, b)| (a - b).abs() < 1e-6)
        );
        for name in ["unembedded", "broken", "short", "opposite", "unknown"] {
            assert_eq!(row(name), [1.0, 0.0], "{name}");
        }
    }
}
