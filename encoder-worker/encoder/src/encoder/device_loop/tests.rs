//! Tests of forming batches, at times that the test chooses.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::Flow;
use super::super::request::{LeftAt, Wanted, WantedTurn};
use super::*;
use crate::backend::BackendError;
use crate::model_dir::ModelDir;
use crate::tiny_model::{TinyModel, ids_of};

struct NoBackend;

impl Backend for NoBackend {
    fn name(&self) -> &'static str {
        "none"
    }

    fn batch_tokens(&self) -> usize {
        0
    }

    fn forward(&mut self, _: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        Err(BackendError("nothing is run here".into()))
    }
}

type Answer = oneshot::Receiver<Result<Vec<Embedding>, EmbedError>>;

/// Device loop whose batches are formed one by one, with its queue.
struct Bench {
    device: DeviceLoop,
    queue: SyncSender<Request>,
    counters: Arc<Counters>,
    /// Receivers of the waiting callers.
    answers: Vec<Answer>,
}

impl Bench {
    /// Creates a loop with these batch sizes in tokens: while one flow waits, and while several do.
    fn new(of_one: usize, of_several: usize) -> Self {
        let model = TinyModel::new();
        let dir = ModelDir::open(model.path()).expect("the directory is right");
        let tokenizer = TextTokenizer::load(&dir).expect("the tokenizer is right");
        let (queue, waiting) = sync_channel(8);
        let counters = Arc::new(Counters::default());
        let backend = Box::new(NoBackend);
        let mut device =
            DeviceLoop::new(backend, tokenizer, waiting, of_one, Arc::clone(&counters));
        device.budget_of_several = BatchBudget::new(OF_FLOWS, of_several);
        Self { device, queue, counters, answers: Vec::new() }
    }

    fn ask(&mut self, flow: u64, texts: usize) {
        let (reply, answer) = oneshot::channel();
        let turn = WantedTurn::Of(Flow::new(flow));
        let wanted = Wanted { texts: vec!["a".into(); texts], deadline: None, turn };
        let request = Request::new(wanted, reply, LeftAt::default(), self.counters.extra_place());
        self.queue.send(request).expect("there is room");
        self.answers.push(answer);
    }

    /// Forms the batch at `now`, embeds it at once, and returns its number of texts.
    fn texts_at(&mut self, now: Instant) -> usize {
        assert!(self.device.take_waiting());
        let formed = self.device.next_batch(now);
        let texts = formed.slots.len();
        self.device.hand_out(vec![Vec::new(); texts], formed);
        self.device.finish_done();
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
