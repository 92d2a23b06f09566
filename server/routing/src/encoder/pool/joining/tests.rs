use super::*;

const GPU: Bounds = Bounds { calls: 2, texts: 64 };

fn flow() -> Flow {
    Flow::new(7)
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("text {i}")).collect()
}

/// Enters a call that must wait.
fn wait(joining: &Joining, count: usize, bounds: Bounds) -> oneshot::Receiver<Answer> {
    match joining.enter(texts(count), flow(), None, bounds) {
        Entry::Later(answer) => answer,
        Entry::Now(_) | Entry::Alone(_) => panic!("there is no place"),
    }
}

fn enter_now(joining: &Joining, flow: Flow, bounds: Bounds) -> bool {
    matches!(joining.enter(texts(1), flow, None, bounds), Entry::Now(_))
}

/// Leaves a place, and returns the number of texts of each call that takes it over.
fn leave(joining: &Joining, bounds: Bounds) -> Vec<usize> {
    joining.leave(flow(), bounds).iter().map(|call| call.texts.len()).collect()
}

#[test]
fn calls_go_at_once_until_the_places_are_taken_by_flow() {
    let joining = Joining::default();
    assert!(enter_now(&joining, flow(), GPU) && enter_now(&joining, flow(), GPU));
    let _waits = wait(&joining, 1, GPU);
    assert!(enter_now(&joining, Flow::new(8), GPU), "another tenant's calls have their own");
}

#[test]
fn what_has_come_goes_together_in_its_order_up_to_the_bound() {
    let joining = Joining::default();
    while enter_now(&joining, flow(), GPU) {}
    // The last of the loop waits, and its caller has left.
    let mut callers: Vec<_> = (0..70).map(|_| wait(&joining, 1, GPU)).collect();
    callers.push(wait(&joining, 3, GPU));
    assert_eq!(leave(&joining, GPU), vec![1; 64]);
    assert_eq!(leave(&joining, GPU), [1, 1, 1, 1, 1, 1, 3]);
    assert!(leave(&joining, GPU).is_empty());
    assert!(leave(&joining, GPU).is_empty());
    assert!(joining.flows.lock().is_empty(), "a flow without calls takes no memory");
}

#[test]
fn a_call_of_more_texts_than_the_bound_goes_by_itself() {
    let cpu = Bounds { calls: 1, texts: 2 };
    let joining = Joining::default();
    assert!(enter_now(&joining, flow(), cpu));
    let _callers = [wait(&joining, 5, cpu), wait(&joining, 1, cpu)];
    assert_eq!(leave(&joining, cpu), [5]);
    assert_eq!(leave(&joining, cpu), [1]);
}

#[test]
fn callers_that_have_left_cost_nothing() {
    let joining = Joining::default();
    let one = Bounds { calls: 1, texts: 64 };
    assert!(enter_now(&joining, flow(), one));
    drop(wait(&joining, 1, one));
    let stays = wait(&joining, 2, one);
    drop(wait(&joining, 3, one));
    assert_eq!(leave(&joining, one), [2]);
    drop(stays);
    assert!(leave(&joining, one).is_empty());
}

#[test]
fn places_go_with_the_workers_but_never_the_last_one() {
    let joining = Joining::default();
    let many = Bounds { calls: 3, texts: 64 };
    let one = Bounds { calls: 1, texts: 64 };
    while enter_now(&joining, flow(), many) {}
    let _waits = wait(&joining, 1, many);
    assert!(leave(&joining, one).is_empty(), "three are under way");
    assert!(leave(&joining, one).is_empty(), "two are under way");
    assert_eq!(leave(&joining, one), [1], "whoever waits is served by the last place");
}

#[test]
fn a_queue_that_is_full_turns_calls_to_their_own_way() {
    let joining = Joining::default();
    let one = Bounds { calls: 1, texts: 64 };
    assert!(enter_now(&joining, flow(), one));
    let _callers: Vec<_> = (0..WAITING_MAX).map(|_| wait(&joining, 1, one)).collect();
    let entry = joining.enter(texts(1), flow(), None, one);
    assert!(matches!(entry, Entry::Alone(texts) if texts.len() == 1));
}

#[test]
fn only_intents_that_someone_waits_for_are_joined() {
    assert!(may_join(1, flow()) && may_join(8, flow()));
    assert!(!may_join(9, flow()), "it is more than one attempt's time is for");
    assert!(!may_join(1, Flow::ALONE));
    assert!(!may_join(1, Flow::yielding(7)), "a registration");
}

#[test]
fn each_caller_gets_its_own_or_the_same_error() {
    let joining = Joining::default();
    let one = Bounds { calls: 1, texts: 64 };
    assert!(enter_now(&joining, flow(), one));
    let mut callers = [wait(&joining, 1, one), wait(&joining, 2, one)];
    let embedded = [1.0, 2.0, 3.0].map(|x| Embedded { vector: vec![x], truncated: false });
    hand_out(Ok(embedded.to_vec()), joining.leave(flow(), one));
    let values = callers.each_mut().map(|caller| {
        let embedded = caller.try_recv().expect("answered").expect("embedded");
        embedded.iter().map(|one| one.vector[0]).collect::<Vec<_>>()
    });
    assert_eq!(values, [vec![1.0], vec![2.0, 3.0]]);
    let mut callers = [wait(&joining, 1, one), wait(&joining, 1, one)];
    hand_out(Err(Error::DeadlineExceeded), joining.leave(flow(), one));
    for caller in &mut callers {
        let answer = caller.try_recv().expect("answered");
        assert!(matches!(answer, Err(Error::DeadlineExceeded)));
    }
}
