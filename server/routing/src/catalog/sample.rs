//! Spot checks of stored embeddings: some are drawn, embedded again by a caller with an encoder, and compared.

use std::collections::{HashMap, HashSet};

use super::plan::text_hash;
use crate::encoder::Embedded;
use crate::encoder::pool::{COMPARED_COSINE_MIN, cosine};
use toolgate_store::{ContentHash, TenantContent};

/// Minimum number of embeddings to draw, if there are as many.
pub const DRAWN_MIN: usize = 64;

/// Stored embedding that was drawn for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// Summary that was embedded.
    pub text: String,
    /// SHA-256 of the summary.
    pub text_hash: ContentHash,
    /// Tool that has the summary.
    tool: String,
    stored: Vec<f32>,
}

/// Stored embedding that does not match its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// SHA-256 of the summary.
    pub text_hash: ContentHash,
    /// Description of the problem and its place.
    pub problem: String,
}

/// Draws one in `one_in` of the tenant's embeddings made by the encoder with this fingerprint, but at least
/// [`DRAWN_MIN`]. Each call draws at random.
#[must_use]
pub fn draw(content: &TenantContent, fingerprint: &str, one_in: usize) -> Vec<Drawn> {
    let stored = content.embeddings.iter().filter(|(by, _)| by == fingerprint);
    let stored: HashMap<_, _> = stored.map(|(_, one)| (one.text_hash, &one.vector)).collect();
    let mut seen = HashSet::new();
    let drawn = |tool: &toolgate_store::StoredTool| {
        let tool = &tool.record;
        let text_hash = text_hash(&tool.summary);
        let stored = stored.get(&text_hash).filter(|_| seen.insert(text_hash))?;
        Some(Drawn {
            text: tool.summary.clone(),
            text_hash,
            tool: format!("{}/{}", tool.server.as_str(), tool.name.as_str()),
            stored: (*stored).clone(),
        })
    };
    let mut all: Vec<Drawn> = content.catalog.all_tools().filter_map(drawn).collect();
    fastrand::shuffle(&mut all);
    all.truncate(all.len().div_ceil(one_in.max(1)).max(DRAWN_MIN));
    all
}

/// Returns the drawn embeddings that differ from `embedded`, the encoder's current answers in the same order. The limit
/// is the one that applies to the answers of encoder workers.
#[must_use]
pub fn wrong(drawn: &[Drawn], embedded: &[Embedded]) -> Vec<Wrong> {
    let judge = |(drawn, now): (&Drawn, &Embedded)| {
        let found = cosine(&drawn.stored, &now.vector);
        // A NaN fails this comparison.
        let is_right = drawn.stored.len() == now.vector.len() && found >= COMPARED_COSINE_MIN;
        let Drawn { tool, text_hash, .. } = drawn;
        let problem = format!(
            "tool {tool}: the stored embedding of its summary is damaged: its cosine to the encoder's is {found:.3}, \
             not {COMPARED_COSINE_MIN} or more"
        );
        (!is_right).then_some(Wrong { text_hash: *text_hash, problem })
    };
    drawn.iter().zip(embedded).filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::check::{ToolCheck, ToolSettings, Work};
    use toolgate_config::LimitsConfig;
    use toolgate_core::identity::ServerName;
    use toolgate_store::{StoredCatalog, StoredEmbedding, StoredTool};

    fn content(tools: usize) -> TenantContent {
        let server = ServerName::parse("s").expect("a name");
        let settings: HashMap<String, ToolSettings> = HashMap::new();
        let limits = LimitsConfig::default();
        let work = Work::default();
        let check = ToolCheck {
            server: &server,
            settings: &settings,
            limits: &limits,
            is_trusted: false,
            work,
        };
        let tool = |n: usize| {
            let text =
                format!(r#"{{"name": "t{n}", "description": "Shows {n}.", "inputSchema": {{}}}}"#);
            StoredTool { record: check.check(n, &text).expect("a tool"), summary_revision: 1 }
        };
        let tools: Vec<_> = (0..tools).map(tool).collect();
        let of = |by: &str, text: &str| {
            let vector = vec![0.6, 0.8];
            (by.to_owned(), StoredEmbedding { text_hash: text_hash(text), vector })
        };
        let both = |tool: &StoredTool| ["ours", "other"].map(|by| of(by, &tool.record.summary));
        let embeddings = tools.iter().flat_map(both).collect();
        let catalog = StoredCatalog { tools, ..StoredCatalog::default() };
        TenantContent { catalog, embeddings, ..TenantContent::default() }
    }

    #[test]
    fn a_share_is_drawn_and_not_less_than_some() {
        for (tools, one_in, wanted) in
            [(10, 100, 10), (500, 100, DRAWN_MIN), (500, 5, 100), (500, 1, 500), (90, 0, 90)]
        {
            let drawn = draw(&content(tools), "ours", one_in);
            let texts: HashSet<_> = drawn.iter().map(|one| one.text.as_str()).collect();
            assert_eq!((drawn.len(), texts.len()), (wanted, wanted), "{tools}, 1 in {one_in}");
        }
        assert_eq!(draw(&content(10), "nobody's", 1), []);
        let [one, other] = [(); 2].map(|()| draw(&content(500), "ours", 100));
        assert_ne!(one, other, "others each time");
    }

    #[test]
    fn what_differs_is_named() {
        let drawn = draw(&content(1), "ours", 1);
        let now = |vector: &[f32]| [Embedded { vector: vector.to_vec(), truncated: false }];
        assert_eq!(wrong(&drawn, &now(&[0.6, 0.8])), []);
        assert_eq!(wrong(&drawn, &now(&[0.7, 0.72])), [], "another number format or device");
        for other in [&[0.8, -0.6][..], &[-0.6, -0.8], &[f32::NAN, 0.8], &[0.0, 0.0], &[1.0]] {
            let found = wrong(&drawn, &now(other));
            assert!(found[0].problem.starts_with("tool s/t0: the stored embedding"), "{found:?}");
        }
    }
}
