//! Memory of one tenant for queries by Route: which tools were called for similar intents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::learn::strength_at;
use toolgate_core::identity::{ToolId, ToolKey};
use toolgate_core::quantized_embedding::{DIMENSIONS_MAX, QuantizedEmbedding};
use toolgate_store::{Exemplar, MemoryChanges, MemoryVersion};

/// Cosines with an intent at which an exemplar starts to count, and at which it counts in full. docs/memory.md has
/// measurements of other values.
const RAMP: (f32, f32) = (0.3, 0.7);

/// Weight of a single call, of at most 1, and number of calls with the weight 1. In between, the weight grows with the
/// logarithm of the calls.
const SINGLE: f32 = 0.6;
const CALLS_ENOUGH: f32 = 8.0;

/// Memory of one tenant at one version.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    version: MemoryVersion,
    tools: BTreeMap<ToolId, Arc<OfTool>>,
    half_life: Duration,
    exemplars: usize,
}

#[derive(Debug, Clone)]
struct OfTool {
    key: ToolKey,
    exemplars: Vec<Exemplar>,
}

/// Evidence for a tool from calls with similar intents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recalled {
    /// Key of the tool.
    pub tool: ToolKey,
    /// Weight of the evidence, above 0 and at most 1.
    pub weight: f32,
    /// Cosine of the intent with the nearest exemplar.
    pub nearest: f32,
}

impl Remembered {
    /// Returns the version of this memory, or 0 if nothing was ever remembered.
    #[must_use]
    pub fn version(&self) -> MemoryVersion {
        self.version
    }

    /// Returns the number of exemplars.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exemplars
    }

    /// Returns true if there are no exemplars.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exemplars == 0
    }

    /// Returns this memory with changes applied. Unchanged tools are shared, not copied.
    #[must_use]
    pub fn with(&self, changes: MemoryChanges, half_life: Duration) -> Self {
        let mut tools = if changes.whole { BTreeMap::new() } else { self.tools.clone() };
        let mut came: BTreeMap<ToolId, Vec<Exemplar>> = BTreeMap::new();
        for (tool, exemplar) in changes.exemplars {
            came.entry(tool).or_default().push(exemplar);
        }
        for (tool, came) in came {
            let known = tools.get(&tool).map_or(&[][..], |of| &of.exemplars);
            let is_kept = |one: &&Exemplar| came.iter().all(|new| new.place != one.place);
            let exemplars = known.iter().filter(is_kept).cloned().chain(came.clone()).collect();
            let key = tool.key();
            tools.insert(tool, Arc::new(OfTool { key, exemplars }));
        }
        let exemplars = tools.values().map(|of| of.exemplars.len()).sum();
        Self { version: changes.version, tools, half_life, exemplars }
    }

    /// Returns the evidence for tools from similar intents, in no particular order.
    #[must_use]
    pub fn recall(&self, intent: &QuantizedEmbedding, now_ms: i64) -> Vec<Recalled> {
        let of_tool = |of: &Arc<OfTool>| self.of_tool(of, intent, now_ms);
        self.tools.values().filter_map(of_tool).collect()
    }

    /// Returns the evidence for one tool. Only the strongest exemplar counts. A sum of all exemplars would favor tools
    /// that are called for many purposes over siblings that are called for just this one, and it would be easier to
    /// manipulate with many callers.
    fn of_tool(&self, of: &OfTool, intent: &QuantizedEmbedding, now_ms: i64) -> Option<Recalled> {
        let mut nearest = f32::NEG_INFINITY;
        let mut weight = 0.0_f32;
        for exemplar in &of.exemplars {
            let Some(cosine) =
                exemplar.intent_embedding.cosine(intent).filter(|cosine| *cosine > RAMP.0)
            else {
                continue;
            };
            nearest = nearest.max(cosine);
            let left = strength_at(exemplar, now_ms, self.half_life);
            weight = weight.max(ramp(cosine) * damped(left));
        }
        (weight > 0.0).then_some(Recalled { tool: of.key, weight, nearest })
    }

    /// Returns the approximate bytes of this memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let width = |of: &Arc<OfTool>| {
            let embeddings = of
                .exemplars
                .iter()
                .map(|one| one.intent_embedding.bytes().len().min(DIMENSIONS_MAX));
            embeddings.sum::<usize>() + of.exemplars.len() * (size_of::<Exemplar>() + 32)
        };
        size_of::<Self>() + self.tools.values().map(|of| width(of) + 256).sum::<usize>()
    }
}

