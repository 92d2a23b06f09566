//! Steps of the forward pass as launches on one GPU. `kernels/bert.cu` defines the kernels' arguments.

use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::driver::{CudaSlice, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg};

use super::element::Element;
use super::error::GpuError;
use super::forward::{Slot, Steps};
use super::kernels::{Kernels, threads};
use super::memory::Memory;
use super::model::{Embeddings, HostMatrix, Model};
use super::plan::{Plan, Product, Room};
use super::probe::OpenGpu;
use crate::backend::Batch;
use crate::model_dir::{Activation, ModelDir, Pooling};

/// Matrix on the GPU.
pub(super) struct Matrix<T> {
    rows: usize,
    columns: usize,
    values: CudaSlice<T>,
}

/// Parameters of the model that the kernels get in addition to its weights.
struct Settings {
    hidden: i32,
    wide: i32,
    heads: u32,
    epsilon: f32,
    activation: i32,
    pooling: i32,
    normalise: i32,
}

/// GPU with the resources to run batches.
pub(super) struct Gpu<T> {
    stream: Arc<CudaStream>,
    blas: CudaBlas,
    kernels: Kernels,
    settings: Settings,
    memory: Memory<T>,
    plan: Plan,
}

impl<T: Element> Gpu<T> {
    pub(super) fn new(device: &OpenGpu, model: &ModelDir) -> Result<Self, GpuError> {
        let bert = &model.bert;
        let stream = Arc::clone(&device.stream);
        let memory = Memory::new(&stream, bert.hidden_size, bert.intermediate_size)?;
        Ok(Self {
            blas: CudaBlas::new(Arc::clone(&stream))?,
            stream,
            kernels: Kernels::load(&device.context, T::NAME, bert.head_size())?,
            settings: Settings::of(model),
            memory,
            plan: Plan::new(&Batch::default()),
        })
    }

    /// Uploads the batch that the next steps work on.
    pub(super) fn send(&mut self, batch: &Batch) -> Result<(), GpuError> {
        self.plan = Plan::new(batch);
        Ok(self.memory.send(&self.plan, batch)?)
    }

    /// Waits for the steps and downloads their result: one vector per text.
    pub(super) fn receive(&mut self) -> Result<Vec<Vec<f32>>, GpuError> {
        Ok(self.memory.receive(self.plan.texts)?)
    }

    /// Waits until no work is in progress.
    pub(super) fn settle(&self) -> Result<(), GpuError> {
        Ok(self.memory.settle()?)
    }

    /// Returns the size of the batches that there is memory for.
    pub(super) fn room(&self) -> Room {
        self.memory.room()
    }

    fn tokens(&self) -> i32 {
        self.plan.tokens as i32
    }
}

impl Settings {
    fn of(model: &ModelDir) -> Self {
        let bert = &model.bert;
        Self {
            hidden: bert.hidden_size as i32,
            wide: bert.intermediate_size as i32,
            heads: bert.num_attention_heads as u32,
            epsilon: bert.layer_norm_eps as f32,
            // Numbered as in kernels/activation.cuh; loading has refused an unknown one.
            activation: match bert.activation().unwrap_or(Activation::Gelu) {
                Activation::Gelu => 0,
                Activation::GeluTanh => 1,
                Activation::Relu => 2,
            },
            // Numbered as in kernels/pool.cuh.
            pooling: match model.pooling {
                Pooling::Mean => 0,
                Pooling::Cls => 1,
                Pooling::Max => 2,
            },
            normalise: i32::from(model.normalise),
        }
    }
}

/// Uploads the weights, with matrices in the GPU's number format.
pub(super) fn upload<T: Element>(
    stream: &Arc<CudaStream>,
    model: Model<HostMatrix, Vec<f32>>,
) -> Result<Model<Matrix<T>, CudaSlice<f32>>, GpuError> {
    let matrix = |matrix: HostMatrix| -> Result<Matrix<T>, GpuError> {
        let values: Vec<T> = matrix.values.into_iter().map(T::from_f32).collect();
        let values = stream.clone_htod(&values)?;
        Ok(Matrix { rows: matrix.rows, columns: matrix.columns, values })
    };
    let vector = |values: Vec<f32>| Ok(stream.clone_htod(&values)?);
    let uploaded = model.map(matrix, vector)?;
    stream.synchronize()?;
    Ok(uploaded)
}

impl<T: Element> Steps for Gpu<T> {
    type Matrix = Matrix<T>;
    type Vector = CudaSlice<f32>;
    type Error = GpuError;

