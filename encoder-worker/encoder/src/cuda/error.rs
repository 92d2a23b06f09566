//! Errors of NVIDIA's libraries.

use cudarc::cublas::result::CublasError;
use cudarc::driver::DriverError;
use thiserror::Error;

/// Failure of a GPU operation.
#[derive(Debug, Error)]
pub(super) enum GpuError {
    #[error("the driver says {0}")]
    Driver(#[from] DriverError),
    #[error("cuBLAS says {0:?}")]
    Blas(#[from] CublasError),
}
