//! Limits of the kernels: supported model sizes and number formats.

use crate::device::{Device, NumberFormat};
use crate::load_error::LoadError;
use crate::model_dir::{BertConfig, CONFIG_FILE, ModelDir};

/// Head sizes that the attention kernel is compiled for.
const HEAD_SIZES: [usize; 2] = [32, 64];
/// Widest token vector that the layer norm's registers hold (`MAX_PAIRS` in `kernels/norm.cuh`).
const MAX_HIDDEN: usize = 1024;

/// Number format on the GPU; all sums are in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GpuFormat {
    F32,
    Bf16,
}

/// Returns the GPU format for the requested `format` on `device`.
pub(super) fn gpu_format(format: NumberFormat, device: Device) -> Result<GpuFormat, LoadError> {
    match format {
        NumberFormat::Auto | NumberFormat::Bf16 => Ok(GpuFormat::Bf16),
        NumberFormat::F32 => Ok(GpuFormat::F32),
        NumberFormat::Int8 => Err(LoadError::Format { format, device, available: "bf16, f32" }),
    }
}

/// Refuses a network whose sizes the kernels don't support.
pub(super) fn check_sizes(model: &ModelDir) -> Result<(), LoadError> {
    let refuse = |key: &str, problem: String| {
        Err(LoadError::Key { path: model.file(CONFIG_FILE), key: key.into(), problem })
    };
    let bert: &BertConfig = &model.bert;
    let size = bert.head_size();
    if !HEAD_SIZES.contains(&size) {
        return refuse(
            "num_attention_heads",
            format!("gives heads of {size}; on a GPU they may have 32 or 64"),
        );
    }
    if bert.hidden_size > MAX_HIDDEN {
        return refuse("hidden_size", format!("must be at most {MAX_HIDDEN} on a GPU"));
    }
    if !bert.intermediate_size.is_multiple_of(2) {
        return refuse("intermediate_size", "must be even on a GPU".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tiny_model::TinyModel;

    fn check(changes: &Value, refused: Option<&str>) {
        let model = TinyModel::new();
        model.write_json("1_Pooling/config.json", &json!({"pooling_mode_mean_tokens": true}));
        model.change("config.json", changes);
        let dir = ModelDir::open(model.path()).expect("the directory is right");
        let error = check_sizes(&dir).err().map(|error| error.to_string());
        assert_eq!(error.is_some(), refused.is_some(), "{changes}: {error:?}");
        if let (Some(error), Some(key)) = (error, refused) {
            assert!(error.contains("config.json") && error.contains(key), "{error}");
        }
    }

    #[test]
    fn sizes_that_no_kernel_has_are_refused_by_key() {
        check(&json!({"hidden_size": 384, "num_attention_heads": 12}), None);
        check(&json!({"hidden_size": 768, "num_attention_heads": 12}), None);
        check(&json!({}), Some("num_attention_heads"));
        check(&json!({"hidden_size": 1056, "num_attention_heads": 33}), Some("hidden_size"));
        check(
            &json!({"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 81}),
            Some("intermediate_size"),
        );
    }

    #[test]
    fn a_gpu_has_no_int8_and_says_what_it_has() {
        let device = Device::Cuda(1);
        assert_eq!(gpu_format(NumberFormat::Auto, device).expect("known"), GpuFormat::Bf16);
        assert_eq!(gpu_format(NumberFormat::F32, device).expect("known"), GpuFormat::F32);
        let error = gpu_format(NumberFormat::Int8, device).expect_err("refused").to_string();
        assert!(error.contains("int8") && error.contains("cuda:1") && error.contains("bf16"));
    }
}
