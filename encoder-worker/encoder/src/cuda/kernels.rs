//! Our own kernels: PTX text that the driver compiles for the present GPU when it is loaded.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, DriverError};
use cudarc::nvrtc::Ptx;

/// PTX made from `kernels/bert.cu` by `make cuda-ptx`, for compute capability 8.0 and all later ones.
const PTX: &str = include_str!("../../../kernels/bert.ptx");

/// Kernels of one number format; `kernels/bert.cu` defines their arguments.
pub(super) struct Kernels {
    pub(super) embed: CudaFunction,
    pub(super) attention: CudaFunction,
    pub(super) add_norm: CudaFunction,
    pub(super) activate: CudaFunction,
    pub(super) pool: CudaFunction,
}

/// Threads of a block, as the kernels expect them (`kernels/*.cuh`).
pub(super) mod threads {
    pub(in super::super) const NORM: u32 = 128;
    pub(in super::super) const ATTENTION: u32 = 128;
    pub(in super::super) const ACTIVATE: u32 = 256;
    pub(in super::super) const POOL: u32 = 256;
}

impl Kernels {
    /// Loads the kernels; they must exist for this `element` and `head_size`.
    pub(super) fn load(
        context: &Arc<CudaContext>,
        element: &str,
        head_size: usize,
    ) -> Result<Self, DriverError> {
        let module = context.load_module(Ptx::from_src(PTX))?;
        let get = |name: &str| module.load_function(&format!("{name}_{element}"));
        Ok(Self {
            embed: get("embed")?,
            attention: get(&format!("attention_{head_size}"))?,
            add_norm: get("add_norm")?,
            activate: get("activate")?,
            pool: get("pool")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PTX;

    #[test]
    fn ptx_asks_for_the_oldest_driver_and_gpu_that_have_its_instructions() {
        let directive = |name: &str| -> Vec<&str> {
            PTX.lines().filter_map(|line| line.strip_prefix(name)).map(str::trim).collect()
        };
        assert_eq!(directive(".version"), ["7.0"]);
        assert_eq!(directive(".target"), ["sm_80"]);
    }

    #[test]
    fn ptx_has_each_kernel_that_is_loaded() {
        for element in ["bf16", "f32"] {
            for kernel in ["embed", "attention_32", "attention_64", "add_norm", "activate", "pool"]
            {
                let entry = format!(".visible .entry {kernel}_{element}(");
                assert_eq!(PTX.matches(&entry).count(), 1, "{entry}");
            }
        }
    }
}
