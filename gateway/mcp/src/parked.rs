//! Calls that wait for a host's answers to come with its next request.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use toolgate_upstream::Question;

use crate::live::Live;

/// Most calls that wait, of one principal and in all.
const PRINCIPAL_MAX: usize = 8;
const ALL_MAX: usize = 1_000;

/// Random bytes of a call's name.
const NAME_BYTES: usize = 18;

/// Calls that wait, by name.
#[derive(Default)]
pub(crate) struct Parked(Arc<Mutex<HashMap<String, Place>>>);

/// Call that waits for answers.
pub(crate) struct Waiting {
    pub(crate) call: Live,
    /// Questions without an answer, under the keys that the host knows them by.
    pub(crate) open: Vec<(String, Question)>,
    /// Number of questions so far.
    pub(crate) asked: usize,
}

struct Place {
    principal: String,
    waiting: Waiting,
    /// Ends the call when nobody comes.
    ending: JoinHandle<()>,
}

impl Waiting {
    /// Adds questions of the server.
    pub(crate) fn ask(&mut self, questions: Vec<Question>) {
        for question in questions {
            self.asked += 1;
            self.open.push((format!("question-{}", self.asked), question));
        }
    }

    /// Returns the open questions, as a host is asked them.
    pub(crate) fn requests(&self) -> Map<String, Value> {
        let request = |question: &Question| serde_json::json!({"method": question.method, "params": question.params});
        self.open.iter().map(|(key, question)| (key.clone(), request(question))).collect()
    }

    /// Hands answers to the server. Questions without one stay open.
    pub(crate) fn answer(&mut self, mut answers: Map<String, Value>) {
        for (key, question) in std::mem::take(&mut self.open) {
            match answers.remove(&key).filter(Value::is_object) {
                // The call may have ended.
                Some(answer) => drop(question.answer.send(Ok(answer))),
                None => self.open.push((key, question)),
            }
        }
    }
}

impl Parked {
    /// Keeps a call that waits, and returns its name, which nobody can guess. After `patience` it is cancelled.
    ///
    /// # Errors
    /// The call and the problem, if as many wait as may.
    pub(crate) fn park(
        &self,
        principal: &str,
        waiting: Waiting,
        patience: Duration,
    ) -> Result<String, (Waiting, String)> {
        let mut bytes = [0; NAME_BYTES];
        if getrandom::fill(&mut bytes).is_err() {
            return Err((waiting, "the system has no random numbers".to_owned()));
        }
        let name = URL_SAFE_NO_PAD.encode(bytes);
        let mut places = self.0.lock();
        let own = places.values().filter(|place| place.principal == principal).count();
        if own >= PRINCIPAL_MAX || places.len() >= ALL_MAX {
            let problem = format!("{own} calls wait for answers of this host already");
            return Err((waiting, problem));
        }
        let ending = tokio::spawn(end_later(Arc::downgrade(&self.0), name.clone(), patience));
        let place = Place { principal: principal.to_owned(), waiting, ending };
        places.insert(name.clone(), place);
        Ok(name)
    }

    /// Takes a call out, for good: an answer that comes twice finds nothing.
    pub(crate) fn take(&self, name: &str) -> Option<Waiting> {
        let place = self.0.lock().remove(name)?;
        place.ending.abort();
        Some(place.waiting)
    }

    /// Returns the number of calls that wait.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

async fn end_later(places: Weak<Mutex<HashMap<String, Place>>>, name: String, patience: Duration) {
    tokio::time::sleep(patience).await;
    if let Some(places) = places.upgrade() {
        let place = places.lock().remove(&name);
        // Outside of the lock: the call is cancelled here.
        drop(place);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::oneshot;
    use toolgate_upstream::NoAnswer;

    use super::*;

    const KEPT: Duration = Duration::from_secs(5 * 60);

    type Answered = oneshot::Receiver<Result<Value, NoAnswer>>;

    fn question() -> (Question, Answered) {
        let (answer, answered) = oneshot::channel();
        let method = "elicitation/create".to_owned();
        (Question { method, params: json!({"message": "?"}), answer }, answered)
    }

    fn waiting() -> (Waiting, Answered) {
        let (question, answered) = question();
        let mut waiting = Waiting { call: Live::pending(), open: Vec::new(), asked: 0 };
        waiting.ask(vec![question]);
        (waiting, answered)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_found_once_and_not_after_its_time() {
        let parked = Parked::default();
        let (first, mut answered) = waiting();
        let name = parked.park("a", first, KEPT).map_err(|(_, problem)| problem).expect("a name");
        let mut found = parked.take(&name).expect("the call");
        assert!(parked.take(&name).is_none(), "an answer that comes twice");
        found.answer(Map::from_iter([("question-1".to_owned(), json!({"action": "accept"}))]));
        assert_eq!(answered.try_recv().expect("an answer"), Ok(json!({"action": "accept"})));
        let (second, answered) = waiting();
        let name = parked.park("a", second, KEPT).map_err(|(_, problem)| problem).expect("a name");
        tokio::time::sleep(KEPT + Duration::from_secs(1)).await;
        assert!(parked.take(&name).is_none());
        assert!(answered.await.is_err(), "the server is told that nobody answers");
    }

    #[tokio::test]
    async fn one_principal_can_not_take_all_places() {
        let parked = Parked::default();
        for _ in 0..PRINCIPAL_MAX {
            assert!(parked.park("a", waiting().0, KEPT).is_ok());
        }
        let Err((_, problem)) = parked.park("a", waiting().0, KEPT) else {
            panic!("no place is left")
        };
        assert!(problem.contains("8 calls"), "{problem}");
        for number in 0..ALL_MAX - PRINCIPAL_MAX {
            assert!(parked.park(&number.to_string(), waiting().0, KEPT).is_ok());
        }
        assert!(parked.park("z", waiting().0, KEPT).is_err());
        assert_eq!(parked.len(), ALL_MAX);
    }

    #[tokio::test]
    async fn questions_without_an_answer_stay_open_under_their_key() {
        let (mut waiting, mut first) = waiting();
        let (question, mut second) = question();
        waiting.ask(vec![question]);
        let answers = json!({"question-2": {"a": 1}, "question-1": "no object", "other": {}});
        let Value::Object(answers) = answers else { panic!("an object") };
        waiting.answer(answers);
        assert_eq!(second.try_recv().expect("an answer"), Ok(json!({"a": 1})));
        assert!(first.try_recv().is_err());
        assert_eq!(waiting.requests().keys().collect::<Vec<_>>(), ["question-1"]);
    }
}
