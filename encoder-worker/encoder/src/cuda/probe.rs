//! Search for a GPU that works. NVIDIA's libraries are loaded at run time, so a program with this code starts without
//! them. cudarc panics when it can't load a library or a function of one: both are looked for before it is called.

use std::panic::catch_unwind;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use cudarc::{cublas, driver};
use thiserror::Error;

use super::error::GpuError;
use crate::device::Device;
use crate::gpu_list::GpuList;

/// Lowest compute capability that the kernels are compiled for.
const CAPABILITY: (i32, i32) = (8, 0);

/// Functions of the driver that this backend calls through cudarc. Drivers from 525 on have all of them.
const DRIVER_FUNCTIONS: [&str; 32] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// Functions of cuBLAS that this backend calls through cudarc. Versions 12 and 13 have all of them.
const BLAS_FUNCTIONS: [&str; 5] =
    ["cublasCreate_v2", "cublasDestroy_v2", "cublasGemmEx", "cublasSetStream_v2", "cublasSgemm_v2"];

/// GPU with one stream, on which all work of an encoder is done in order.
pub(super) struct OpenGpu {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
}

/// Reason that a GPU can't be used.
#[derive(Debug, Error)]
pub(super) enum Unusable {
    #[error("no NVIDIA driver is installed (libcuda.so.1 is not found)")]
    NoDriver,
    #[error(
        "cuBLAS is not installed (neither libcublas.so.12 nor libcublas.so.13 is found); it is in Toolgate's CUDA \
         image, in NVIDIA's CUDA toolkit, and in the Python packages nvidia-cublas-cu12 and nvidia-cublas"
    )]
    NoBlas,
    #[error("{library} lacks {function}; the driver must be of the 525 series or later")]
    NoFunction { library: &'static str, function: &'static str },
    #[error("{0}")]
    Gpu(#[from] GpuError),
    #[error("the driver finds no GPU")]
    NoGpu,
    #[error("compute capability {}.{} is below {}.{}", .0.0, .0.1, CAPABILITY.0, CAPABILITY.1)]
    Capability((i32, i32)),
    #[error("it returns {0:?} for {TEST_PATTERN:?}")]
    WrongAnswer(Vec<u32>),
    #[error("a library of NVIDIA's made the program panic")]
    Panic,
}

/// Numbers that are copied to a GPU and back before it is used.
const TEST_PATTERN: [u32; 3] = [7, 11, 13];

/// Returns true if NVIDIA's driver is installed.
#[allow(unsafe_code, reason = "loading a library runs its initialisers")]
pub(crate) fn has_driver() -> bool {
    // SAFETY: this is NVIDIA's own library, found the way the system finds any library. Its initialisers have no
    // requirements on the program.
    unsafe { driver::sys::is_culib_present() }
}

/// Opens the GPU `index` and runs a test on it.
pub(super) fn open(index: usize) -> Result<OpenGpu, Unusable> {
    find_driver()?;
    find_blas()?;
    caught(|| open_and_try(index))
}

/// Finds the GPUs that this process sees, and runs the test of [`open`] on each.
pub(crate) fn find_gpus() -> GpuList {
    let count = match count() {
        Ok(count) => count,
        Err(unusable) => return GpuList::none(unusable.to_string()),
    };
    let mut found = GpuList::default();
    for index in 0..count {
        match caught(|| open_and_try(index)) {
            Ok(_closed) => found.usable.push(index),
            Err(unusable) => found.problems.push(format!("{}: {unusable}", Device::Cuda(index))),
        }
    }
    found
}

/// Returns the number of GPUs that this process sees, at least one.
fn count() -> Result<usize, Unusable> {
    find_driver()?;
    find_blas()?;
    let count =
        caught(|| CudaContext::device_count().map_err(|error| GpuError::from(error).into()))?;
    usize::try_from(count).ok().filter(|count| *count > 0).ok_or(Unusable::NoGpu)
}

/// Turns a panic into an error, for what the search before a call can't see.
fn caught<T>(
    call: impl FnOnce() -> Result<T, Unusable> + std::panic::UnwindSafe,
) -> Result<T, Unusable> {
    catch_unwind(call).unwrap_or(Err(Unusable::Panic))
}

