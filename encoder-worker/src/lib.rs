//! Sentence encoder of Toolgate: from a model directory to a handle that embeds texts. What a caller
//! needs is re-exported here; the server's own types stay out of this crate, and the wire stays inside
//! `worker`, which is the process that serves an encoder to others.

mod adapter;
mod backend;
mod cpu;
#[cfg(any(feature = "cuda", test))]
mod cuda;
mod device;
mod encoder;
mod giving_way;
mod hex;
mod load_backend;
mod load_error;
mod loaded_model;
mod model_dir;
pub mod model_fetch;
#[cfg(test)]
mod tiny_model;
mod tokenize;
mod weights;
pub mod worker;

pub use adapter::AdapterChoice;
pub use backend::{Backend, BackendError, Batch};
pub use device::{Device, NumberFormat, UnknownName};
pub use encoder::{
    Distribution, EmbedError, Embedding, EncoderCollector, EncoderConfig, EncoderHandle,
    EncoderStats, Flow, ModelDescription, RANGES,
};
pub use giving_way::{Behind, give_way};
pub use load_error::LoadError;
pub use loaded_model::LoadedModel;
pub use model_dir::{Activation, BertConfig, ModelDir, Pooling, Prompts};
