//! BERT on an NVIDIA GPU: matrix products by cuBLAS, everything between them by our own kernels (`kernels/`), texts
//! packed without padding. No NVIDIA library is linked: they are searched for when a GPU is requested.
//!
//! The description of a forward pass here (order, layouts, sizes) does not depend on a GPU and is tested without one.
//! The modules that exist on Linux only execute it.

#[cfg(target_os = "linux")]
mod bert;
#[cfg(target_os = "linux")]
mod element;
#[cfg(target_os = "linux")]
mod error;
mod forward;
#[cfg(target_os = "linux")]
mod gpu;
#[cfg(target_os = "linux")]
mod kernels;
mod limits;
#[cfg(target_os = "linux")]
mod memory;
mod model;
mod plan;
#[cfg(target_os = "linux")]
mod probe;

#[cfg(target_os = "linux")]
pub(crate) use bert::load;
#[cfg(target_os = "linux")]
pub(crate) use probe::{find_gpus, has_driver};
