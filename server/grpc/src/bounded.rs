//! Size limits of answers, which must fit one message. The router bounds what tools take up in its answers. If the rest
//! is too large, it is cut here, starting with what matters least to an agent. An answer that can't be cut is sent
//! whole or fails: a summary pool without some of its tools would hide them from the model for good.

use prost::Message;
use toolgate_proto::v1;

use toolgate_core::error::Error;
use toolgate_core::method::Method;
use toolgate_routing::router::answers::answer_size::LIMIT;

/// Returns the answer as it is.
///
/// # Errors
/// [`Error::AnswerTooLarge`] if it would be larger than `message_max` bytes.
pub(super) fn whole<R: Message>(method: Method, answer: R, message_max: usize) -> Result<R, Error> {
    let bytes = answer.encoded_len();
    if bytes <= message_max {
        return Ok(answer);
    }
    Err(Error::AnswerTooLarge {
        limit: LIMIT,
        maximum: message_max as u64,
        actual: bytes as u64,
        instead: instead_of(method).into(),
    })
}

/// Returns advice on what to ask for instead of an answer that is too large.
fn instead_of(method: Method) -> &'static str {
    match method {
        Method::GetSummaryPool => {
            "ask with names_only, without render, or for what changed since a revision; no prompt takes that much, so \
             let Route and SearchTools find tools"
        }
        Method::Gate => "ask for the verdicts on fewer calls at a time",
        Method::SearchTools | Method::BatchGetToolSchemas => {
            "ask for fewer tools at a time, or for less detail"
        }
        Method::GetUsage => "ask for fewer hours at a time, or for days",
        _ => "ask for less at a time, or have the limit raised",
    }
}

/// Returns the answer, with less besides its tools if it would be larger than `message_max` bytes.
pub(super) fn route(mut answer: v1::RouteResponse, message_max: usize) -> v1::RouteResponse {
    let is_over = |answer: &v1::RouteResponse| answer.encoded_len() > message_max;
    if is_over(&answer) {
        // GetSummaryPool still has it, because the client's next request names the revision that it holds.
        answer.summary_pool = None;
    }
    if is_over(&answer) {
        answer.ranking = None;
    }
    while is_over(&answer) && !answer.refusals.is_empty() {
        answer.refusals.truncate(answer.refusals.len() / 2);
    }
    while is_over(&answer) && !answer.pending_servers.is_empty() {
        answer.pending_servers.truncate(answer.pending_servers.len() / 2);
    }
    answer
}

/// Returns the answer, with fewer refusals and pending servers if it would be larger than `message_max` bytes.
pub(super) fn search(
    mut answer: v1::SearchToolsResponse,
    message_max: usize,
) -> v1::SearchToolsResponse {
    while answer.encoded_len() > message_max && !answer.refusals.is_empty() {
        answer.refusals.truncate(answer.refusals.len() / 2);
    }
    while answer.encoded_len() > message_max && !answer.pending_servers.is_empty() {
        answer.pending_servers.truncate(answer.pending_servers.len() / 2);
    }
    answer
}

/// Returns the answer, with fewer refusals if it would be larger than `message_max` bytes.
pub(super) fn schemas(
    mut answer: v1::BatchGetToolSchemasResponse,
    message_max: usize,
) -> v1::BatchGetToolSchemasResponse {
    while answer.encoded_len() > message_max && !answer.refusals.is_empty() {
        answer.refusals.truncate(answer.refusals.len() / 2);
    }
    answer
}

/// Returns the answer, with shorter refusals (the last ones first) if it would be larger than `message_max` bytes. Each
/// refusal keeps its code, and allowed calls stay as they are.
pub(super) fn gate(mut answer: v1::GateResponse, message_max: usize) -> v1::GateResponse {
    let mut size = Size { bytes: answer.encoded_len(), most: message_max };
    let verdicts = &mut answer.verdicts;
    size.cut(verdicts, |verdict| verdict.input_schema_json.clear());
    size.cut(verdicts, |verdict| verdict.available_tools.clear());
    size.cut(verdicts, |verdict| verdict.violations.clear());
    size.cut(verdicts, |verdict| verdict.unlock.clear());
    size.cut(verdicts, |verdict| verdict.message.clear());
    answer
}

