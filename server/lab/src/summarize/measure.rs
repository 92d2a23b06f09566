//! Comparison of new summaries with the original ones by how well they find tools. It uses labelled queries, and for
//! tools without labels a generated intent. The ranking is the router's.

use std::collections::{BTreeSet, HashMap};

use crate::eval::bootstrap::Bootstrap;
use crate::eval::embeddings::Embeddings;
use crate::eval::measured::Measured;
use crate::eval::metrics::{CUTS, Measure};
use crate::eval::ranking::{Answer, Ranked};
use crate::eval::sample::Sample;
use crate::eval::stock::Stock;
use crate::eval::{self, LabelledQuery, Progress, Sides};
use crate::lint::boilerplate::Boilerplate;
use crate::lint::intent::{KnownNames, intent};
use crate::lint::tool::Tool;
use crate::lint::trial::{Probes, Settled, Trial, Wanted, Written};
use toolgate_core::error::Error;

/// Measures that are computed for the labelled queries.
pub const MEASURES: [Measure; 6] = [
    Measure::Recall(CUTS[0]),
    Measure::Recall(CUTS[1]),
    Measure::Recall(CUTS[2]),
    Measure::Recall(CUTS[3]),
    Measure::Recall(CUTS[4]),
    Measure::Ndcg,
];

/// Results of a measurement.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Results for the labelled queries with the original summaries; `None` without labels.
    pub before: Option<Measured>,
    /// Results for the labelled queries with the kept summaries; `None` without labels.
    pub after: Option<Measured>,
    /// Summaries that were kept.
    pub kept: Written,
    /// Tools whose new summaries were dropped because the tools would be harder to find.
    pub left_out: BTreeSet<String>,
}

/// Measures summaries. With `keep_better`, drops those that make their tools harder to find.
///
/// # Errors
/// Returns [`Error::EncoderUnavailable`], or an internal error.
pub async fn measure(
    stock: &Stock,
    written: &Written,
    queries: &[LabelledQuery],
    keep_better: bool,
    encoders: Sides<'_>,
    progress: &Progress,
) -> Result<Tried, Error> {
    let tools = Tool::all(stock);
    let probes = probes(&tools, queries, keep_better);
    let summaries = tools.iter().map(|tool| &tool.record.summary).chain(written.values());
    let summaries: Vec<&str> = summaries.map(String::as_str).collect();
    let texts = eval::texts(probes.queries.iter().map(|query| query.text.as_str()));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embeddings = Embeddings::of(encoders, &summaries, &texts, progress).await?;
    let dimensions = encoders.passages.dimensions();
    let trial = Trial { stock, embeddings: &embeddings, dimensions };
    let before = trial.rank(&trial.snapshot(&Written::new())?, &probes.queries)?;
    let Settled { kept, ranked } = if keep_better {
        trial.settle(written.clone(), &probes, &before, Wanted::NoLoss)?
    } else {
        let ranked = trial.rank(&trial.snapshot(written)?, &probes.queries)?;
        Settled { kept: written.clone(), ranked }
    };
    let left_out = written.keys().filter(|place| !kept.contains_key(place));
    Ok(Tried {
        before: measured(&before[..queries.len()], queries),
        after: measured(&ranked[..queries.len()], queries),
        left_out: left_out.map(|place| probes.ids[*place].clone()).collect(),
        kept,
    })
}

/// Returns the means over the labelled queries, or `None` if there are none.
fn measured(ranked: &[Ranked], queries: &[LabelledQuery]) -> Option<Measured> {
    let answer = |ranked: &Ranked| Answer { ranked: ranked.clone(), ..Answer::default() };
    let answers: Vec<Answer> = ranked.iter().map(answer).collect();
    let queries: Vec<&LabelledQuery> = queries.iter().collect();
    let sample = Sample::of(&answers, &queries, &MEASURES, LabelledQuery::is_labelled);
    Measured::of(&sample, &Bootstrap { resamples: 0, seed: 0 })
}

/// Collects the labelled queries. With `with_intents`, adds a generated intent for each tool that none of them expects.
fn probes(tools: &[Tool<'_>], queries: &[LabelledQuery], with_intents: bool) -> Probes {
    let ids: Vec<String> = tools.iter().map(Tool::id).collect();
    let mut of_tool: Vec<Vec<usize>> = vec![Vec::new(); ids.len()];
    let places: HashMap<&str, usize> =
        ids.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
    for (number, query) in queries.iter().enumerate() {
        for place in query.relevant.iter().filter_map(|id| places.get(id.as_str())) {
            of_tool[*place].push(number);
        }
    }
    let mut queries = queries.to_vec();
    if with_intents {
        let names = KnownNames::of(tools);
        let boilerplate = Boilerplate::of(tools);
        let unasked = of_tool.iter_mut().enumerate().filter(|(_, asked)| asked.is_empty());
        for (place, asked) in unasked {
            let tool = &tools[place];
            let text = intent(tool, &boilerplate.own(tool), &names);
            asked.push(queries.len());
            let relevant = [ids[place].clone()].into();
            queries.push(LabelledQuery { text, relevant, ..LabelledQuery::default() });
        }
    }
    Probes { ids, queries, of_tool }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tool::samples::stock;

    #[test]
    fn tools_that_no_query_asks_for_are_asked_for_by_their_intent() {
        let stock =
            stock(&[("a_tool", "Sends letters to people."), ("b_tool", "Reads old books.")]);
        let tools = Tool::all(&stock);
        let labelled = LabelledQuery {
            text: "q".into(),
            relevant: ["s/a_tool".into(), "s/x".into()].into(),
            ..LabelledQuery::default()
        };
        let bare = probes(&tools, std::slice::from_ref(&labelled), false);
        assert_eq!((bare.queries.len(), &bare.of_tool), (1, &vec![vec![0], vec![]]));
        let asked = probes(&tools, &[labelled], true);
        assert_eq!(asked.of_tool, [vec![0], vec![1]]);
        assert_eq!(asked.queries[1].text, "read old books");
    }
}