fn ramp(cosine: f32) -> f32 {
    ((cosine - RAMP.0) / (RAMP.1 - RAMP.0)).clamp(0.0, 1.0)
}

/// Returns the weight of a strength, by its logarithm, so that the first call counts most. A fading call loses weight
/// in proportion.
fn damped(strength: f32) -> f32 {
    if strength < 1.0 {
        return SINGLE * strength;
    }
    (SINGLE + (1.0 - SINGLE) * strength.ln() / CALLS_ENOUGH.ln()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::identity::{ServerName, ToolName};

    const DAY: i64 = 86_400_000;
    const MONTH: Duration = Duration::from_secs(30 * 86_400);

    fn tool(name: &str) -> ToolId {
        let server = ServerName::parse("s").expect("a name");
        ToolId { server, name: ToolName::parse(name).expect("a name") }
    }

    /// Returns an intent at this cosine with `[1, 0]`.
    fn at(cosine: f32) -> QuantizedEmbedding {
        QuantizedEmbedding::of([1; 8], &[cosine, (1.0 - cosine * cosine).sqrt()])
            .expect("a direction")
    }

    fn exemplar(place: u8, cosine: f32, strength: f32, owner: u8) -> Exemplar {
        let owner = [owner; 8];
        let intent_embedding = at(cosine);
        let seen_ms = 0;
        let fades_ms = 1;
        let made = 0;
        let voters = vec![];
        Exemplar { place, intent_embedding, strength, seen_ms, fades_ms, owner, made, voters }
    }

    fn remembered(exemplars: Vec<Exemplar>) -> Remembered {
        let exemplars = exemplars.into_iter().map(|one| (tool("t"), one)).collect();
        let changes = MemoryChanges { version: 1, whole: true, exemplars };
        Remembered::default().with(changes, MONTH)
    }

    fn weight(exemplars: Vec<Exemplar>, now_ms: i64) -> f32 {
        let recalled = remembered(exemplars).recall(&at(1.0), now_ms);
        recalled.first().map_or(0.0, |one| one.weight)
    }

    fn is(actual: f32, wanted: f32) {
        assert!((actual - wanted).abs() < 0.02, "{actual}, not {wanted}");
    }

    #[test]
    fn nearer_more_and_fresher_calls_say_more() {
        let one = |cosine, strength| vec![exemplar(0, cosine, strength, 1)];
        is(weight(one(1.0, 1.0), 0), SINGLE);
        is(weight(one(0.5, 1.0), 0), SINGLE / 2.0);
        is(weight(one(0.29, 64.0), 0), 0.0);
        is(weight(one(1.0, CALLS_ENOUGH), 0), 1.0);
        is(weight(one(1.0, 64.0), 0), 1.0);
        is(weight(one(1.0, 1.0), 30 * DAY), SINGLE / 2.0);
        assert!(weight(one(1.0, 2.0), 0) < 2.0 * SINGLE, "by the logarithm");
    }

    #[test]
    fn the_exemplar_that_says_most_decides() {
        let far = || (1..9).map(|place| exemplar(place, 0.5, 1.0, place));
        is(weight(far().collect(), 0), SINGLE / 2.0);
        is(weight(far().chain([exemplar(0, 0.7, 1.0, 1)]).collect(), 0), SINGLE);
    }

    #[test]
    fn changes_are_put_over_what_is_known() {
        let first = remembered(vec![exemplar(0, 1.0, 1.0, 1), exemplar(1, 0.9, 1.0, 1)]);
        let came =
            vec![(tool("t"), exemplar(1, 0.8, 1.0, 1)), (tool("u"), exemplar(0, 1.0, 1.0, 1))];
        let changes = MemoryChanges { version: 2, whole: false, exemplars: came.clone() };
        let second = first.with(changes, MONTH);
        assert_eq!((second.version(), second.len(), first.len()), (2, 3, 2));
        assert!(second.memory_bytes() > first.memory_bytes());
        let changes = MemoryChanges { version: 3, whole: true, exemplars: came };
        assert_eq!(second.with(changes, MONTH).len(), 2);
        let gone = MemoryChanges { version: 4, whole: true, exemplars: vec![] };
        assert!(second.with(gone, MONTH).is_empty());
        let foreign = QuantizedEmbedding::of([2; 8], &[1.0, 0.0]).expect("a direction");
        assert_eq!(second.recall(&foreign, 0), []);
    }
}