/// Returns the answer, cut if it would be larger than `message_max` bytes. Shortens the outcomes, the last ones first,
/// and then removes the successful ones. It never fails, because the registration is already stored.
pub(super) fn registered(
    mut answer: v1::RegisterServerResponse,
    message_max: usize,
) -> v1::RegisterServerResponse {
    let mut size = Size { bytes: answer.encoded_len(), most: message_max };
    let outcomes = &mut answer.outcomes;
    size.cut(outcomes, |outcome| outcome.findings.clear());
    size.cut(outcomes, |outcome| outcome.message.clear());
    let least_telling = [
        v1::OutcomeKind::Unchanged,
        v1::OutcomeKind::Removed,
        v1::OutcomeKind::Accepted,
        v1::OutcomeKind::Changed,
    ];
    for kind in least_telling {
        if answer.encoded_len() > message_max {
            answer.outcomes.retain(|outcome| outcome.kind != kind as i32);
        }
    }
    while answer.encoded_len() > message_max && !answer.outcomes.is_empty() {
        answer.outcomes.truncate(answer.outcomes.len() / 2);
    }
    answer
}

/// Returns the answer, with less rule coverage and without the caller's own document if it would be larger than
/// `message_max` bytes. It never fails, because the policy is already set.
pub(super) fn policy_set(
    mut answer: v1::SetPolicyResponse,
    message_max: usize,
) -> v1::SetPolicyResponse {
    let others = v1::SetPolicyResponse { policy: answer.policy.clone(), rules: Vec::new() };
    answer.rules = rules(answer.rules, message_max.saturating_sub(others.encoded_len()));
    if let Some(policy) = answer.policy.as_mut().filter(|_| others.encoded_len() > message_max) {
        policy.document.clear();
    }
    answer
}

/// Returns the rules, without hints and fewer of them if they would take more than `most` bytes.
pub(super) fn rules(mut rules: Vec<v1::RuleCoverage>, most: usize) -> Vec<v1::RuleCoverage> {
    let mut size = Size { bytes: rules.iter().map(in_a_list).sum(), most };
    size.cut(&mut rules, |rule| rule.hint.clear());
    while size.bytes > most
        && let Some(last) = rules.pop()
    {
        size.bytes -= in_a_list(&last);
    }
    rules
}

/// Returns the answer, or a request to read the whole catalog again if it would be larger than `message_max` bytes.
pub(super) fn watched(
    mut answer: v1::WatchCatalogResponse,
    message_max: usize,
) -> v1::WatchCatalogResponse {
    if answer.encoded_len() > message_max {
        answer.servers.clear();
        answer.reset = true;
    }
    answer
}

/// Returns an upper bound on the bytes of one message in a repeated field of another.
pub(super) fn in_a_list<T: Message>(part: &T) -> usize {
    /// Bytes of the field number and of the length.
    const FRAME: usize = 1 + 10;
    FRAME + part.encoded_len()
}

/// Size of an answer, and its limit, in bytes.
struct Size {
    bytes: usize,
    most: usize,
}

