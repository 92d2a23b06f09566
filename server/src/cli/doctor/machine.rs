//! Checks of the program's version and of the machine.

use std::thread::available_parallelism;

use super::check::Check;
use crate::cli::text::counted;

pub(super) fn versions() -> Check {
    let version = env!("CARGO_PKG_VERSION");
    let system = std::env::consts::OS;
    let architecture = std::env::consts::ARCH;
    Check::ok(
        "version",
        format!("toolgate {version}, contract toolgate.v1, {system} {architecture}"),
    )
}

/// Checks for vector instructions. Without them the encoder is several times slower.
pub(super) fn processor() -> Check {
    let cores = available_parallelism().map_or(1, usize::from);
    let features = vector_features();
    let detail = format!("{}, vector instructions: {}", counted(cores, "core"), list(&features));
    if features.is_empty() {
        return Check::warn("processor", detail).advice(
            "the encoder will be several times slower than on a processor with AVX2 or NEON",
        );
    }
    Check::ok("processor", detail)
}

fn list(features: &[&str]) -> String {
    if features.is_empty() { "none that the encoder uses".into() } else { features.join(", ") }
}

#[cfg(target_arch = "x86_64")]
fn vector_features() -> Vec<&'static str> {
    let known = [
        ("AVX2", is_x86_feature_detected!("avx2")),
        ("FMA", is_x86_feature_detected!("fma")),
        ("AVX-512", is_x86_feature_detected!("avx512f")),
    ];
    known.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

/// Returns NEON, which every such processor has.
#[cfg(target_arch = "aarch64")]
fn vector_features() -> Vec<&'static str> {
    vec!["NEON"]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn vector_features() -> Vec<&'static str> {
    Vec::new()
}
