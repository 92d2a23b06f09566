//! Our own kernels: PTX text that the driver compiles for the present GPU when it is loaded.

use candle_core::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::CudaFunction;

use super::error::GpuError;

/// PTX made from `kernels/bert.cu` by `make cuda-ptx`, for compute capability 8.0 and all later ones.
const PTX: &str = include_str!("../../../kernels/bert.ptx");
const MODULE: &str = "toolgate-bert";

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
