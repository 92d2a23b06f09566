//! Per-query measures in a report, with which a later evaluation of the same queries is compared. A hash identifies
//! each query, so that a report contains no text of users.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::input_error::{InputError, read_text};
use super::metrics::Measure;
use super::sample::{Column, Sample, Samples};

const EXPECTED: &str =
    "has no \"per_query\": write the earlier report with --json FILE --per-query";

/// Key of the queries' hashes, beside the keys of the measures.
const QUERY: &str = "query";

/// Part of a report that is read.
#[derive(Deserialize)]
struct Report {
    per_query: Option<PerQuery>,
}

#[derive(Deserialize)]
struct PerQuery {
    labelled: Map<String, Value>,
    no_tool: Map<String, Value>,
}

/// Returns the samples as they stand in a report.
#[must_use]
pub fn to_json(samples: &Samples) -> Value {
    json!({"labelled": columns(&samples.labelled), "no_tool": columns(&samples.no_tool)})
}

fn columns(sample: &Sample) -> Value {
    let columns = sample.columns.iter();
    let columns = columns.map(|column| (column.measure.name(), json!(column.values)));
    let keys = std::iter::once((QUERY.to_owned(), json!(sample.keys)));
    keys.chain(columns).collect::<Map<_, _>>().into()
}

/// Reads the samples of an earlier report.
///
/// # Errors
/// The problem in the file.
pub fn read(path: &Path) -> Result<Samples, InputError> {
    let text = read_text(path)?;
    let report: Report =
        serde_json::from_str(&text).map_err(|error| InputError::of_json(path, 1, &error))?;
    let found = report.per_query.ok_or_else(|| InputError::of_file(path, EXPECTED))?;
    let sample = |name: &str, columns, measures| {
        let wrong = |problem| InputError::of_file(path, format!("per_query.{name}.{problem}"));
        sample(columns, measures).map_err(wrong)
    };
    Ok(Samples {
        labelled: sample("labelled", found.labelled, &Measure::LABELLED)?,
        no_tool: sample("no_tool", found.no_tool, &Measure::NO_TOOL)?,
    })
}

/// Reads one sample. Unknown measures are ignored, and measures that the report lacks are left out.
fn sample(mut columns: Map<String, Value>, measures: &[Measure]) -> Result<Sample, String> {
    let keys: Vec<String> = taken(&mut columns, QUERY)?.unwrap_or_default();
    let mut sample = Sample { keys, columns: Vec::new() };
    for measure in measures {
        let name = measure.name();
        let Some(values) = taken::<f64>(&mut columns, &name)? else { continue };
        if values.len() != sample.keys.len() {
            let values = values.len();
            let keys = sample.keys.len();
            return Err(format!("{name}: {values} values for {keys} queries"));
        }
        sample.columns.push(Column { measure: *measure, values });
    }
    Ok(sample)
}

fn taken<T: serde::de::DeserializeOwned>(
    columns: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<Vec<T>>, String> {
    let values = columns.remove(name).map(serde_json::from_value).transpose();
    values.map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        let column = |measure, values: &[f64]| Column { measure, values: values.to_vec() };
        Samples {
            labelled: Sample {
                keys: vec!["a".to_owned(), "b".to_owned()],
                columns: vec![
                    column(Measure::Recall(1), &[1.0, 0.1]),
                    column(Measure::SetTokens, &[10.0, 20.0]),
                ],
            },
            no_tool: Sample::default(),
        }
    }

    fn read_of(text: &str) -> Result<Samples, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.json");
        std::fs::write(&path, text).expect("written");
        read(&path).map_err(|error| {
            let text = error.to_string();
            text.split_once("r.json").map_or(text.clone(), |(_, rest)| rest.to_owned())
        })
    }

    #[test]
    fn what_is_written_is_read() {
        let mut report = json!({"metrics": {}, "per_query": to_json(&samples())});
        assert_eq!(read_of(&report.to_string()).as_ref(), Ok(&samples()));
        report["per_query"]["labelled"]["of a later version"] = json!("?");
        assert_eq!(read_of(&report.to_string()).as_ref(), Ok(&samples()));
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        let wrong = |text: &str| read_of(text).expect_err(text);
        assert!(wrong("{}").contains("--per-query"));
        assert!(wrong("{\n").starts_with(":2: column 0"), "{}", wrong("{\n"));
        let report = |labelled: &str| {
            format!("{{\"per_query\": {{\"labelled\": {labelled}, \"no_tool\": {{}}}}}}")
        };
        assert_eq!(
            wrong(&report("{\"query\": [\"a\"], \"mrr\": [1, 2]}")),
            ": per_query.labelled.mrr: 2 values for 1 queries"
        );
        assert!(
            wrong(&report("{\"query\": 3}")).starts_with(": per_query.labelled.query: invalid")
        );
    }
}
