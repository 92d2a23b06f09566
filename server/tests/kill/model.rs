//! A model directory that is written and loaded in milliseconds: BERT with one small layer and random weights. Its
//! embeddings do not matter here.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

const HIDDEN: usize = 32;
const WIDE: usize = 64;
const POSITIONS: usize = 64;
const WORDS: [&str; 4] = ["[UNK]", "[CLS]", "[SEP]", "tool"];

pub fn write(folder: &Path) {
    fs::create_dir_all(folder.join("1_Pooling")).expect("a folder");
    let config = json!({
        "model_type": "bert", "vocab_size": WORDS.len(), "hidden_size": HIDDEN,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": WIDE,
        "hidden_act": "gelu", "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
    });
    let pooling = json!({"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": true});
    let module = |path: &str, class: &str| json!({"path": path, "type": format!("models.{class}")});
    let modules = json!([
        module("", "Transformer"),
        module("1_Pooling", "Pooling"),
        module("2", "Normalize")
    ]);
    let files = [
        ("config.json", config),
        ("tokenizer.json", tokenizer()),
        ("modules.json", modules),
        ("1_Pooling/config.json", pooling),
    ];
    for (name, value) in files {
        fs::write(folder.join(name), value.to_string()).expect("a file");
    }
    fs::write(folder.join("model.safetensors"), weights()).expect("a file");
}

fn tokenizer() -> Value {
    let vocabulary: Map<String, Value> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let special = |token: &str, id: u32| json!({"id": token, "ids": [id], "tokens": [token]});
    let around = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    let text = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
    json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "decoder": null,
        "truncation": null, "padding": null,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [around("[CLS]"), text("A"), around("[SEP]")],
            "pair": [text("A"), text("B")],
            "special_tokens": {"[CLS]": special("[CLS]", 1), "[SEP]": special("[SEP]", 2)},
        },
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    })
}

/// Encodes the weights in the safetensors format: the header's length (8 bytes, little endian), a JSON header, the
/// values.
fn weights() -> Vec<u8> {
    let mut header = Map::new();
    let mut values = Vec::new();
    let mut seed = 7_u32;
    for (name, shape) in tensors() {
        let begin = values.len();
        for _ in 0..shape.iter().product::<usize>() {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f64::from(seed) / f64::from(u32::MAX) - 0.5;
            values.extend((value as f32).to_le_bytes());
        }
        let place = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, values.len()]});
        header.insert(name, place);
    }
    let header = Value::from(header).to_string().into_bytes();
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], &header, &values].concat()
}

fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut all = Vec::new();
    for (table, rows) in [("word", WORDS.len()), ("position", POSITIONS), ("token_type", 2)] {
        all.push((format!("embeddings.{table}_embeddings.weight"), vec![rows, HIDDEN]));
    }
    let layer = |name: &str| format!("encoder.layer.0.{name}");
    for (name, outputs, inputs) in [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", WIDE, HIDDEN),
        ("output.dense", HIDDEN, WIDE),
    ] {
        all.push((format!("{}.weight", layer(name)), vec![outputs, inputs]));
        all.push((format!("{}.bias", layer(name)), vec![outputs]));
    }
    for place in ["embeddings".to_owned(), layer("attention.output"), layer("output")] {
        for part in ["weight", "bias"] {
            all.push((format!("{place}.LayerNorm.{part}"), vec![HIDDEN]));
        }
    }
    all
}
