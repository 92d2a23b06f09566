//! Devices that an encoder can run on, and number formats.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Device to run a model on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// The first GPU if there is one that works, or else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU with this index, without a fallback.
    Cuda(usize),
}

/// Number format in which weights are stored and multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumberFormat {
    /// The fastest format that retrieves as well as f32: int8 on a CPU, bf16 on a GPU.
    #[default]
    Auto,
    /// 32-bit floats.
    F32,
    /// 16-bit floats with the exponent range of f32; sums are in f32.
    Bf16,
    /// 8-bit integers, scaled per output channel and per token. CPU only.
    Int8,
}

/// Error for a name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{found:?} is not {expected}")]
pub struct UnknownName {
    found: String,
    expected: &'static str,
}

impl FromStr for Device {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(|index| index.parse().ok()).map_or_else(
                || Err(unknown(text, "a device: auto, cpu, cuda:0, cuda:1, ...")),
                |index| Ok(Self::Cuda(index)),
            ),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for NumberFormat {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            "auto" => Ok(Self::Auto),
            "f32" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            "int8" => Ok(Self::Int8),
            _ => Err(unknown(text, "a number format: auto, f32, bf16, int8")),
        }
    }
}

impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        })
    }
}

fn unknown(found: &str, expected: &'static str) -> UnknownName {
    UnknownName { found: found.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for device in [Device::Auto, Device::Cpu, Device::Cuda(0), Device::Cuda(7)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for format in
            [NumberFormat::Auto, NumberFormat::F32, NumberFormat::Bf16, NumberFormat::Int8]
        {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        for text in ["", "gpu", "cuda:", "cuda:x", "CPU"] {
            let error = text.parse::<Device>().expect_err("unknown").to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("cuda:0"), "{error}");
        }
        assert!("fp16".parse::<NumberFormat>().expect_err("unknown").to_string().contains("bf16"));
    }
}
