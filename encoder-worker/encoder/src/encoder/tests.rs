//! Tests of queueing, batching and failures, with a backend that the test drives step by step.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{EmbedError, Embedding, EncoderConfig, EncoderHandle, Flow, ModelDescription};
use crate::backend::{Backend, BackendError, Batch, BatchLimits};
use crate::load_error::LoadError;
use crate::model_dir::ModelDir;
use crate::tiny_model::{TinyModel, ids_of};
use crate::tokenize::TextTokenizer;

const PATIENCE: Duration = Duration::from_secs(60);

/// Instruction to the backend for one batch.
enum Step {
    Answer,
    Fail,
    Panic,
    NotANumber,
    TooFew,
}

struct DrivenBackend {
    entered: Sender<Batch>,
    steps: Receiver<Step>,
    prepared: Option<BatchLimits>,
    /// Most tokens of a batch that it has memory for.
    memory: usize,
}

impl Backend for DrivenBackend {
    fn name(&self) -> &'static str {
        "driven"
    }

    fn batch_tokens(&self) -> usize {
        7
    }

    fn prepare(&mut self, limits: BatchLimits) -> Result<(), BackendError> {
        self.prepared = Some(limits);
        let needed = limits.tokens.max(limits.text_tokens);
        if needed > self.memory { Err(BackendError("out of memory".into())) } else { Ok(()) }
    }

    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        let limits = self.prepared.expect("a batch comes after the preparation");
        let most = if batch.texts() > 1 { limits.tokens } else { limits.text_tokens };
        assert!(batch.tokens() <= most.max(limits.tokens), "{} tokens, {limits:?}", batch.tokens());
        self.entered.send(batch.clone()).expect("the test listens");
        let step = self.steps.recv().expect("the test drives");
        let mut vectors: Vec<Vec<f32>> =
            texts_of(batch).iter().map(|ids| vec![ids.iter().sum::<u32>() as f32]).collect();
        match step {
            Step::Answer => {}
            Step::Fail => return Err(BackendError("out of memory".into())),
            Step::Panic => panic!("a driven panic"),
            Step::NotANumber => vectors[0][0] = f32::NAN,
            Step::TooFew => drop(vectors.pop()),
        }
        Ok(vectors)
    }
}

fn texts_of(batch: &Batch) -> Vec<Vec<u32>> {
    let bounds = batch.bounds().windows(2);
    bounds.map(|text| batch.token_ids()[text[0]..text[1]].to_vec()).collect()
}

/// Encoder with the two channel ends that drive its backend.
struct Rig {
    encoder: EncoderHandle,
    entered: Receiver<Batch>,
    steps: Sender<Step>,
}

type Running = JoinHandle<Result<Vec<Embedding>, EmbedError>>;

impl Rig {
    fn new(queue_capacity: usize, max_batch_tokens: usize) -> Self {
        Self::on(&TinyModel::new(), queue_capacity, Some(max_batch_tokens))
    }

    fn on(model: &TinyModel, queue_capacity: usize, max_batch_tokens: Option<usize>) -> Self {
        Self::with_memory(model, queue_capacity, max_batch_tokens, usize::MAX)
            .expect("the threads start")
    }

    fn with_memory(
        model: &TinyModel,
        queue_capacity: usize,
        max_batch_tokens: Option<usize>,
        memory: usize,
    ) -> Result<Self, LoadError> {
        let dir = ModelDir::open(model.path()).expect("the directory is right");
        let tokenizer = TextTokenizer::load(&dir).expect("the tokenizer is right");
        let (entered_sender, entered) = channel();
        let (steps, step_receiver) = channel();
        let backend =
            DrivenBackend { entered: entered_sender, steps: step_receiver, prepared: None, memory };
        let description = ModelDescription {
            name: "tiny".into(),
            dimensions: 1,
            max_tokens: dir.max_tokens,
            fingerprint: String::new(),
            backend: "driven".into(),
        };
        let config = EncoderConfig { queue_capacity, max_batch_tokens, ..EncoderConfig::default() };
        let encoder = EncoderHandle::start(Box::new(backend), tokenizer, description, &config)?;
        Ok(Self { encoder, entered, steps })
    }

