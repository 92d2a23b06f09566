//! Model directory small enough to write in a test, and a reference BERT in plain loops to compare with.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use candle_core::{Device, Tensor};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const HIDDEN: usize = 48;
const WIDE: usize = 80;
const HEADS: usize = 3;
const LAYERS: usize = 2;
const VOCAB: usize = 12;
pub const POSITIONS: usize = 40;
const EPSILON: f64 = 1e-12;

/// Tensors by name, with shape and values.
pub type Tensors = HashMap<String, (Vec<usize>, Vec<f32>)>;

/// Temporary model directory.
pub struct TinyModel {
    pub dir: TempDir,
    pub tensors: Tensors,
}

impl TinyModel {
    pub fn new() -> Self {
        let model = Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            tensors: random_tensors(),
        };
        model.write_json("config.json", &config());
        model.write_json("tokenizer.json", &tokenizer());
        model.write_json("modules.json", &modules(&["Transformer", "Pooling", "Normalize"]));
        model.write_json(
            "1_Pooling/config.json",
            &json!({"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": true}),
        );
        model.write_weights();
        model
    }

    /// Converts the network to the form of XLM-R: one segment, and unused position rows up to the padding token's,
    /// which must never be read.
    pub fn into_xlm_roberta(mut self, pad_token_id: usize) -> Self {
        let unread = pad_token_id + 1;
        self.change(
            "config.json",
            &json!({
                "model_type": "xlm-roberta", "pad_token_id": pad_token_id, "type_vocab_size": 1,
                "max_position_embeddings": POSITIONS + unread,
            }),
        );
        let embeddings = |name: &str| format!("embeddings.{name}_embeddings.weight");
        let (shape, values) =
            self.tensors.get_mut(&embeddings("position")).expect("the table is there");
        shape[0] += unread;
        values.splice(..0, vec![f32::NAN; unread * HIDDEN]);
        let (shape, values) =
            self.tensors.get_mut(&embeddings("token_type")).expect("the table is there");
        shape[0] = 1;
        values.truncate(HIDDEN);
        let prefixed = |(name, tensor)| (format!("roberta.{name}"), tensor);
        self.tensors = self.tensors.drain().map(prefixed).collect();
        self.write_weights();
        self
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn write(&self, name: &str, content: &[u8]) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(path, content).expect("the file is written");
    }

    pub fn write_json(&self, name: &str, value: &Value) {
        self.write(name, value.to_string().as_bytes());
    }

    /// Rewrites the JSON file `name` with some keys replaced; `null` removes a key.
    pub fn change(&self, name: &str, changes: &Value) {
        let text = fs::read(self.path().join(name)).expect("the file is there");
        let mut value: Value = serde_json::from_slice(&text).expect("it is JSON");
        for (key, change) in changes.as_object().expect("changes are an object") {
            match change {
                Value::Null => value.as_object_mut().expect("an object").remove(key),
                change => {
                    value.as_object_mut().expect("an object").insert(key.clone(), change.clone())
                }
            };
        }
        self.write_json(name, &value);
    }

    pub fn write_weights(&self) {
        let tensors: HashMap<String, Tensor> = self
            .tensors
            .iter()
            .map(|(name, (shape, values))| {
                let tensor = Tensor::from_slice(values, shape.as_slice(), &Device::Cpu);
                (name.clone(), tensor.expect("shape and values agree"))
            })
            .collect();
        let path = self.path().join("model.safetensors");
        candle_core::safetensors::save(&tensors, path).expect("the weights are written");
    }
}

pub fn modules(classes: &[&str]) -> Value {
    let paths = ["", "1_Pooling", "2_Normalize", "3"];
    classes
        .iter()
        .zip(paths)
        .map(|(class, path)| json!({"path": path, "type": format!("some.module.{class}")}))
        .collect()
}

fn config() -> Value {
    json!({
        "model_type": "bert", "vocab_size": VOCAB, "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": WIDE,
        "hidden_act": "gelu", "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
        "layer_norm_eps": EPSILON,
    })
}

fn tokenizer() -> Value {
    let words = ["[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let vocab: BTreeMap<&str, usize> =
        words.iter().enumerate().map(|(id, word)| (*word, id)).collect();
    let special = |token: &str, id: u32| json!({"id": token, "ids": [id], "tokens": [token]});
    json!({
        "version": "1.0",
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
                    "pad_id": 0, "pad_type_id": 0, "pad_token": "[UNK]"},
        "added_tokens": [], "normalizer": null, "decoder": null,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"[CLS]": special("[CLS]", 1), "[SEP]": special("[SEP]", 2)},
        },
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    })
}

/// Returns the token ids that the tiny tokenizer gives for words `a` to `i`.
pub fn ids_of(text: &str) -> Vec<u32> {
    let words = text.split_whitespace();
    let ids = words.map(|word| u32::from(word.as_bytes()[0] - b'a') + 3);
    std::iter::once(1).chain(ids).chain([2]).collect()
}

