//! BERT on CPUs, in f32, bf16 or int8. Weights are packed once for the instructions of the CPU. Texts are packed
//! without padding. A batch is spread over threads that never wait for a thread that has not started. Activations are
//! kept in memory that only grows.

mod attention;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod balance;
mod bf16;
mod cores;
mod elementwise;
mod f32;
mod forward;
mod int8;
mod isa;
mod kept;
mod kernel;
mod linear;
mod model;
mod plan;
mod pool;
mod shared;
mod sync;
mod team;
#[cfg(test)]
mod tests;
mod transpose;
mod vectors;

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use crate::backend::{Backend, BackendError, Batch, BatchLimits};
use crate::device::NumberFormat;
use crate::giving_way::{Behind, give_way};
use crate::load_error::LoadError;
use crate::model_dir::Activation;
use crate::weights::Weights;
use attention::Attention;
use cores::Cores;
use forward::{Network, OwnScratch, Pass, Workspace, phases};
use isa::Isa;
use kernel::{Format, Kernel};
use model::Model;
use parking_lot::Mutex;
use plan::{Plan, plan};
use pool::Ending;
use team::{Member, Team};
use vectors::Vectors;

/// Fewest tokens for each additional thread when all threads work on a batch together; fewer are not worth a wakeup.
const TOKENS_PER_MEMBER: usize = 16;

/// Tokens of a batch. A CPU embeds hardly more texts a second in larger ones.
const BATCH_TOKENS: usize = 256;

/// Threads that work on the shortest text, if the team has as many.
const FEWEST: usize = 2;

/// Loads a model for the CPU; `threads` of `None` means one per core.
pub(crate) fn load(
    weights: &Weights<'_>,
    format: NumberFormat,
    threads: Option<NonZeroUsize>,
) -> Result<Box<dyn Backend>, LoadError> {
    load_for(Isa::detect()?, weights, format, threads)
}

fn load_for(
    isa: Isa,
    weights: &Weights<'_>,
    format: NumberFormat,
    threads: Option<NonZeroUsize>,
) -> Result<Box<dyn Backend>, LoadError> {
    let loader = Loader { isa, weights, threads };
    match format {
        NumberFormat::F32 => loader.load(Vectors::<f32::F32>::new(isa.arch), "cpu-f32"),
        NumberFormat::Bf16 => loader.load_bf16(),
        NumberFormat::Auto | NumberFormat::Int8 => loader.load_int8(),
    }
}

struct Loader<'a> {
    isa: Isa,
    weights: &'a Weights<'a>,
    threads: Option<NonZeroUsize>,
}

impl Loader<'_> {
    fn load_int8(&self) -> Result<Box<dyn Backend>, LoadError> {
        const NAME: &str = "cpu-int8";
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(kernel) = int8::avx512::Int8Avx512::new(self.isa) {
                return self.load(kernel, NAME);
            }
            if let Some(kernel) = int8::avx2::Int8AvxVnni::new(self.isa) {
                return self.load(kernel, NAME);
            }
            if let Some(kernel) = int8::avx2::Int8Avx2::new(self.isa) {
                return self.load(kernel, NAME);
            }
        }
        self.load(int8::portable::Int8Portable(self.isa.arch), NAME)
    }

    fn load_bf16(&self) -> Result<Box<dyn Backend>, LoadError> {
        const NAME: &str = "cpu-bf16";
        #[cfg(target_arch = "x86_64")]
        if let Some(kernel) = bf16::avx512::Bf16Avx512::new(self.isa) {
            return self.load(kernel, NAME);
        }
        self.load(Vectors::<bf16::Bf16>::new(self.isa.arch), NAME)
    }

    fn load<K: Kernel>(
        &self,
        kernel: K,
        name: &'static str,
    ) -> Result<Box<dyn Backend>, LoadError> {
        let model = self.weights.model();
        let network = Network {
            model: Model::read(self.weights, self.isa.arch)?,
            kernel,
            arch: self.isa.arch,
            attention: Attention::new(self.isa, K::Format::NAME),
            // An unknown activation was refused when the directory was opened.
            activation: model.bert.activation().unwrap_or(Activation::Gelu),
            ending: Ending { pooling: model.pooling, normalise: model.normalise },
        };
        let all = || available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = self.threads.unwrap_or_else(all);
        let cores = Cores::for_team(threads);
        let cores_of_helpers = cores.clone();
        let prepare = move |index| {
            give_way(Behind::Answers);
            cores_of_helpers.keep(index);
        };
        let team = Team::new(threads, phases(model.bert.num_hidden_layers), prepare)
            .map_err(|error| LoadError::Threads(error.to_string()))?;
        let own =
            || Mutex::new(Own { workspace: Workspace::default(), scratch: OwnScratch::default() });
        Ok(Box::new(CpuBert {
            name,
            network,
            together: Workspace::default(),
            own: (0..team.size()).map(|_| own()).collect(),
            team,
            cores,
        }))
    }
}