    /// Sends a request and waits until the encoder holds `depth` of them, and the next batch takes account of all.
    fn request(&self, texts: &[&str], deadline: Option<Instant>, depth: usize) -> Running {
        self.request_of(Flow::ALONE, texts, deadline, depth)
    }

    fn request_of(
        &self,
        flow: Flow,
        texts: &[&str],
        deadline: Option<Instant>,
        depth: usize,
    ) -> Running {
        let encoder = self.encoder.clone();
        let texts = texts.iter().map(ToString::to_string).collect();
        let running = tokio::spawn(async move { encoder.embed(texts, flow, deadline).await });
        self.wait_for_depth(depth);
        running
    }

    fn wait_for_depth(&self, depth: usize) {
        let limit = Instant::now() + PATIENCE;
        let counters = &self.encoder.shared.counters;
        while counters.snapshot().queue_depth != depth || !counters.is_planned() {
            assert!(Instant::now() < limit, "the queue never held {depth}");
            thread::yield_now();
        }
    }

    /// Returns the texts of the batch that the backend is working on.
    fn entered(&self) -> Vec<Vec<u32>> {
        let batch = self.entered.recv_timeout(PATIENCE);
        texts_of(&batch.expect("a batch reaches the backend"))
    }

    fn step(&self, step: Step) {
        self.steps.send(step).expect("the backend waits");
    }
}

fn vectors(result: &Result<Vec<Embedding>, EmbedError>) -> Vec<f32> {
    let embeddings = result.as_ref().expect("it embeds");
    embeddings.iter().map(|one| one.vector[0]).collect()
}

