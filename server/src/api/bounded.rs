//! Route's answer within one message. The router bounds what tools take of it; what stands beside them goes here where
//! it is too much, what matters least to an agent first.

use prost::Message as _;
use toolgate_proto::v1;

/// Returns the answer with less beside its tools, if it would be larger than `message_max` bytes.
pub(super) fn route(mut answer: v1::RouteResponse, message_max: usize) -> v1::RouteResponse {
    let is_over = |answer: &v1::RouteResponse| answer.encoded_len() > message_max;
    if is_over(&answer) {
        // GetSummaryPool has it: the client still says the revision that it holds.
        answer.summary_pool = None;
    }
    if is_over(&answer) {
        answer.ranking = None;
    }
    while is_over(&answer) && !answer.refusals.is_empty() {
        answer.refusals.truncate(answer.refusals.len() / 2);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(bytes: usize) -> v1::RouteResponse {
        let text = || "x".repeat(bytes);
        let refusal = |_| v1::Refusal { message: text(), ..Default::default() };
        let candidate = v1::RankedTool { model_name: text(), ..Default::default() };
        v1::RouteResponse {
            active_tools: vec![v1::ActiveTool { description: text(), ..Default::default() }],
            summary_pool: Some(v1::SummaryPoolDelta { rendered: text(), ..Default::default() }),
            ranking: Some(v1::Ranking { candidates: vec![candidate], ..Default::default() }),
            refusals: (0..8).map(refusal).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn what_stands_beside_the_tools_goes_first() {
        let whole = large(100);
        assert_eq!(route(whole.clone(), whole.encoded_len()), whole);
        let without_pool = route(whole.clone(), whole.encoded_len() - 1);
        assert!(without_pool.summary_pool.is_none() && without_pool.ranking.is_some());
        let least = route(whole, 400);
        assert!(least.encoded_len() <= 400, "{}", least.encoded_len());
        assert_eq!((least.active_tools.len(), least.refusals.len()), (1, 2));
        assert!(least.ranking.is_none());
    }
}
