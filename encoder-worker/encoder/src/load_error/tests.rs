//! Tests with wrong and damaged model directories: each error names the file, and the key or tensor.

use std::fs;

use serde_json::{Value, json};

use crate::encoder::{EncoderConfig, EncoderHandle};
use crate::tiny_model::{HIDDEN, POSITIONS, TinyModel, modules};

fn config() -> EncoderConfig {
    EncoderConfig { threads: std::num::NonZeroUsize::new(1), ..EncoderConfig::default() }
}

/// Checks that loading fails with a message that contains every one of `parts`.
fn check(model: &TinyModel, parts: &[&str]) {
    let error =
        EncoderHandle::spawn(model.path(), &config()).map(|_| ()).expect_err("loading fails");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} does not mention {part:?}");
    }
}

fn check_change(file: &str, changes: &Value, parts: &[&str]) {
    let model = TinyModel::new();
    model.change(file, changes);
    check(&model, &[&[file], parts].concat());
}

#[test]
fn the_tiny_model_itself_loads() {
    let model = TinyModel::new();
    let encoder = EncoderHandle::spawn(model.path(), &config()).expect("it loads");
    assert_eq!(encoder.model().dimensions, HIDDEN);
    assert_eq!(encoder.model().max_tokens, 40);
}

#[test]
fn a_missing_file_is_named() {
    for file in [
        "config.json",
        "tokenizer.json",
        "modules.json",
        "1_Pooling/config.json",
        "model.safetensors",
    ] {
        let model = TinyModel::new();
        fs::remove_file(model.path().join(file)).expect("the file was there");
        check(&model, &["cannot read", file]);
    }
}

#[test]
fn malformed_json_is_named() {
    for file in ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"] {
        let model = TinyModel::new();
        model.write(file, b"{\"half\": ");
        check(&model, &[file]);
    }
    let model = TinyModel::new();
    model.write("sentence_bert_config.json", b"[]");
    check(&model, &["sentence_bert_config.json"]);
}

#[test]
fn unsupported_and_missing_keys_are_named() {
    let check = |changes: Value, parts: &[&str]| check_change("config.json", &changes, parts);
    check(json!({"hidden_size": null}), &["hidden_size"]);
    check(json!({"hidden_size": "wide"}), &["invalid type"]);
    check(
        json!({"model_type": "mpnet"}),
        &["model_type", "mpnet", "is not supported; there is bert, roberta, xlm-roberta"],
    );
    check(json!({"hidden_act": "swish"}), &["hidden_act", "unknown activation", "swish"]);
    check(json!({"position_embedding_type": "relative_key"}), &["position_embedding_type"]);
    check(json!({"num_attention_heads": 5}), &["num_attention_heads", "hidden_size"]);
    check(json!({"num_attention_heads": 0}), &["num_attention_heads", "at least 1"]);
    check(json!({"layer_norm_eps": 0.0}), &["layer_norm_eps"]);
}

#[test]
fn unsupported_pooling_is_named() {
    let pooling = "1_Pooling/config.json";
    let check_pooling = |changes: Value, parts: &[&str]| check_change(pooling, &changes, parts);
    check_pooling(json!({"pooling_mode_mean_tokens": false}), &["no pooling mode"]);
    check_pooling(json!({"pooling_mode_cls_token": true}), &["mean_tokens + cls_token"]);
    check_pooling(json!({"pooling_mode": "lasttoken"}), &["lasttoken"]);
    check_pooling(json!({"word_embedding_dimension": 7}), &["word_embedding_dimension", "48"]);

    let model = TinyModel::new();
    model.write_json("modules.json", &modules(&["Transformer", "Pooling", "Dense"]));
    check(&model, &["modules.json", "Dense"]);
    model.write_json(
        "modules.json",
        &json!([{"path": "", "type": "m.Transformer"}, {"path": "../away", "type": "m.Pooling"}]),
    );
    check(&model, &["modules.json", "path", "../away"]);
}

#[test]
fn limits_that_leave_no_room_are_refused() {
    let model = TinyModel::new();
    model.write_json("sentence_bert_config.json", &json!({"max_seq_length": 0}));
    check(&model, &["sentence_bert_config.json", "max_seq_length"]);
    model.write_json("sentence_bert_config.json", &json!({"max_seq_length": 2}));
    check(&model, &["tokenizer.json", "2 special tokens"]);
}

