//! What NVIDIA's libraries answer when something fails.

use candle_core::cuda_backend::cudarc::cublas::result::CublasError;
use candle_core::cuda_backend::cudarc::driver::DriverError;
use thiserror::Error;

/// A GPU did not do what it was told.
#[derive(Debug, Error)]
pub(super) enum GpuError {
    #[error("the driver says {0}")]
    Driver(#[from] DriverError),
    #[error("cuBLAS says {0:?}")]
    Blas(#[from] CublasError),
    #[error("{0}")]
    Candle(#[from] candle_core::Error),
}
