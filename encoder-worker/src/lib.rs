//! Sentence encoder of Toolgate: from a model directory to a handle that embeds texts. What a caller
//! needs is re-exported here; the server's own types and the wire stay out of this crate.

mod backend;
mod candle_bert;
#[cfg(any(feature = "cuda", test))]
mod cuda;
mod device;
mod encoder;
mod hex;
mod load_backend;
mod load_error;
mod model_dir;
pub mod model_fetch;
#[cfg(test)]
mod tiny_model;
mod tokenize;
mod weights;

pub use backend::{Backend, BackendError, Batch};
pub use device::{Device, NumberFormat, UnknownName};
pub use encoder::{
    EmbedError, Embedding, EncoderConfig, EncoderHandle, EncoderStats, ModelDescription,
};
pub use load_error::LoadError;
pub use model_dir::{Activation, BertConfig, ModelDir, Pooling};
