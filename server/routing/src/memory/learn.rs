//! Learning from one observed call: it changes the exemplars of its tool, within limits that keep one caller from
//! filling them. Pure functions.

use std::time::Duration;

use super::observed::Observation;
use toolgate_core::quantized_embedding::QuantizedEmbedding;
use toolgate_store::{Day, Exemplar, PrincipalKey};

/// Maximum exemplars of one tool.
pub const EXEMPLARS_A_TOOL: usize = 32;

/// Maximum exemplars of one tool made by calls of one principal. It does not apply to unknown callers, who can't be
/// told apart.
pub const SHARE: usize = 8;

/// Maximum exemplars of one tool made in a day by one principal, or by all unknown callers together.
pub const MADE_A_DAY: usize = 8;

/// Minimum cosine at which an intent counts as the same as an exemplar.
const SAME: f32 = 0.95;

/// Maximum calls of one day that count for one exemplar, each by a different principal.
const VOTES_A_DAY: usize = 16;

/// Maximum strength of an exemplar, in calls. More calls say nothing new.
const STRENGTH_MAX: f32 = 64.0;

/// Strength, in calls, at which an exemplar is forgotten.
const FADED: f32 = 1.0 / 16.0;

/// Principal of unknown callers, for example while authentication is off.
pub const NOBODY: PrincipalKey = [0; 8];

const MILLIS_OF_A_DAY: i64 = 86_400_000;

/// Effect of an observed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// New exemplar made of the call.
    Made,
    /// Call counted for an existing exemplar.
    Merged,
    /// Call ignored because its caller has reached a limit.
    Ignored,
}

impl Outcome {
    /// Returns the name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Merged => "merged",
            Self::Ignored => "ignored",
        }
    }
}

/// Updates a tool's exemplars with an observed call. After `half_life`, a call counts half.
pub fn learn(exemplars: &mut Vec<Exemplar>, seen: &Observation, half_life: Duration) -> Outcome {
    let today = day(seen.at_ms);
    let nearest = exemplars
        .iter_mut()
        .filter_map(|one| Some((one.intent_embedding.cosine(&seen.intent_embedding)?, one)));
    let nearest = nearest.max_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((_, same)) = nearest.filter(|(cosine, _)| *cosine >= SAME) {
        return vote(same, seen, half_life);
    }
    let own = |one: &&Exemplar| one.owner == seen.principal;
    if exemplars.iter().filter(own).filter(|one| one.made == today).count() >= MADE_A_DAY {
        return Outcome::Ignored;
    }
    let Some(place) = place_for(exemplars, seen) else { return Outcome::Ignored };
    exemplars.retain(|one| one.place != place);
    let seen_ms = seen.at_ms;
    let owner = seen.principal;
    let voters = vec![seen.principal];
    let made = Exemplar {
        place,
        intent_embedding: seen.intent_embedding.clone(),
        strength: 1.0,
        seen_ms,
        fades_ms: fades_ms(seen_ms, 1.0, half_life),
        owner,
        made: today,
        voters,
    };
    exemplars.push(made);
    exemplars.sort_by_key(|one| one.place);
    Outcome::Made
}

/// Counts a call for an exemplar. Only one call of a principal counts per day.
fn vote(exemplar: &mut Exemplar, seen: &Observation, half_life: Duration) -> Outcome {
    let is_new_day = day(seen.at_ms) > day(exemplar.seen_ms);
    let has_voted = exemplar.voters.contains(&seen.principal);
    if !is_new_day && (has_voted || exemplar.voters.len() >= VOTES_A_DAY) {
        return Outcome::Ignored;
    }
    if is_new_day {
        exemplar.voters.clear();
    }
    exemplar.voters.push(seen.principal);
    let left = strength_at(exemplar, seen.at_ms, half_life);
    exemplar.strength = (left + 1.0).min(STRENGTH_MAX);
    exemplar.seen_ms = exemplar.seen_ms.max(seen.at_ms);
    exemplar.fades_ms = fades_ms(exemplar.seen_ms, exemplar.strength, half_life);
    Outcome::Merged
}

