//! Number formats of matrices and rows on a GPU.

use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{CudaSlice, DeviceRepr, ValidAsZeroBits};
use half::bf16;

use super::error::GpuError;
use super::plan::Product;

/// Number on the GPU. Vectors (biases, norms) are always f32.
pub(super) trait Element: DeviceRepr + ValidAsZeroBits + Sized + Send + 'static {
    /// Suffix of the kernels' names and of the backend's name.
    const NAME: &'static str;

    fn from_f32(value: f32) -> Self;

    /// Computes `into` = `rows` times `matrix`, summed in f32.
    fn multiply(
        blas: &CudaBlas,
        product: Product,
        matrix: &CudaSlice<Self>,
        rows: &CudaSlice<Self>,
        into: &mut CudaSlice<Self>,
    ) -> Result<(), GpuError>;
}

impl Element for bf16 {
    const NAME: &'static str = "bf16";

    fn from_f32(value: f32) -> Self {
        Self::from_f32(value)
    }

    fn multiply(
        blas: &CudaBlas,
        product: Product,
        matrix: &CudaSlice<Self>,
        rows: &CudaSlice<Self>,
        into: &mut CudaSlice<Self>,
    ) -> Result<(), GpuError> {
        gemm(blas, gemm_config(product, Self::ONE, Self::ZERO), matrix, rows, into)
    }
}

impl Element for f32 {
    const NAME: &'static str = "f32";

    fn from_f32(value: f32) -> Self {
        value
    }

    fn multiply(
        blas: &CudaBlas,
        product: Product,
        matrix: &CudaSlice<Self>,
        rows: &CudaSlice<Self>,
        into: &mut CudaSlice<Self>,
    ) -> Result<(), GpuError> {
        gemm(blas, gemm_config(product, 1.0, 0.0), matrix, rows, into)
    }
}

fn gemm_config<T>(product: Product, alpha: T, beta: T) -> GemmConfig<T> {
    GemmConfig {
        transa: CUBLAS_OP_T,
        transb: CUBLAS_OP_N,
        m: product.m,
        n: product.n,
        k: product.k,
        alpha,
        lda: product.lda,
        ldb: product.ldb,
        beta,
        ldc: product.ldc,
    }
}

#[allow(unsafe_code, reason = "cuBLAS reads and writes device memory by address and size")]
fn gemm<T>(
    blas: &CudaBlas,
    config: GemmConfig<T>,
    matrix: &CudaSlice<T>,
    rows: &CudaSlice<T>,
    into: &mut CudaSlice<T>,
) -> Result<(), GpuError>
where
    CudaBlas: Gemm<T>,
{
    let numbers = |columns: i32, step: i32| columns as usize * step as usize;
    assert!(matrix.len() >= numbers(config.m, config.lda), "the matrix has all its rows");
    assert!(rows.len() >= numbers(config.n, config.ldb), "there is a row for every token");
    assert!(into.len() >= numbers(config.n, config.ldc), "there is room for every token");
    // SAFETY: the sizes were just checked against the three buffers, which belong to the stream that `blas` works on.
    Ok(unsafe { blas.gemm(config, matrix, rows, into) }?)
}