#[test]
fn a_model_reads_no_more_tokens_than_it_has_positions_for() {
    let model = TinyModel::new().into_xlm_roberta(1);
    let max_tokens = || {
        let encoder = EncoderHandle::spawn(model.path(), &config()).expect("it loads");
        encoder.model().max_tokens
    };
    assert_eq!(max_tokens(), POSITIONS, "max_position_embeddings is two more");
    model.write_json("sentence_bert_config.json", &json!({"max_seq_length": POSITIONS + 2}));
    assert_eq!(max_tokens(), POSITIONS);
    model.write_json("sentence_bert_config.json", &json!({"max_seq_length": 12}));
    assert_eq!(max_tokens(), 12);

    let none_left = &["max_position_embeddings", "is 2", "begin at pad_token_id + 1, 2"];
    model.change("config.json", &json!({"max_position_embeddings": 2}));
    check(&model, none_left);
    let end = "begin at pad_token_id + 1";
    model.change("config.json", &json!({"pad_token_id": i64::MAX}));
    check(&model, &["max_position_embeddings", end]);
    model.change("config.json", &json!({"pad_token_id": -1}));
    check(&model, &["config.json", "pad_token_id", "at least 0"]);
    model.change("config.json", &json!({"model_type": "bert"}));
    check(&model, &["tokenizer.json", "limit of 2"]);
}

#[test]
fn damaged_weights_are_named() {
    let mut model = TinyModel::new();
    model.write("model.safetensors", b"\x08\0\0\0\0\0\0\0not json");
    check(&model, &["model.safetensors"]);

    let name = "encoder.layer.1.output.dense.bias";
    let tensor = model.tensors.remove(name).expect("it was there");
    model.write_weights();
    check(&model, &["model.safetensors", name, "missing"]);

    model.tensors.insert(name.into(), (vec![4, 12], tensor.1));
    model.write_weights();
    check(&model, &["model.safetensors", name, "[4, 12]", "[48]"]);

    let whole = TinyModel::new();
    let path = whole.path().join("model.safetensors");
    let bytes = fs::read(&path).expect("the weights are there");
    whole.write("model.safetensors", &bytes[..bytes.len() - 10]);
    check(&whole, &["model.safetensors"]);
}

#[test]
fn a_tokenizer_with_more_tokens_than_the_model_is_refused() {
    let model = TinyModel::new();
    let mut tokenizer: Value = serde_json::from_slice(
        &fs::read(model.path().join("tokenizer.json")).expect("the file is there"),
    )
    .expect("it is JSON");
    tokenizer["model"]["vocab"]["surplus"] = json!(12);
    model.write_json("tokenizer.json", &tokenizer);
    check(&model, &["tokenizer.json", "token id 12", "vocab_size 12"]);
}

#[test]
fn a_special_token_beyond_the_model_is_refused() {
    let model = TinyModel::new();
    let mut tokenizer: Value = serde_json::from_slice(
        &fs::read(model.path().join("tokenizer.json")).expect("the file is there"),
    )
    .expect("it is JSON");
    tokenizer["post_processor"]["special_tokens"]["[SEP]"]["ids"] = json!([4_000]);
    model.write_json("tokenizer.json", &tokenizer);
    check(&model, &["tokenizer.json", "token id 4000", "vocab_size 12"]);
}

#[test]
fn weights_that_give_no_numbers_are_found_at_start() {
    let mut model = TinyModel::new();
    let norm =
        model.tensors.get_mut("encoder.layer.0.output.LayerNorm.weight").expect("it is there");
    norm.1[0] = f32::NAN;
    model.write_weights();
    check(&model, &["first run", "not finite"]);
}

#[test]
fn the_fingerprint_follows_whatever_changes_embeddings() {
    let fingerprint = |model: &TinyModel| {
        let encoder = EncoderHandle::spawn(model.path(), &config()).expect("it loads");
        encoder.model().fingerprint.clone()
    };
    let mut model = TinyModel::new();
    let first = fingerprint(&model);
    assert_eq!(fingerprint(&TinyModel::new()), first, "same files, same fingerprint");
    model.write_json("sentence_bert_config.json", &json!({"max_seq_length": 20}));
    let second = fingerprint(&model);
    let bias = model.tensors.get_mut("embeddings.LayerNorm.bias").expect("it is there");
    bias.1[0] += 0.25;
    model.write_weights();
    let third = fingerprint(&model);
    assert!(first != second && second != third && first != third);
}