/// Returns the place for a new exemplar, or `None` if there is none. If the principal has reached its share, it is the
/// place of its own exemplar that fades first. Otherwise it is a free place, or else the place of another encoder's
/// exemplar, or else that of the exemplar that fades first of all.
fn place_for(exemplars: &[Exemplar], seen: &Observation) -> Option<u8> {
    let first_to_fade = |of: &dyn Fn(&&Exemplar) -> bool| {
        exemplars.iter().filter(of).min_by_key(|one| one.fades_ms).map(|one| one.place)
    };
    let is_own = |one: &&Exemplar| {
        one.owner == seen.principal && is_alike(&one.intent_embedding, &seen.intent_embedding)
    };
    if seen.principal != NOBODY && exemplars.iter().filter(is_own).count() >= SHARE {
        return first_to_fade(&is_own);
    }
    let places = 0..EXEMPLARS_A_TOOL as u8;
    let mut free = places.filter(|place| exemplars.iter().all(|one| one.place != *place));
    let is_foreign = |one: &&Exemplar| !is_alike(&one.intent_embedding, &seen.intent_embedding);
    free.next().or_else(|| first_to_fade(&is_foreign)).or_else(|| first_to_fade(&|_| true))
}

fn is_alike(one: &QuantizedEmbedding, other: &QuantizedEmbedding) -> bool {
    one.encoder() == other.encoder()
}

/// Returns the strength of an exemplar at a time, in calls.
pub(super) fn strength_at(exemplar: &Exemplar, now_ms: i64, half_life: Duration) -> f32 {
    let age_ms = now_ms.saturating_sub(exemplar.seen_ms).max(0);
    let half_lives = age_ms as f64 / half_life.as_millis().max(1) as f64;
    exemplar.strength * (-half_lives).exp2() as f32
}

/// Returns the time at which `strength` calls have faded to [`FADED`], in milliseconds since 1970 (UTC).
fn fades_ms(seen_ms: i64, strength: f32, half_life: Duration) -> i64 {
    let half_lives = f64::from((strength / FADED).log2());
    #[expect(clippy::cast_possible_truncation, reason = "stops at the largest integer")]
    let lasts_ms = (half_lives * half_life.as_millis() as f64) as i64;
    seen_ms.saturating_add(lasts_ms)
}