fn random_tensors() -> Tensors {
    let mut seed = 7_u32;
    let mut tensors = Tensors::new();
    let mut add = |name: String, shape: &[usize], scale: f32, shift: f32| {
        let values = (0..shape.iter().product()).map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            shift + scale * (f64::from(seed) / f64::from(u32::MAX) - 0.5) as f32
        });
        tensors.insert(name, (shape.to_vec(), values.collect()));
    };
    for (table, rows) in [("word", VOCAB), ("position", POSITIONS), ("token_type", 2)] {
        add(format!("embeddings.{table}_embeddings.weight"), &[rows, HIDDEN], 2.0, 0.0);
    }
    let layers = (0..LAYERS).flat_map(|layer| {
        let at = move |name: &str| format!("encoder.layer.{layer}.{name}");
        [
            (at("attention.self.query"), HIDDEN, HIDDEN),
            (at("attention.self.key"), HIDDEN, HIDDEN),
            (at("attention.self.value"), HIDDEN, HIDDEN),
            (at("attention.output.dense"), HIDDEN, HIDDEN),
            (at("intermediate.dense"), WIDE, HIDDEN),
            (at("output.dense"), HIDDEN, WIDE),
        ]
    });
    for (name, outputs, inputs) in layers {
        add(format!("{name}.weight"), &[outputs, inputs], 0.9, 0.0);
        add(format!("{name}.bias"), &[outputs], 0.5, 0.0);
    }
    let norms = (0..LAYERS).flat_map(|layer| {
        ["attention.output", "output"].map(|part| format!("encoder.layer.{layer}.{part}"))
    });
    for at in norms.chain(["embeddings".into()]) {
        add(format!("{at}.LayerNorm.weight"), &[HIDDEN], 0.5, 1.0);
        add(format!("{at}.LayerNorm.bias"), &[HIDDEN], 0.5, 0.0);
    }
    tensors
}

/// Returns the token vectors of one text, computed in f64 directly from the definition.
pub fn reference(tensors: &Tensors, ids: &[u32], activation: fn(f64) -> f64) -> Vec<Vec<f64>> {
    let net = Reference { tensors };
    let mut hidden: Vec<Vec<f64>> = ids
        .iter()
        .enumerate()
        .map(|(position, id)| {
            let word = net.row("embeddings.word_embeddings.weight", *id as usize);
            let place = net.row("embeddings.position_embeddings.weight", position);
            let segment = net.row("embeddings.token_type_embeddings.weight", 0);
            net.norm("embeddings", &add(&add(&word, &place), &segment))
        })
        .collect();
    for layer in 0..LAYERS {
        let at = |name: &str| format!("encoder.layer.{layer}.{name}");
        let attended = net.attention(&at("attention.self"), &hidden);
        for (row, attended) in hidden.iter_mut().zip(attended) {
            let out = net.linear(&at("attention.output.dense"), &attended);
            let middle = net.norm(&at("attention.output"), &add(&out, row));
            let wide = net.linear(&at("intermediate.dense"), &middle);
            let wide: Vec<f64> = wide.into_iter().map(activation).collect();
            let out = net.linear(&at("output.dense"), &wide);
            *row = net.norm(&at("output"), &add(&out, &middle));
        }
    }
    hidden
}

struct Reference<'a> {
    tensors: &'a Tensors,
}

impl Reference<'_> {
    fn row(&self, name: &str, index: usize) -> Vec<f64> {
        let (shape, values) = &self.tensors[name];
        let width = shape.last().copied().unwrap_or_default();
        let row = &values[index * width..(index + 1) * width];
        row.iter().map(|x| f64::from(*x)).collect()
    }

    fn linear(&self, at: &str, x: &[f64]) -> Vec<f64> {
        let bias = self.row(&format!("{at}.bias"), 0);
        let outputs = bias.into_iter().enumerate();
        outputs.map(|(i, bias)| bias + dot(&self.row(&format!("{at}.weight"), i), x)).collect()
    }

    fn norm(&self, at: &str, x: &[f64]) -> Vec<f64> {
        let count = x.len() as f64;
        let mean = x.iter().sum::<f64>() / count;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let gamma = self.row(&format!("{at}.LayerNorm.weight"), 0);
        let beta = self.row(&format!("{at}.LayerNorm.bias"), 0);
        x.iter()
            .zip(gamma.iter().zip(beta))
            .map(|(x, (gamma, beta))| (x - mean) / (variance + EPSILON).sqrt() * gamma + beta)
            .collect()
    }

    fn attention(&self, at: &str, hidden: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let project = |part: &str| -> Vec<Vec<f64>> {
            let at = format!("{at}.{part}");
            hidden.iter().map(|x| self.linear(&at, x)).collect()
        };
        let queries = project("query");
        let keys = project("key");
        let values = project("value");
        let width = HIDDEN / HEADS;
        let attend = |query: &Vec<f64>| {
            let mut out = vec![0.0; HIDDEN];
            for head in (0..HEADS).map(|head| head * width..(head + 1) * width) {
                let scores = keys.iter().map(|key| {
                    (dot(&query[head.clone()], &key[head.clone()]) / (width as f64).sqrt()).exp()
                });
                let scores: Vec<f64> = scores.collect();
                let total: f64 = scores.iter().sum();
                for (score, value) in scores.iter().zip(&values) {
                    for i in head.clone() {
                        out[i] += score / total * value[i];
                    }
                }
            }
            out
        };
        queries.iter().map(attend).collect()
    }
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
