//! Search for a GPU that works. NVIDIA's libraries are loaded at run time, so a program with this code starts without
//! them.

use std::panic::catch_unwind;

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::{cublas, curand, driver};

use super::error::GpuError;

/// Lowest compute capability that the kernels are compiled for.
const CAPABILITY: (i32, i32) = (8, 0);

/// Opens the GPU `index` and runs a test on it; an error says why it can't be used.
pub(super) fn open(index: usize) -> Result<CudaDevice, String> {
    let missing = missing_libraries();
    if !missing.is_empty() {
        return Err(format!("libraries of NVIDIA's are not found: {}", missing.join(", ")));
    }
    // A library that lacks a function makes cudarc panic.
    catch_unwind(|| open_and_try(index))
        .map_err(|_| "a library of NVIDIA's is not one that this program can use".to_owned())?
        .map_err(|error| error.to_string())?
}

#[allow(unsafe_code, reason = "loading a library runs its initialisers")]
fn missing_libraries() -> Vec<&'static str> {
    // SAFETY: these are NVIDIA's own libraries, found the way the system finds any library. Their initialisers have no
    // requirements on the program.
    let found = unsafe {
        [
            ("libcuda", driver::sys::is_culib_present()),
            ("libcublas", cublas::sys::is_culib_present()),
            ("libcurand", curand::sys::is_culib_present()),
        ]
    };
    found.into_iter().filter(|(_, found)| !found).map(|(name, _)| name).collect()
}

/// Opens and tests the GPU. The outer error is the driver's, the inner one ours.
fn open_and_try(index: usize) -> Result<Result<CudaDevice, String>, GpuError> {
    let device = CudaDevice::new_with_stream(index)?;
    trust_the_stream(&device);
    let stream = device.cuda_stream();
    let found = stream.context().compute_capability()?;
    if found < CAPABILITY {
        let ((major, minor), (least, _)) = (found, CAPABILITY);
        return Ok(Err(format!("compute capability {major}.{minor} is below {least}.0")));
    }
    let sent = [7_u32, 11, 13];
    let returned = stream.clone_dtoh(&stream.clone_htod(&sent)?)?;
    if returned != sent {
        return Ok(Err(format!("it returns {returned:?} for {sent:?}")));
    }
    Ok(Ok(device))
}

/// Disables event tracking. Otherwise every launch waits for and records an event per buffer.
#[allow(unsafe_code, reason = "cudarc no longer orders streams among each other")]
fn trust_the_stream(device: &CudaDevice) {
    // SAFETY: the encoder has one stream and all its work is on it, in order.
    unsafe { device.disable_event_tracking() };
}
