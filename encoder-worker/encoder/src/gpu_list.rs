//! List of the GPUs that a process sees, as one process tells it to another.

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::cuda::find_gpus;

/// GPUs that a process sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuList {
    /// Indices of those that work.
    pub usable: Vec<usize>,
    /// Reasons that the others can't be used, or that none can, in words.
    pub problems: Vec<String>,
}

impl GpuList {
    /// Finds the GPUs that this process sees, and runs a test on each. That loads NVIDIA's libraries into the process,
    /// where a broken driver may hang or end it.
    #[must_use]
    pub fn find() -> Self {
        find_gpus()
    }

    /// Returns a list without a GPU, for this reason.
    #[must_use]
    pub fn none(problem: String) -> Self {
        Self { usable: Vec::new(), problems: vec![problem] }
    }
}

#[cfg(not(target_os = "linux"))]
fn find_gpus() -> GpuList {
    GpuList::none("GPUs are used on Linux only".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds on a machine without a driver and on one with a driver and GPUs alike.
    #[test]
    fn a_gpu_works_or_there_is_a_reason() {
        let found = GpuList::find();
        assert!(!found.usable.is_empty() || !found.problems.is_empty(), "{found:?}");
    }
}