/// Loaded model with the threads that it runs on.
struct CpuBert<K: Kernel> {
    name: &'static str,
    network: Network<K>,
    /// Workspace of all threads when they work together.
    together: Workspace,
    /// Workspace of each thread for itself.
    own: Vec<Mutex<Own<K>>>,
    team: Team,
    /// Cores that the team's threads are pinned to.
    cores: Cores,
}

struct Own<K: Kernel> {
    workspace: Workspace,
    scratch: OwnScratch<K::Value>,
}

impl<K: Kernel> Backend for CpuBert<K> {
    fn name(&self) -> &str {
        self.name
    }

    fn batch_tokens(&self) -> usize {
        BATCH_TOKENS
    }

    fn prepare(&mut self, _: BatchLimits) -> Result<(), BackendError> {
        // Memory grows within the batch that first needs it, at no cost that could be measured.
        Ok(())
    }

    fn settle(&mut self) {
        // The calling thread runs the jobs, so it is the first member.
        self.cores.keep(0);
    }

    fn rouse(&mut self) {
        self.team.rouse(FEWEST);
    }

    fn forward(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, BackendError> {
        let texts: Vec<&[u32]> =
            batch.bounds().windows(2).map(|text| &batch.token_ids()[text[0]..text[1]]).collect();
        let lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        Ok(match plan(&lengths, self.team.size()) {
            Plan::Together => self.run_together(&texts, batch.bounds()),
            Plan::Apart(groups) => self.run_apart(&texts, &groups),
        })
    }
}

impl<K: Kernel> CpuBert<K> {
    fn run_together(&mut self, texts: &[&[u32]], bounds: &[usize]) -> Vec<Vec<f32>> {
        let tokens = bounds.last().copied().unwrap_or_default();
        self.together.grow(&self.network, texts.len(), tokens);
        let network = &self.network;
        let workspace = &self.together;
        let own = &self.own;
        let members = (tokens / TOKENS_PER_MEMBER).max(FEWEST);
        self.team.run(members, &|member| {
            let mut own = own[member.index].lock();
            Pass { network, texts, bounds, workspace, member }.run(&mut own.scratch);
        });
        let hidden = self.network.model.shape.hidden;
        (0..texts.len()).map(|text| self.together.embedding(text, hidden)).collect()
    }

    fn run_apart(&mut self, texts: &[&[u32]], groups: &[Vec<usize>]) -> Vec<Vec<f32>> {
        let network = &self.network;
        let own = &self.own;
        let done = Mutex::new(vec![Vec::new(); texts.len()]);
        self.team.run(groups.len(), &|member| {
            let mut own = own[member.index].lock();
            member.last_phase(groups.len(), groups.len(), |range| {
                for group in &groups[range] {
                    let embeddings = own.run_group(network, texts, group);
                    let mut done = done.lock();
                    group.iter().zip(embeddings).for_each(|(&text, vector)| done[text] = vector);
                }
            });
        });
        done.into_inner()
    }
}

impl<K: Kernel> Own<K> {
    fn run_group(
        &mut self,
        network: &Network<K>,
        texts: &[&[u32]],
        group: &[usize],
    ) -> Vec<Vec<f32>> {
        let texts: Vec<&[u32]> = group.iter().map(|&text| texts[text]).collect();
        let mut bounds = vec![0];
        for text in &texts {
            bounds.push(bounds[bounds.len() - 1] + text.len());
        }
        self.workspace.grow(network, texts.len(), bounds[texts.len()]);
        let workspace = &self.workspace;
        let member = &Member::alone();
        Pass { network, texts: &texts, bounds: &bounds, workspace, member }.run(&mut self.scratch);
        let hidden = network.model.shape.hidden;
        (0..texts.len()).map(|text| self.workspace.embedding(text, hidden)).collect()
    }
}
