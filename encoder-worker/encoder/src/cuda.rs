//! BERT on an NVIDIA GPU: matrix products by cuBLAS, everything between them by our own kernels
//! (`kernels/`), texts packed without padding. Nothing of NVIDIA's is linked: the libraries are looked
//! for when a GPU is asked for.
//!
//! What is said here about a forward pass (order, layouts, sizes) knows no GPU and is tested without
//! one; the modules behind the feature only carry it out.

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