    fn embed(&mut self, tables: &Embeddings<Matrix<T>, CudaSlice<f32>>) -> Result<(), GpuError> {
        let tokens = self.tokens();
        let blocks = grid(self.plan.norm_blocks(), 1, threads::NORM);
        let ids = self.memory.upload.slice(self.plan.ids());
        let positions = self.memory.upload.slice(self.plan.positions());
        let mut launch = self.stream.launch_builder(&self.kernels.embed);
        launch.arg(&ids).arg(&positions);
        launch.arg(&tables.words.values).arg(&tables.positions.values).arg(&tables.norm);
        launch.arg(&self.settings.epsilon).arg(&tokens).arg(&self.settings.hidden);
        launch.arg(&mut self.memory.slots[Slot::Hidden as usize]);
        start(launch, blocks)
    }

    fn multiply(&mut self, from: Slot, matrix: &Matrix<T>, into: Slot) -> Result<(), GpuError> {
        let product = Product::new(self.plan.tokens, matrix.columns, matrix.rows);
        let slots = self.memory.slots.get_disjoint_mut([from as usize, into as usize]);
        let [from, into] = slots.expect("a product's input is not its output");
        T::multiply(&self.blas, product, &matrix.values, from, into)
    }

    fn attend(&mut self, bias: &CudaSlice<f32>) -> Result<(), GpuError> {
        let blocks = grid(self.plan.tiles, self.settings.heads, threads::ATTENTION);
        let tiles = self.memory.upload.slice(self.plan.tiles());
        let slots =
            self.memory.slots.get_disjoint_mut([Slot::Qkv as usize, Slot::Context as usize]);
        let [qkv, context] = slots.expect("two slots");
        let mut launch = self.stream.launch_builder(&self.kernels.attention);
        launch.arg(&*qkv).arg(bias).arg(&tiles).arg(&self.settings.hidden).arg(context);
        start(launch, blocks)
    }

    fn add_norm(
        &mut self,
        rows: Slot,
        residual: Slot,
        bias_norm: &CudaSlice<f32>,
    ) -> Result<(), GpuError> {
        let tokens = self.tokens();
        let blocks = grid(self.plan.norm_blocks(), 1, threads::NORM);
        let slots = self.memory.slots.get_disjoint_mut([rows as usize, residual as usize]);
        let [rows, residual] = slots.expect("a residual is not what it is added to");
        let mut launch = self.stream.launch_builder(&self.kernels.add_norm);
        launch.arg(rows).arg(&*residual).arg(bias_norm);
        launch.arg(&self.settings.epsilon).arg(&tokens).arg(&self.settings.hidden);
        start(launch, blocks)
    }

    fn activate(&mut self, bias: &CudaSlice<f32>) -> Result<(), GpuError> {
        let blocks = grid(self.plan.tokens, 1, threads::ACTIVATE);
        let mut launch = self.stream.launch_builder(&self.kernels.activate);
        launch.arg(&mut self.memory.slots[Slot::Wide as usize]).arg(bias);
        launch.arg(&self.settings.wide).arg(&self.settings.activation);
        start(launch, blocks)
    }

    fn pool(&mut self) -> Result<(), GpuError> {
        let blocks = grid(self.plan.texts, 1, threads::POOL);
        let bounds = self.memory.upload.slice(self.plan.bounds());
        let mut launch = self.stream.launch_builder(&self.kernels.pool);
        launch.arg(&self.memory.slots[Slot::Hidden as usize]).arg(&bounds);
        launch.arg(&self.settings.pooling).arg(&self.settings.normalise);
        launch.arg(&self.settings.hidden).arg(&mut self.memory.result);
        start(launch, blocks)
    }
}

fn grid(x: usize, y: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (x as u32, y, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

#[allow(unsafe_code, reason = "nothing holds a kernel's arguments to its signature")]
fn start(mut launch: LaunchArgs<'_>, blocks: LaunchConfig) -> Result<(), GpuError> {
    // SAFETY: each step above passes the arguments that kernels/bert.cu declares, in that order. The kernels stay
    // within rows of the plan's tokens and texts, for which `Memory::send` made room. Ids and positions are within the
    // tables because the tokenizer was checked against `vocab_size` and texts are cut to the existing positions. The
    // host test runs the kernels with margins around every buffer.
    unsafe { launch.launch(blocks) }?;
    Ok(())
}