impl Size {
    /// Cuts parts of an answer, the last ones first, until it is small enough.
    fn cut<T: Message>(&mut self, parts: &mut [T], cut: impl Fn(&mut T)) {
        for part in parts.iter_mut().rev() {
            if self.bytes <= self.most {
                return;
            }
            let before = part.encoded_len();
            cut(part);
            self.bytes -= before - part.encoded_len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_whole_or_an_error() {
        let pool = |bytes| {
            let pool = v1::SummaryPoolDelta { rendered: "x".repeat(bytes), ..Default::default() };
            let answer = v1::GetSummaryPoolResponse { pool: Some(pool) };
            whole(Method::GetSummaryPool, answer, 100)
        };
        assert!(pool(80).is_ok());
        let error = pool(100).expect_err("it is too large");
        assert!(
            matches!(error, Error::AnswerTooLarge { maximum: 100, actual: 104, .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("names_only"), "{error}");
    }

    #[test]
    fn verdicts_lose_their_schemas_from_the_last_and_keep_their_codes() {
        let refused = |_| v1::GateVerdict {
            code: v1::RefusalCode::ArgumentsInvalid as i32,
            message: "m".repeat(10),
            input_schema_json: "s".repeat(1_000),
            available_tools: vec!["t".repeat(50); 2],
            ..Default::default()
        };
        let allowed = v1::GateVerdict {
            allowed: true,
            arguments_json: "a".repeat(100),
            ..Default::default()
        };
        let mut verdicts: Vec<_> = (0..4).map(refused).collect();
        verdicts.push(allowed.clone());
        let answer = v1::GateResponse { verdicts, catalog_revision: 1 };
        assert_eq!(gate(answer.clone(), answer.encoded_len()), answer);
        let some = gate(answer.clone(), answer.encoded_len() - 1_500);
        let schemas: Vec<_> =
            some.verdicts.iter().map(|v| !v.input_schema_json.is_empty()).collect();
        assert_eq!(schemas, [true, true, false, false, false]);
        assert!(some.verdicts.iter().take(4).all(|v| v.available_tools.len() == 2));
        let least = gate(answer, 150);
        assert!(least.encoded_len() <= 150, "{}", least.encoded_len());
        assert!(least.verdicts[..4].iter().all(|v| v.code != 0));
        assert_eq!(least.verdicts[4], allowed);
    }

    #[test]
    fn registrations_tell_of_what_went_wrong_to_the_last() {
        let outcome = |kind: v1::OutcomeKind, findings| v1::ToolOutcome {
            name: "t".repeat(20),
            kind: kind as i32,
            message: "m".repeat(20),
            findings: vec!["f".repeat(100); findings],
            ..Default::default()
        };
        let outcomes = vec![
            outcome(v1::OutcomeKind::Accepted, 1),
            outcome(v1::OutcomeKind::Unchanged, 1),
            outcome(v1::OutcomeKind::Quarantined, 1),
            outcome(v1::OutcomeKind::Rejected, 0),
        ];
        let answer = v1::RegisterServerResponse { outcomes, ..Default::default() };
        assert_eq!(registered(answer.clone(), answer.encoded_len()), answer);
        let some = registered(answer.clone(), answer.encoded_len() - 100);
        let findings: Vec<_> = some.outcomes.iter().map(|of| of.findings.len()).collect();
        assert_eq!(findings, [1, 1, 0, 0]);
        let least = registered(answer, 60);
        assert!(least.encoded_len() <= 60, "{}", least.encoded_len());
        let kinds: Vec<_> = least.outcomes.iter().map(v1::ToolOutcome::kind).collect();
        assert_eq!(kinds, [v1::OutcomeKind::Quarantined, v1::OutcomeKind::Rejected]);
    }

    #[test]
    fn searches_and_schemas_lose_refusals() {
        let refusals: Vec<_> = (0..8)
            .map(|_| v1::Refusal { unlock: vec!["u".repeat(100)], ..Default::default() })
            .collect();
        let tools = vec![v1::ActiveTool { description: "d".repeat(100), ..Default::default() }];
        let found = v1::SearchToolsResponse {
            tools: tools.clone(),
            refusals: refusals.clone(),
            ..Default::default()
        };
        let fetched = v1::BatchGetToolSchemasResponse { tools, refusals, ..Default::default() };
        let found = search(found, 400);
        assert_eq!((found.tools.len(), found.refusals.len()), (1, 2));
        let fetched = schemas(fetched, 400);
        assert_eq!((fetched.tools.len(), fetched.refusals.len()), (1, 2));
    }

    #[test]
    fn a_policy_that_is_set_is_told_without_an_error() {
        let rule = v1::RuleCoverage { rule: "r".repeat(20), tools: 1, hint: "h".repeat(100) };
        let document = "d".repeat(200);
        let policy = v1::Policy { document, ..Default::default() };
        let answer = v1::SetPolicyResponse { policy: Some(policy), rules: vec![rule; 4] };
        for most in [1_000, 400, 250, 100] {
            let cut = policy_set(answer.clone(), most);
            assert!(cut.encoded_len() <= most, "{most}: {}", cut.encoded_len());
            let document = cut.policy.expect("it is set").document;
            assert_eq!(document.is_empty(), most == 100, "{most}");
        }
    }

    #[test]
    fn a_watcher_reads_anew_what_is_too_long_to_tell() {
        let servers = (0..9).map(|i| format!("server-{i}")).collect();
        let answer =
            v1::WatchCatalogResponse { catalog_revision: 7, servers, ..Default::default() };
        assert_eq!(watched(answer.clone(), answer.encoded_len()), answer);
        let reset = watched(answer.clone(), answer.encoded_len() - 1);
        assert!(reset.reset && reset.servers.is_empty() && reset.catalog_revision == 7);
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