fn find_driver() -> Result<(), Unusable> {
    if !has_driver() {
        return Err(Unusable::NoDriver);
    }
    find_functions("libcuda", &DRIVER_FUNCTIONS, has_driver_function)
}

#[allow(unsafe_code, reason = "loading a library runs its initialisers")]
fn find_blas() -> Result<(), Unusable> {
    // SAFETY: as for the driver.
    if !unsafe { cublas::sys::is_culib_present() } {
        return Err(Unusable::NoBlas);
    }
    find_functions("libcublas", &BLAS_FUNCTIONS, has_blas_function)
}

/// Returns an error with the first of `functions` that `library` does not have.
fn find_functions(
    library: &'static str,
    functions: &'static [&'static str],
    has: impl Fn(&str) -> bool,
) -> Result<(), Unusable> {
    let missing = functions.iter().copied().find(|function| !has(function));
    missing.map_or(Ok(()), |function| Err(Unusable::NoFunction { library, function }))
}

#[allow(unsafe_code, reason = "a function's type is not checked when it is looked up")]
fn has_driver_function(name: &str) -> bool {
    // SAFETY: the library is there, so nothing panics; the address is not called here.
    unsafe { driver::sys::culib().get::<*const ()>(name).is_ok() }
}

#[allow(unsafe_code, reason = "a function's type is not checked when it is looked up")]
fn has_blas_function(name: &str) -> bool {
    // SAFETY: the library is there, so nothing panics; the address is not called here.
    unsafe { cublas::sys::culib().get::<*const ()>(name).is_ok() }
}

fn open_and_try(index: usize) -> Result<OpenGpu, Unusable> {
    let context = CudaContext::new(index).map_err(GpuError::from)?;
    trust_the_stream(&context);
    let found = context.compute_capability().map_err(GpuError::from)?;
    if found < CAPABILITY {
        return Err(Unusable::Capability(found));
    }
    let stream = context.new_stream().map_err(GpuError::from)?;
    let sent = stream.clone_htod(&TEST_PATTERN).map_err(GpuError::from)?;
    let returned = stream.clone_dtoh(&sent).map_err(GpuError::from)?;
    if returned != TEST_PATTERN {
        return Err(Unusable::WrongAnswer(returned));
    }
    Ok(OpenGpu { context, stream })
}

/// Disables event tracking. Otherwise every launch waits for and records an event per buffer.
#[allow(unsafe_code, reason = "cudarc no longer orders streams among each other")]
fn trust_the_stream(context: &CudaContext) {
    // SAFETY: the encoder has one stream and all its work is on it, in order.
    unsafe { context.disable_event_tracking() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_an_old_driver_lacks_is_named_and_never_called() {
        assert!(find_functions("libcuda", &DRIVER_FUNCTIONS, |_| true).is_ok());
        let error = find_functions("libcuda", &DRIVER_FUNCTIONS, |name| name != "cuMemAllocAsync");
        let error = error.expect_err("one is missing").to_string();
        assert!(
            error.contains("libcuda lacks cuMemAllocAsync") && error.contains("525"),
            "{error}"
        );
    }

    #[test]
    fn what_is_missing_is_said_by_the_name_of_its_file() {
        assert!(Unusable::NoDriver.to_string().contains("libcuda.so.1"));
        let error = Unusable::NoBlas.to_string();
        assert!(error.contains("libcublas.so.12") && error.contains("libcublas.so.13"), "{error}");
        let error = Unusable::Capability((7, 5)).to_string();
        assert_eq!(error, "compute capability 7.5 is below 8.0");
    }

    #[test]
    fn a_panic_of_a_library_is_an_error() {
        assert!(matches!(caught::<()>(|| panic!("no symbol")), Err(Unusable::Panic)));
    }

    /// Holds on a machine without a driver and on one with a driver and GPUs alike.
    #[test]
    fn a_gpu_that_is_not_there_is_an_error() {
        let error = open(4_095).err().expect("no machine has so many").to_string();
        assert!(has_driver() || error.contains("no NVIDIA driver"), "{error}");
    }
}
