//! Instruction sets of this CPU, as far as the choice of kernels depends on them.

use pulp::{Arch, Simd, WithSimd};

use crate::device::Device;
use crate::load_error::LoadError;

/// Environment variable that names the widest instruction set to use, to measure or to rule out the others.
const LIMIT_VARIABLE: &str = "TOOLGATE_CPU";

/// Instruction sets; each includes all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Portable,
    Avx2,
    AvxVnni,
    Avx512,
}

/// CPU features that decide the choice of kernels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Isa {
    /// Instruction set for code that the compiler vectorises.
    pub(super) arch: Arch,
    /// True if AVX2 and FMA may be used.
    pub(super) avx2: bool,
    /// True if 8-bit dot products on 256 bits may be used.
    pub(super) avx_vnni: bool,
    /// True if 8-bit dot products on 512 bits may be used.
    pub(super) avx512_vnni: bool,
    /// True if bf16 dot products on 512 bits may be used.
    pub(super) avx512_bf16: bool,
}

impl Isa {
    /// Returns the features of this CPU, up to the level that the environment allows.
    pub(super) fn detect() -> Result<Self, LoadError> {
        match std::env::var(LIMIT_VARIABLE) {
            Ok(limit) => Self::up_to(&limit),
            Err(_) => Ok(Self::limited(Level::Avx512)),
        }
    }

    /// Returns the features of this CPU, up to the named level.
    pub(super) fn up_to(limit: &str) -> Result<Self, LoadError> {
        let level = match limit {
            "portable" => Level::Portable,
            "avx2" => Level::Avx2,
            "avxvnni" => Level::AvxVnni,
            "avx512" => Level::Avx512,
            _ => {
                let cause = format!(
                    "{LIMIT_VARIABLE} is {limit:?}; it may be portable, avx2, avxvnni or avx512"
                );
                return Err(LoadError::Device { device: Device::Cpu, cause });
            }
        };
        Ok(Self::limited(level))
    }

    #[cfg(target_arch = "x86_64")]
    fn limited(limit: Level) -> Self {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = limit >= Level::Avx2 && has!("avx2") && has!("fma");
        let avx512 = limit >= Level::Avx512
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512dq")
            && has!("avx512vl");
        Self {
            arch: arch(limit),
            avx2,
            avx_vnni: avx2 && limit >= Level::AvxVnni && has!("avxvnni"),
            avx512_vnni: avx512 && has!("avx512vnni"),
            avx512_bf16: avx512 && has!("avx512bf16"),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn limited(limit: Level) -> Self {
        let arch = if limit == Level::Portable { Arch::Scalar } else { Arch::new() };
        Self { arch, avx2: false, avx_vnni: false, avx512_vnni: false, avx512_bf16: false }
    }
}

#[cfg(target_arch = "x86_64")]
fn arch(limit: Level) -> Arch {
    use pulp::x86::V3;
    match limit {
        Level::Portable => Arch::Scalar,
        Level::Avx2 | Level::AvxVnni => V3::try_new().map_or(Arch::Scalar, Arch::V3),
        Level::Avx512 => Arch::new(),
    }
}

/// Runs `code` with all the vector instructions of `arch`; the compiler vectorises it for them.
///
/// The bound is `FnMut`, because a call by value goes through a function that the compiler adds. That function has none
/// of the instructions, and the closure would be inlined into it instead.
#[inline(always)]
pub(super) fn vectorised<R>(arch: Arch, code: impl FnMut() -> R) -> R {
    arch.dispatch(Vectorised(code))
}

struct Vectorised<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Vectorised<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_rules_out_what_is_above_it() {
        let portable = Isa::up_to("portable").expect("known");
        assert!(!portable.avx2 && !portable.avx_vnni && !portable.avx512_vnni);
        assert!(matches!(portable.arch, Arch::Scalar));
        let avx2 = Isa::up_to("avx2").expect("known");
        assert!(!avx2.avx_vnni && !avx2.avx512_vnni && !avx2.avx512_bf16);
        let error = Isa::up_to("sse").expect_err("unknown").to_string();
        assert!(error.contains("\"sse\"") && error.contains("avx2"), "{error}");
    }
}
