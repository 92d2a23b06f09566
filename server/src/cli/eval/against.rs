//! Baselines of an evaluation: another configuration, or an earlier report.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::arguments::{ConfigArguments, parse_setting};
use crate::cli::failure::Failure;
use toolgate_config::{Config, FlagValue};
use toolgate_lab::eval::comparison::Comparison;
use toolgate_lab::eval::sample::Samples;
use toolgate_lab::eval::{Evaluated, InputError, per_query};

/// What to compare with.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Compare")]
pub(super) struct Against {
    /// Also evaluate with this configuration file in place of --config's. What --set says holds for both.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Also evaluate with this key set, such as --against-set router.top_k=5. May be given more than once.
    #[arg(long = "against-set", value_parser = parse_setting, value_name = "KEY=VALUE")]
    against_settings: Vec<(String, String)>,
    /// Compare with an earlier report over the same queries, which was written with --json and --per-query.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

impl Against {
    /// Returns the other configuration and its name, or `None` if none was requested.
    pub(super) fn config(
        &self,
        this: &ConfigArguments,
        named: Vec<FlagValue>,
    ) -> Result<Option<(String, Config)>, Failure> {
        if self.against.is_none() && self.against_settings.is_empty() {
            return Ok(None);
        }
        let other = ConfigArguments {
            config: self.against.clone().or_else(|| this.config.clone()),
            settings: this.settings.clone(),
        };
        let set = self.against_settings.iter().map(|(key, value)| FlagValue {
            flag: format!("--against-set {key}"),
            key: key.clone(),
            value: value.clone(),
        });
        let parsed = other.load(named.into_iter().chain(set).collect())?;
        Ok(Some((self.name(), parsed.config)))
    }

    fn name(&self) -> String {
        let file = self.against.iter().map(|path| path.display().to_string());
        let set = self.against_settings.iter().map(|(key, value)| format!("{key}={value}"));
        file.chain(set).collect::<Vec<_>>().join(", ")
    }

    /// Reads the earlier report if one was named.
    pub(super) fn earlier(&self) -> Result<Option<Earlier>, InputError> {
        let read =
            |path: &PathBuf| Ok(Earlier { path: path.clone(), samples: per_query::read(path)? });
        self.compare.as_ref().map(read).transpose()
    }
}

/// Values of an earlier report, query by query.
#[derive(Debug)]
pub(super) struct Earlier {
    path: PathBuf,
    samples: Samples,
}

impl Earlier {
    /// Adds the comparison with the earlier report. Fails if the queries differ.
    pub(super) fn compare(&self, evaluated: &mut Evaluated) -> Result<(), InputError> {
        let now = &evaluated.samples;
        let then = &self.samples;
        if now.labelled.keys != then.labelled.keys {
            return Err(other_queries(&self.path, &now.labelled.keys, &then.labelled.keys));
        }
        add(evaluated, &self.path.display().to_string(), then);
        Ok(())
    }
}

/// Adds a comparison with other samples to the report.
pub(super) fn add(evaluated: &mut Evaluated, name: &str, other: &Samples) {
    let report = &mut evaluated.report;
    let compared = Comparison::of(name, &evaluated.samples, other, &report.bootstrap);
    report.comparisons.push(compared);
}

fn other_queries(path: &Path, now: &[String], then: &[String]) -> InputError {
    let same = now.iter().zip(then).filter(|(now, then)| now == then).count();
    let problem = format!(
        "is of other queries: {} labelled ones there, {} here, of which {same} are the same in the same \
         place; compare reports over one file of queries",
        then.len(),
        now.len(),
    );
    InputError::of_file(path, problem)
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;
    use toolgate_lab::eval::metrics::Measure;
    use toolgate_lab::eval::sample::{Column, Sample};

    fn samples(keys: &[&str], value: f64) -> Samples {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let values = vec![value; keys.len()];
        let columns = vec![Column { measure: Measure::Ndcg, values }];
        Samples { labelled: Sample { keys, columns }, no_tool: Sample::default() }
    }

    fn earlier(keys: &[&str]) -> Earlier {
        Earlier { path: "old.json".into(), samples: samples(keys, 0.5) }
    }

    #[test]
    fn earlier_reports_are_of_the_same_queries() {
        let samples = samples(&["a", "b"], 0.75);
        let mut evaluated = Evaluated { ranked: Vec::new(), samples, report: example() };
        evaluated.report.comparisons.clear();
        earlier(&["a", "b"]).compare(&mut evaluated).expect("the same queries");
        let [compared] = &evaluated.report.comparisons[..] else { panic!("one comparison") };
        assert_eq!((compared.name.as_str(), compared.rows[0].difference.value), ("old.json", 0.25));
        let wrong = earlier(&["a", "c", "b"]).compare(&mut evaluated).expect_err("others");
        let wrong = wrong.to_string();
        assert!(wrong.starts_with("old.json: is of other queries: 3 labelled"), "{wrong}");
        assert!(wrong.contains("2 here, of which 1 are the same"), "{wrong}");
    }

    #[test]
    fn the_other_configuration_takes_what_is_set_for_both_and_for_it() {
        let this = ConfigArguments {
            config: None,
            settings: vec![
                ("router.top_k".to_owned(), "7".to_owned()),
                ("router.relative_cutoff".to_owned(), "0.4".to_owned()),
            ],
        };
        assert!(Against::default().config(&this, Vec::new()).expect("none").is_none());
        let against_settings = vec![("router.top_k".to_owned(), "3".to_owned())];
        let against = Against { against_settings, ..Against::default() };
        let (name, config) = against.config(&this, Vec::new()).expect("valid").expect("asked for");
        assert_eq!((name.as_str(), config.router.top_k), ("router.top_k=3", 3));
        assert!((config.router.relative_cutoff - 0.4).abs() < 1e-6);
        let against_settings = vec![("router.topk".to_owned(), "3".to_owned())];
        let against = Against { against_settings, ..Against::default() };
        let wrong = against.config(&this, Vec::new()).expect_err("no such key");
        assert!(format!("{wrong:?}").contains("--against-set router.topk"), "{wrong:?}");
    }
}
