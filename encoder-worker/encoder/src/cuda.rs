//! BERT on an NVIDIA GPU: matrix products by cuBLAS, everything between them by our own kernels (`kernels/`), texts
//! packed without padding. No NVIDIA library is linked: they are searched for when a GPU is requested.
//!
//! The description of a forward pass here (order, layouts, sizes) does not depend on a GPU and is tested without one.
//! The modules behind the feature only execute it.

#[cfg(feature = "cuda")]
mod bert;
#[cfg(feature = "cuda")]
mod element;
#[cfg(feature = "cuda")]
mod error;
mod forward;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(feature = "cuda")]
mod kernels;
mod limits;
#[cfg(feature = "cuda")]
mod memory;
mod model;
mod plan;
#[cfg(feature = "cuda")]
mod probe;

#[cfg(feature = "cuda")]
pub(crate) use bert::load;
