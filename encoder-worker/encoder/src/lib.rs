//! Sentence encoder of Toolgate: loads a model directory and returns a handle that embeds texts. The public items are
//! re-exported here. This crate depends on neither the wire protocol nor the command line.

mod adapter;
mod backend;
mod cpu;
#[cfg(any(target_os = "linux", test))]
mod cuda;
mod device;
mod eager_kernels;
mod encoder;
mod giving_way;
mod gpu_list;
mod load_backend;
mod load_error;
mod loaded_model;
mod model_dir;
mod pages;
#[cfg(any(test, feature = "tiny-model"))]
#[expect(missing_docs, clippy::new_without_default, reason = "for tests")]
pub mod tiny_model;
mod tokenize;
mod weights;

pub use adapter::AdapterChoice;
pub use backend::{Backend, BackendError, Batch, BatchLimits};
pub use device::{Device, NumberFormat, UnknownName};
pub use eager_kernels::{MODULE_LOADING, load_kernels_eagerly};
pub use encoder::collector;
pub use encoder::{
    Distribution, EmbedError, Embedding, EncoderCollector, EncoderConfig, EncoderHandle,
    EncoderStats, Flow, ModelDescription, RANGES, estimated_tokens,
};
pub use giving_way::{Behind, give_way};
pub use gpu_list::GpuList;
pub use load_error::LoadError;
pub use loaded_model::LoadedModel;
pub use model_dir::{Activation, BertConfig, ModelDir, Pooling, Prompts};
