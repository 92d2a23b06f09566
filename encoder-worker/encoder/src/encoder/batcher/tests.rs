//! Tests of forming batches, at times that the test chooses.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;

use super::super::Flow;
use super::super::formed::Left;
use super::super::request::{Wanted, WantedTurn};
use super::*;
use crate::model_dir::ModelDir;
use crate::tiny_model::{TinyModel, ids_of};
use crate::tokenize::TextTokenizer;

type Answer = oneshot::Receiver<Result<Vec<Embedding>, EmbedError>>;

/// Batcher without a device, whose batches are formed one by one.
struct Bench {
    batcher: Batcher,
    counters: Arc<Counters>,
    /// Receivers of the waiting callers.
    answers: Vec<Answer>,
    _events: Sender<Event>,
}

impl Bench {
    /// Creates a batcher with these batch sizes in tokens: while one flow waits, and while several do.
    fn new(of_one: usize, of_several: usize) -> Self {
        Self::on(&TinyModel::new(), of_one, of_several)
    }

    /// Creates one whose tokenizer finds no tokens in an empty text, and one in each letter.
    fn with_bad_texts(max_batch_tokens: usize) -> Self {
        let model = TinyModel::new();
        model.change("tokenizer.json", &json!({"post_processor": null, "version": "1.0"}));
        Self::on(&model, max_batch_tokens, max_batch_tokens)
    }

    fn on(model: &TinyModel, of_one: usize, of_several: usize) -> Self {
        let dir = ModelDir::open(model.path()).expect("the directory is right");
        let tokenizer = TextTokenizer::load(&dir).expect("the tokenizer is right");
        let (sender, events) = channel();
        let counters = Arc::new(Counters::default());
        let tokenizers =
            Tokenizers::start(tokenizer, 1, &sender, &counters).expect("the threads start");
        let handover = Arc::new(Handover::default());
        let mut batcher = Batcher::new(events, tokenizers, handover, of_one, Arc::clone(&counters));
        batcher.budget_of_several = BatchBudget::new(OF_FLOWS, of_several);
        Self { batcher, counters, answers: Vec::new(), _events: sender }
    }

    fn ask(&mut self, flow: u64, texts: usize) {
        self.accept(flow, vec!["a".into(); texts]);
        self.tokenize();
    }

    /// Accepts a request, and does nothing for it.
    fn accept(&mut self, flow: u64, texts: Vec<String>) {
        self.accept_in(WantedTurn::Of(Flow::new(flow)), texts);
    }

    fn accept_in(&mut self, turn: WantedTurn, texts: Vec<String>) {
        let (reply, answer) = oneshot::channel();
        let wanted = Wanted { texts, deadline: None, turn };
        let left = Arc::<Left>::default();
        self.batcher.accept(Request::new(wanted, reply, left, self.counters.extra_place()));
        self.answers.push(answer);
    }

    /// Tokenizes as far ahead as it is done.
    fn tokenize(&mut self) {
        self.batcher.send_to_tokenizers();
        self.wait_for_tokenizers();
    }

    fn wait_for_tokenizers(&mut self) {
        while self.batcher.tokenizing > 0 {
            self.batcher.take_events().expect("it does not end");
        }
    }

    /// Forms the batch at `now`, embeds it at once, and returns its number of texts.
    fn texts_at(&mut self, now: Instant) -> usize {
        self.tokenize();
        let (formed, offer) = self.batcher.plan(now);
        self.batcher.offer = offer;
        self.batcher.count_offer_as_taken();
        let texts = formed.slots.len();
        let result = Ok(vec![Vec::new(); texts]);
        let ran = Ran { formed, at: now, took: Duration::ZERO, result };
        self.batcher.take_results(ran).expect("it does not end");
        texts
    }
}

#[test]
fn batches_stay_short_for_a_while_after_several_flows_waited() {
    let busy = 1;
    let quiet = 2;
    let text = ids_of("a").len();
    let mut bench = Bench::new(4 * text, 2 * text);
    let start = Instant::now();
    let millis = |millis| start + Duration::from_millis(millis);
    bench.ask(busy, 100);
    assert_eq!(bench.texts_at(start), 4, "nobody else was there");
    bench.ask(quiet, 1);
    assert_eq!(bench.texts_at(millis(10)), 2, "both wait");
    assert_eq!(bench.texts_at(millis(13)), 2, "only the busy one does");
    assert_eq!(bench.texts_at(millis(109)), 2);
    assert_eq!(bench.texts_at(millis(110)), 4, "for a while nobody else was there");
    bench.ask(quiet, 1);
    assert_eq!(bench.texts_at(millis(120)), 2);
    assert_eq!(bench.texts_at(millis(219)), 2);
    assert_eq!(bench.texts_at(millis(220)), 4);
}

#[test]
fn texts_are_tokenized_for_two_batches() {
    let text = ids_of("a").len();
    let mut bench = Bench::new(64 * text, 64 * text);
    bench.ask(1, 1_000);
    // Of three tokens each, estimated as two: 384 tokens.
    assert_eq!(bench.batcher.active[0].ahead(), 192);
    assert_eq!(bench.texts_at(Instant::now()), 64);
    bench.tokenize();
    assert_eq!(bench.batcher.active[0].ahead(), 128, "true lengths count once they are known");
    assert_eq!(bench.texts_at(Instant::now()), 64);
    bench.tokenize();
    assert_eq!(bench.batcher.active[0].ahead(), 160);
}

