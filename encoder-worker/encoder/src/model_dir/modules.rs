//! Reader of `modules.json` and of the pooling module's own file: the processing of token vectors. It assumes no
//! defaults: a directory that does not specify them is refused.

use std::path::{Component, Path};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{SmallFiles, key_error};
use crate::load_error::LoadError;

const MODULES_FILE: &str = "modules.json";

/// Method that combines the token vectors of one text into one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all tokens.
    Mean,
    /// Vector of the first token.
    Cls,
    /// Largest value over all tokens, per dimension.
    Max,
}

/// Steps after the transformer.
pub(super) struct Steps {
    pub(super) pooling: Pooling,
    pub(super) normalise: bool,
}

#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

impl Module {
    /// Returns the class name without the Python module that contains it, which has moved over time.
    fn class(&self) -> &str {
        self.kind.rsplit('.').next().unwrap_or_default()
    }
}

pub(super) fn read(files: &mut SmallFiles<'_>, hidden_size: usize) -> Result<Steps, LoadError> {
    let modules: Vec<Module> = files.parse(MODULES_FILE)?;
    let path = files.directory.join(MODULES_FILE);
    let refuse = |problem: String| Err(key_error(&path, "type", problem));
    let classes: Vec<&str> = modules.iter().map(Module::class).collect();
    let normalise = match classes.as_slice() {
        ["Transformer", "Pooling"] => false,
        ["Transformer", "Pooling", "Normalize"] => true,
        other => {
            return refuse(format!(
                "modules {} are not supported, only Transformer, Pooling and Normalize, in this order",
                other.join(", ")
            ));
        }
    };
    if !modules[0].path.is_empty() {
        return refuse("a Transformer module in a folder of its own is not supported".into());
    }
    let pooling = read_pooling(files, &modules[1], hidden_size)?;
    Ok(Steps { pooling, normalise })
}

fn read_pooling(
    files: &mut SmallFiles<'_>,
    module: &Module,
    hidden_size: usize,
) -> Result<Pooling, LoadError> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !Path::new(&module.path).components().all(inside) {
        let problem = format!("{:?} leads out of the model directory", module.path);
        return Err(key_error(&files.directory.join(MODULES_FILE), "path", problem));
    }
    let name = Path::new(&module.path).join("config.json");
    let name = name.to_string_lossy();
    let settings: Map<String, Value> = files.parse(&name)?;
    let path = files.directory.join(name.as_ref());
    let width = settings.get("word_embedding_dimension");
    if let Some(width) = width.filter(|width| width.as_u64() != Some(hidden_size as u64)) {
        let problem = format!("is {width}, but config.json has hidden_size {hidden_size}");
        return Err(key_error(&path, "word_embedding_dimension", problem));
    }
    pooling_mode(&settings, &path)
}

/// Reads the pooling mode. Old files turn on one of several flags; newer ones name the mode.
fn pooling_mode(settings: &Map<String, Value>, path: &Path) -> Result<Pooling, LoadError> {
    let named = settings.get("pooling_mode").map(|mode| match mode {
        Value::String(mode) => vec![mode.as_str()],
        _ => vec!["(not a string)"],
    });
    let modes = named.unwrap_or_else(|| {
        let flags = settings.iter().filter(|(_, on)| **on == Value::Bool(true));
        flags.filter_map(|(key, _)| key.strip_prefix("pooling_mode_")).collect()
    });
    match modes.as_slice() {
        ["mean" | "mean_tokens"] => Ok(Pooling::Mean),
        ["cls" | "cls_token"] => Ok(Pooling::Cls),
        ["max" | "max_tokens"] => Ok(Pooling::Max),
        [] => Err(key_error(path, "pooling_mode", "no pooling mode is set")),
        other => {
            let problem =
                format!("{} is not supported, only one of mean, cls and max", other.join(" + "));
            Err(key_error(path, "pooling_mode", problem))
        }
    }
}