fn sum_of(text: &str) -> f32 {
    ids_of(text).iter().sum::<u32>() as f32
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_requests_share_a_batch_and_get_their_own_results() {
    let rig = Rig::new(8, 100);
    let first = rig.request(&["a"], None, 1);
    assert_eq!(rig.entered(), [ids_of("a")], "a lone text does not wait for more");
    let second = rig.request(&["b", "c d"], None, 2);
    let third = rig.request(&["e"], None, 3);
    rig.step(Step::Answer);
    assert_eq!(rig.entered(), [ids_of("b"), ids_of("e"), ids_of("c d")]);
    rig.step(Step::Answer);
    assert_eq!(vectors(&first.await.expect("no panic")), [sum_of("a")]);
    assert_eq!(vectors(&second.await.expect("no panic")), [sum_of("b"), sum_of("c d")]);
    assert_eq!(vectors(&third.await.expect("no panic")), [sum_of("e")]);
    let stats = rig.encoder.stats();
    assert_eq!((stats.batches, stats.texts, stats.tokens), (2, 4, 13));
    assert_eq!((stats.queue_depth, stats.running), (0, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_keep_the_token_budget_and_a_small_request_passes_a_large_one() {
    let rig = Rig::new(8, 7);
    let large = rig.request(&["a", "b", "c", "d", "a b c d e f g"], None, 1);
    assert_eq!(rig.entered(), [ids_of("a"), ids_of("b")]);
    let small = rig.request(&["i"], None, 2);
    rig.step(Step::Answer);
    assert_eq!(rig.entered(), [ids_of("i"), ids_of("c")]);
    rig.step(Step::Answer);
    assert_eq!(vectors(&small.await.expect("no panic")), [sum_of("i")]);
    assert_eq!(rig.entered(), [ids_of("d")]);
    rig.step(Step::Answer);
    assert_eq!(rig.entered(), [ids_of("a b c d e f g")], "over the budget, but alone");
    rig.step(Step::Answer);
    assert_eq!(large.await.expect("no panic").expect("it embeds").len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_number_a_batch_has_as_many_tokens_as_suit_the_device() {
    let rig = Rig::on(&TinyModel::new(), 8, None);
    let running = rig.request(&["a", "b", "c"], None, 1);
    assert_eq!(rig.entered(), [ids_of("a"), ids_of("b")], "the device says 7");
    rig.step(Step::Answer);
    assert_eq!(rig.entered(), [ids_of("c")]);
    rig.step(Step::Answer);
    running.await.expect("no panic").expect("it embeds");
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_take_turns_however_much_one_of_them_asks_for() {
    let rig = Rig::new(16, 6);
    let busy = Flow::new(1);
    let quiet = Flow::new(2);
    let mut running = vec![rig.request_of(busy, &["a"], None, 1)];
    assert_eq!(rig.entered(), [ids_of("a")]);
    for (i, text) in ["b", "c", "d", "e"].into_iter().enumerate() {
        running.push(rig.request_of(busy, &[text], None, 2 + i));
    }
    running.push(rig.request_of(quiet, &["f", "g"], None, 6));
    let batches = [["f", "b"], ["g", "c"], ["d", "e"]];
    for batch in batches {
        rig.step(Step::Answer);
        assert_eq!(rig.entered(), batch.map(ids_of), "{batch:?}");
    }
    rig.step(Step::Answer);
    for one in running {
        one.await.expect("no panic").expect("it embeds");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_and_recovers() {
    let rig = Rig::new(2, 100);
    let first = rig.request(&["a"], None, 1);
    rig.entered();
    let second = rig.request(&["b"], None, 2);
    let refused = rig.encoder.embed(vec!["c".into()], Flow::ALONE, None).await;
    assert_eq!(refused, Err(EmbedError::QueueFull));
    assert_eq!(rig.encoder.stats().refused, 1);
    rig.step(Step::Answer);
    rig.step(Step::Answer);
    first.await.expect("no panic").expect("it embeds");
    second.await.expect("no panic").expect("it embeds");
    let third = rig.request(&["c"], None, 1);
    rig.step(Step::Answer);
    third.await.expect("no panic").expect("there is room again");
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_and_late_requests_never_reach_the_backend() {
    let rig = Rig::new(8, 100);
    let first = rig.request(&["a"], None, 1);
    rig.entered();
    let withdrawn = rig.request(&["b"], None, 2);
    let late = rig.request(&["c"], Some(Instant::now() + Duration::from_millis(20)), 3);
    withdrawn.abort();
    assert!(withdrawn.await.expect_err("it was aborted").is_cancelled());
    // The caller is told in time although the device is still busy.
    assert_eq!(late.await.expect("no panic"), Err(EmbedError::DeadlineExceeded));
    let wanted = rig.request(&["d"], None, 2);
    rig.step(Step::Answer);
    assert_eq!(rig.entered(), [ids_of("d")]);
    rig.step(Step::Answer);
    first.await.expect("no panic").expect("it embeds");
    wanted.await.expect("no panic").expect("it embeds");
    let stats = rig.encoder.stats();
    assert_eq!((stats.abandoned, stats.expired, stats.texts), (1, 1, 2));
}

#[tokio::test]
async fn a_deadline_in_the_past_costs_nothing() {
    let rig = Rig::new(8, 100);
    let texts = vec!["a".into()];
    let result = rig.encoder.embed(texts, Flow::ALONE, Some(Instant::now())).await;
    assert_eq!(result, Err(EmbedError::DeadlineExceeded));
    rig.wait_for_depth(0);
    assert_eq!(rig.encoder.stats().batches, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_batch_fails_its_requests_only() {
    let rig = Rig::new(8, 100);
    for step in [Step::Fail, Step::NotANumber, Step::TooFew] {
        let unlucky = rig.request(&["a", "b"], None, 1);
        rig.entered();
        let lucky = rig.request(&["c"], None, 2);
        rig.step(step);
        rig.step(Step::Answer);
        let error = unlucky.await.expect("no panic").expect_err("it failed");
        assert!(matches!(error, EmbedError::Backend(_)), "{error:?}");
        lucky.await.expect("no panic").expect("the next batch runs");
        rig.entered();
    }
    assert!(rig.encoder.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_told_to_everyone_and_stops_the_encoder() {
    let rig = Rig::new(8, 100);
    let inside = rig.request(&["a"], None, 1);
    rig.entered();
    let waiting = rig.request(&["b"], None, 2);
    rig.step(Step::Panic);
    let error = inside.await.expect("no panic").expect_err("it failed");
    assert_eq!(error, EmbedError::Backend("panic: a driven panic".into()));
    assert_eq!(waiting.await.expect("no panic"), Err(EmbedError::Stopped));
    let after = rig.encoder.embed(vec!["c".into()], Flow::ALONE, None).await;
    assert_eq!(after, Err(EmbedError::Stopped));
    assert!(!rig.encoder.is_running());
    assert!(!rig.encoder.stats().running);
}

#[test]
fn dropping_the_last_handle_stops_the_thread() {
    let rig = Rig::new(8, 100);
    let other = rig.encoder.clone();
    drop(rig.encoder);
    rig.steps.send(Step::Answer).expect("the backend is alive");
    let embedded = other.embed_blocking(vec!["a".into()]);
    assert_eq!(vectors(&embedded), [sum_of("a")]);
    rig.entered.recv_timeout(PATIENCE).expect("the batch");
    drop(other);
    // The backend is dropped with the thread, and so is its sender.
    let ended = rig.entered.recv_timeout(PATIENCE);
    assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn truncation_is_at_the_models_limit_and_reported() {
    let model = TinyModel::new();
    model.write_json("sentence_bert_config.json", &json!({"max_seq_length": 8}));
    let rig = Rig::on(&model, 8, Some(100));
    rig.step(Step::Answer);
    let texts = ["a b c d e f", "a b c d e f g", ""].map(String::from);
    let embedded = rig.encoder.embed_blocking(texts.to_vec()).expect("all embed");
    let facts: Vec<_> = embedded.iter().map(|one| (one.tokens, one.truncated)).collect();
    assert_eq!(facts, [(8, false), (8, true), (2, false)]);
    assert_eq!(rig.entered()[1], ids_of("a b c d e f"));
    assert_eq!(rig.encoder.stats().truncated, 1);
}

#[test]
fn a_text_without_tokens_fails_its_request_and_names_the_text() {
    let model = TinyModel::new();
    model.change("tokenizer.json", &json!({"post_processor": null, "version": "1.0"}));
    let rig = Rig::on(&model, 8, Some(100));
    rig.step(Step::Answer);
    let texts = ["a", "", "b"].map(String::from).to_vec();
    let error = rig.encoder.embed_blocking(texts).expect_err("it fails");
    assert!(matches!(error, EmbedError::Tokenize { index: 1, .. }), "{error:?}");
    rig.step(Step::Answer);
    rig.encoder.embed_blocking(vec!["a".into()]).expect("the next one embeds");
}

#[test]
fn texts_are_lower_cased_when_the_model_says_so() {
    let model = TinyModel::new();
    let lower: Value = json!({"max_seq_length": 8, "do_lower_case": true});
    model.write_json("sentence_bert_config.json", &lower);
    let rig = Rig::on(&model, 8, Some(100));
    rig.step(Step::Answer);
    rig.encoder.embed_blocking(vec!["A B".into()]).expect("it embeds");
    assert_eq!(rig.entered(), [ids_of("a b")]);
}

#[test]
fn no_texts_need_no_encoder() {
    let rig = Rig::new(1, 100);
    assert_eq!(rig.encoder.embed_blocking(Vec::new()), Ok(Vec::new()));
    assert_eq!(rig.encoder.stats().batches, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_request_passes_a_full_queue() {
    let rig = Rig::new(2, 4);
    let running = rig.request(&["a"], None, 1);
    rig.entered();
    let waiting = rig.request(&["b"], None, 2);
    let encoder = rig.encoder.clone();
    let until = Instant::now() + PATIENCE;
    let first = tokio::spawn(async move { encoder.embed_first(vec!["c".into()], until).await });
    rig.wait_for_depth(3);
    rig.step(Step::Answer);
    assert_eq!(rig.entered(), [ids_of("c")]);
    rig.step(Step::Answer);
    assert_eq!(rig.entered(), [ids_of("b")]);
    rig.step(Step::Answer);
    for call in [running, first, waiting] {
        call.await.expect("no panic").expect("it embeds");
    }
    let stats = rig.encoder.stats();
    assert_eq!(stats.queue_wait.total(), 3);
    assert_eq!((stats.batch_texts.total(), stats.batch_texts.sum), (3, 3));
    assert_eq!(stats.batch_tokens.sum, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_first_lets_others_pass_between_its_batches() {
    let rig = Rig::new(8, 4);
    let running = rig.request(&["a"], None, 1);
    rig.entered();
    let waiting = rig.request(&["b", "c"], None, 2);
    let encoder = rig.encoder.clone();
    let texts = ["d", "e", "f"].map(String::from);
    let until = Instant::now() + PATIENCE;
    let first = tokio::spawn(async move { encoder.embed_first(texts.into(), until).await });
    rig.wait_for_depth(3);
    for text in ["d", "b", "e", "c", "f"] {
        rig.step(Step::Answer);
        assert_eq!(rig.entered(), [ids_of(text)], "{text}");
    }
    rig.step(Step::Answer);
    for call in [running, waiting, first] {
        call.await.expect("no panic").expect("it embeds");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_while_the_batch_runs_is_not_counted_as_gone_before() {
    let rig = Rig::new(8, 100);
    let running = rig.request(&["a", "b"], None, 1);
    rig.entered();
    running.abort();
    assert!(running.await.expect_err("it was aborted").is_cancelled());
    rig.step(Step::Answer);
    rig.wait_for_depth(0);
    let stats = rig.encoder.stats();
    assert_eq!((stats.texts, stats.embedded_for_gone), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_tokenized_and_their_callers_told_while_the_device_is_busy() {
    let model = TinyModel::new();
    model.change("tokenizer.json", &json!({"post_processor": null, "version": "1.0"}));
    let rig = Rig::on(&model, 64, Some(64));
    let running = rig.request(&["a"], None, 1);
    rig.entered();
    let texts = vec!["b".into(), String::new()];
    let told = tokio::time::timeout(PATIENCE, rig.encoder.embed(texts, Flow::ALONE, None)).await;
    let error = told.expect("the device is not waited for").expect_err("it has no tokens");
    assert!(matches!(error, EmbedError::Tokenize { index: 1, .. }), "{error:?}");
    let many: Vec<_> = (0..20).map(|number| rig.request(&["c"; 20], None, number + 2)).collect();
    // More than enough for batches of any size.
    for _ in 0..500 {
        rig.step(Step::Answer);
    }
    assert_eq!(rig.entered().len(), 64, "it was formed while the device was busy");
    for one in many.into_iter().chain([running]) {
        one.await.expect("no panic").expect("it embeds");
    }
    assert_eq!(rig.encoder.stats().texts, 401);
}

#[test]
fn a_device_is_prepared_for_the_largest_batch_before_the_encoder_is_there() {
    let model = TinyModel::new();
    let longest = ModelDir::open(model.path()).expect("the directory is right").max_tokens;
    for (max_batch_tokens, needed) in [(None, longest.max(7)), (Some(4), longest), (Some(99), 99)] {
        let enough = Rig::with_memory(&model, 8, max_batch_tokens, needed);
        assert!(enough.is_ok(), "{max_batch_tokens:?}");
        let error = Rig::with_memory(&model, 8, max_batch_tokens, needed - 1).err();
        let error = error.expect("it has too little memory").to_string();
        assert!(error.contains("largest batches: out of memory"), "{error}");
    }
}