#[test]
fn texts_are_tokenized_for_batches_of_either_size() {
    let text = ids_of("a").len();
    for (of_one, of_several) in [(64, 4), (4, 64)] {
        let mut bench = Bench::new(of_one * text, of_several * text);
        bench.ask(1, 1_000);
        assert_eq!(bench.batcher.active[0].ahead(), 192, "{of_one} and {of_several} texts");
    }
}

#[test]
fn a_request_that_goes_first_and_waits_lets_no_others_be_tokenized_further_ahead() {
    let text = ids_of("a").len();
    let mut bench = Bench::new(4 * text, 4 * text);
    bench.accept_in(WantedTurn::First, vec!["a".into(); 6]);
    bench.tokenize();
    assert_eq!(bench.texts_at(Instant::now()), 4);
    assert!(bench.batcher.first_went, "its last two texts wait for the batch after the next");
    bench.ask(1, 1_000);
    // Of three tokens each, estimated as two: 24 tokens, of which the other request has 6.
    assert_eq!(bench.batcher.active[1].ahead(), 16, "one job is more than is left");
    assert_eq!(bench.batcher.active[0].ahead(), 2);
}

#[test]
fn a_quiet_flow_is_tokenized_and_passes_the_batch_that_waits() {
    let [busy, quiet] = [1, 2];
    let text = ids_of("a").len();
    let mut bench = Bench::new(4 * text, 4 * text);
    let now = Instant::now();
    bench.ask(busy, 1_000);
    bench.texts_at(now);
    bench.tokenize();
    bench.batcher.plan_again(now);
    let offered = |bench: &Bench| {
        let offer = bench.batcher.offer.as_ref().expect("a batch waits");
        offer.texts.clone()
    };
    assert_eq!(offered(&bench), [(1, 4)]);
    bench.ask(quiet, 1);
    bench.batcher.plan_again(now);
    assert_eq!(offered(&bench), [(2, 1), (1, 3)], "the quiet one's turn is earlier");
}

#[test]
fn a_request_that_failed_holds_up_no_other() {
    let mut bench = Bench::with_bad_texts(7);
    let mut bad = vec!["a".to_owned(); 16];
    bad[9].clear();
    bench.accept(1, bad);
    bench.accept(1, vec!["b".into(); 9]);
    bench.batcher.act_on_events();
    assert_eq!(bench.batcher.tokenizing, 16, "the first one's texts are more than two batches");
    bench.wait_for_tokenizers();
    bench.batcher.act_on_events();
    let failed = bench.answers[0].try_recv().expect("it is told");
    assert!(matches!(failed, Err(EmbedError::Tokenize { index: 9, .. })), "{failed:?}");
    assert_eq!(bench.batcher.tokenizing, 9, "nothing else wakes the batcher");
}

#[test]
fn a_request_that_failed_is_left_out_of_the_batch_after() {
    let text = ids_of("a").len();
    let mut bench = Bench::new(2 * text, 2 * text);
    let now = Instant::now();
    bench.ask(1, 20);
    let (first, offer) = bench.batcher.plan(now);
    bench.batcher.offer = offer;
    bench.batcher.count_offer_as_taken();
    let (mut second, _) = bench.batcher.plan(now);
    assert_eq!(second.batch.texts(), 2);
    first.note_failed();
    second.leave_out_gone(now);
    assert!(second.batch.is_empty());
}

#[test]
fn who_leaves_after_the_batch_was_formed_counts_as_abandoned() {
    let text = ids_of("a").len();
    let mut bench = Bench::new(8 * text, 8 * text);
    bench.ask(1, 2);
    bench.ask(2, 1);
    let (mut formed, offer) = bench.batcher.plan(Instant::now());
    assert_eq!(formed.batch.texts(), 3);
    bench.batcher.offer = offer;
    bench.batcher.count_offer_as_taken();
    formed.tickets[0].caller.left.leave();
    let at = Instant::now();
    formed.leave_out_gone(at);
    assert_eq!(formed.batch.texts(), 1);
    let ran = Ran { formed, at, took: Duration::ZERO, result: Ok(vec![Vec::new()]) };
    bench.batcher.take_results(ran).expect("it does not end");
    bench.batcher.act_on_events();
    bench.answers[0].try_recv().expect_err("it has left");
    bench.answers[1].try_recv().expect("it is told").expect("it embeds");
    let stats = bench.counters.snapshot();
    assert_eq!((stats.texts, stats.abandoned, stats.embedded_for_gone), (1, 1, 0));
}

#[test]
fn the_first_bad_text_is_named_whichever_thread_is_faster() {
    let mut bench = Bench::with_bad_texts(64);
    let mut texts = vec!["a".to_owned(); 48];
    for bad in [3, 5, 20, 40] {
        texts[bad].clear();
    }
    bench.accept(1, texts);
    let jobs: Vec<_> = std::iter::repeat_with(|| {
        let job = bench.batcher.active[0].next_job(TEXTS_OF_A_JOB);
        bench.batcher.active[0].note_sent(&job.range);
        job
    })
    .take(3)
    .collect();
    bench.batcher.tokenizing = 48;
    for job in [&jobs[1], &jobs[2], &jobs[0]] {
        bench.answers[0].try_recv().expect_err("texts before the bad one may be bad too");
        let tokenized = bench.batcher.tokenizers.do_here(job);
        bench.batcher.take_event(Event::Tokenized(tokenized)).expect("it does not end");
        bench.batcher.act_on_events();
    }
    let failed = bench.answers[0].try_recv().expect("it is told");
    assert!(matches!(failed, Err(EmbedError::Tokenize { index: 3, .. })), "{failed:?}");
}