fn day(at_ms: i64) -> Day {
    Day::try_from(at_ms.div_euclid(MILLIS_OF_A_DAY)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use toolgate_core::identity::{ServerName, ToolId, ToolName};

    const MONTH: Duration = Duration::from_secs(30 * 86_400);

    /// Returns a call with a distinct intent for each number. All intents are orthogonal.
    fn seen(intent: u8, caller: u8, day: i64) -> Observation {
        let mut embedding = vec![0.0; 256];
        embedding[usize::from(intent)] = 1.0;
        of([1; 8], &embedding, caller, day)
    }

    fn of(encoder: [u8; 8], embedding: &[f32], caller: u8, day: i64) -> Observation {
        let tool = ToolId {
            server: ServerName::parse("s").expect("a name"),
            name: ToolName::parse("t").expect("a name"),
        };
        let intent_embedding = QuantizedEmbedding::of(encoder, embedding).expect("a direction");
        Observation { tool, intent_embedding, principal: [caller; 8], at_ms: day * MILLIS_OF_A_DAY }
    }

    fn learn_all(calls: impl Iterator<Item = Observation>) -> Vec<Exemplar> {
        let mut exemplars = Vec::new();
        for call in calls {
            learn(&mut exemplars, &call, MONTH);
        }
        exemplars
    }

    #[test]
    fn the_same_intent_counts_once_a_day_and_caller() {
        let mut exemplars = Vec::new();
        let mut learn = |call| learn(&mut exemplars, &call, MONTH);
        assert_eq!(learn(seen(0, 1, 5)), Outcome::Made);
        assert_eq!(learn(seen(0, 1, 5)), Outcome::Ignored, "the same handle gated twice, say");
        assert_eq!(learn(seen(0, 2, 5)), Outcome::Merged);
        assert_eq!(learn(seen(0, 1, 6)), Outcome::Merged);
        assert_eq!(learn(seen(0, 1, 5)), Outcome::Ignored, "a replica that comes late");
        let [one] = &exemplars[..] else { panic!("{exemplars:?}") };
        let a_day_later = 2.0 * (-1.0_f32 / 30.0).exp2() + 1.0;
        assert!((one.strength - a_day_later).abs() < 1e-5, "{one:?}");
        assert_eq!((one.seen_ms, one.owner, one.voters.len()), (6 * MILLIS_OF_A_DAY, [1; 8], 1));
    }

    #[test]
    fn near_intents_are_the_same_one() {
        let near = |x: f32| of([1; 8], &[x, (1.0 - x * x).sqrt()], 1, 0);
        let learned = |x| learn_all([near(1.0), near(x)].into_iter()).len();
        assert_eq!((learned(0.97), learned(0.9)), (1, 2));
    }

    #[test]
    fn one_caller_has_a_share() {
        let flood = (0..200_u8).map(|call| seen(call, 1, i64::from(call) / 20));
        let exemplars = learn_all((200..220_u8).map(|call| seen(call, call, 0)).chain(flood));
        let own = exemplars.iter().filter(|one| one.owner == [1; 8]).count();
        assert_eq!((own, exemplars.len()), (SHARE, 20 + SHARE));
        // Unknown callers may fill all places, but not in one day.
        let days = |count: u8| (0..count).map(|call| seen(call, 0, i64::from(call) / 10));
        assert_eq!(learn_all(days(10)).len(), MADE_A_DAY);
        assert_eq!(learn_all(days(200)).len(), EXEMPLARS_A_TOOL);
    }

    #[test]
    fn what_fades_first_makes_room_and_other_encoders_before_it() {
        let full: Vec<_> = (0..32).map(|call| seen(call, call + 1, i64::from(call))).collect();
        let exemplars = learn_all(full.iter().cloned().chain([seen(99, 99, 40)]));
        assert_eq!(exemplars.len(), EXEMPLARS_A_TOOL);
        assert_eq!((exemplars[0].owner, exemplars[1].owner), ([99; 8], [2; 8]));
        let foreign = of([2; 8], &[1.0], 98, 39);
        let calls = full.into_iter().skip(1).chain([foreign, seen(99, 99, 40)]);
        let exemplars = learn_all(calls);
        assert_eq!(exemplars.len(), EXEMPLARS_A_TOOL);
        assert!(exemplars.iter().all(|one| one.intent_embedding.encoder() == [1; 8]));
    }

    #[test]
    fn a_call_is_forgotten_after_four_half_lives_and_more_calls_later() {
        let days = |calls: u8| {
            let exemplars = learn_all((0..calls).map(|caller| seen(0, caller + 1, 0)));
            exemplars[0].fades_ms / MILLIS_OF_A_DAY
        };
        assert_eq!((days(1), days(2), days(4)), (120, 150, 180));
    }

    proptest! {
        #[test]
        fn bounds_hold_whatever_comes(
            calls in prop::collection::vec((any::<u8>(), 0_u8..4, 0_i64..20), 0..300),
        ) {
            let observed = calls.into_iter().map(|(intent, caller, day)| seen(intent, caller, day));
            let exemplars = learn_all(observed);
            prop_assert!(exemplars.len() <= EXEMPLARS_A_TOOL);
            for (at, one) in exemplars.iter().enumerate() {
                prop_assert!(usize::from(one.place) < EXEMPLARS_A_TOOL);
                prop_assert!(exemplars[..at].iter().all(|other| other.place < one.place));
                prop_assert!(one.strength >= 1.0 && one.strength <= STRENGTH_MAX);
                prop_assert!(one.voters.len() <= VOTES_A_DAY && one.fades_ms > one.seen_ms);
            }
            for caller in 1..4 {
                let own = exemplars.iter().filter(|one| one.owner == [caller; 8]).count();
                prop_assert!(own <= SHARE);
            }
        }
    }
}
