//! The setting of CUDA that has to be in the environment before the driver is loaded.

/// Variable by which CUDA decides when it loads the kernels of a library.
pub const MODULE_LOADING: &str = "CUDA_MODULE_LOADING";

/// Has CUDA load all kernels of a library at its start, unless the environment has [`MODULE_LOADING`] already. By default
/// each kernel is loaded when it is first called, and that call waits for it.
///
/// # Safety
/// No other thread of the process may read or write the environment meanwhile. It is to be called before there is one.
#[allow(unsafe_code, reason = "the environment belongs to all threads of a process")]
pub unsafe fn load_kernels_eagerly() {
    if std::env::var_os(MODULE_LOADING).is_none() {
        // SAFETY: the caller sees to it that no other thread uses the environment.
        unsafe { std::env::set_var(MODULE_LOADING, "EAGER") };
    }
}
