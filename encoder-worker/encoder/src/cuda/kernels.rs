//! Our own kernels: PTX text, compiled for the GPU at hand by the driver when it is loaded.

use candle_core::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::CudaFunction;

use super::error::GpuError;

/// Made from `kernels/bert.cu` by `make cuda-ptx`, for compute capability 8.0 and all later ones.
const PTX: &str = include_str!("../../../kernels/bert.ptx");
const MODULE: &str = "toolgate-bert";

/// One number format's kernels; `kernels/bert.cu` has their arguments.
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
    /// `element` and `head_size` are such as kernels exist for.
    pub(super) fn load(
        device: &CudaDevice,
        element: &str,
        head_size: usize,
    ) -> Result<Self, GpuError> {
        let get = |name: &str| -> Result<CudaFunction, GpuError> {
            let name = format!("{name}_{element}");
            let kernel = device.get_or_load_custom_func(&name, MODULE, PTX)?;
            Ok(kernel.into_cuda_function())
        };
        Ok(Self {
            embed: get("embed")?,
            attention: get(&format!("attention_{head_size}"))?,
            add_norm: get("add_norm")?,
            activate: get("activate")?,
            pool: get("pool")?,
        })
    }
}
