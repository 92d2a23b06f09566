//! Answers within one message. The router bounds what tools take of Route's; what stands beside them goes here where
//! it is too much, what matters least to an agent first. A summary pool without some of its tools would hide them from
//! the model for good, so it is whole or an error.

use prost::Message as _;
use toolgate_proto::v1;

use crate::error::Error;
use crate::router::answer_size::LIMIT;

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

/// Returns the answer as it is.
///
/// # Errors
/// [`Error::AnswerTooLarge`] if it would be larger than `message_max` bytes.
pub(super) fn pool(
    answer: v1::GetSummaryPoolResponse,
    message_max: usize,
) -> Result<v1::GetSummaryPoolResponse, Error> {
    let bytes = answer.encoded_len();
    if bytes <= message_max {
        return Ok(answer);
    }
    Err(Error::AnswerTooLarge {
        limit: LIMIT,
        maximum: message_max as u64,
        actual: bytes as u64,
        instead: "ask with names_only, without render, or for what changed since a revision; no prompt takes that \
            much, so let Route and SearchTools find tools",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_whole_or_an_error() {
        let pool_of = |bytes| v1::GetSummaryPoolResponse {
            pool: Some(v1::SummaryPoolDelta { rendered: "x".repeat(bytes), ..Default::default() }),
        };
        assert_eq!(pool(pool_of(80), 100).expect("it fits"), pool_of(80));
        let error = pool(pool_of(100), 100).expect_err("it is too large");
        assert!(
            matches!(error, Error::AnswerTooLarge { maximum: 100, actual: 104, .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("names_only"), "{error}");
    }

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
