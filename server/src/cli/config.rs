//! `toolgate config`: checks a configuration, prints an example, and shows the values in force.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::output;
use super::table::{Column, render};
use super::text::counted;
use toolgate_config::{Parsed, Settings, Source, Value as Setting, example};

const EXAMPLES: &str = "\
Examples:
  toolgate config example > toolgate.toml
  toolgate config check toolgate.toml
  TOOLGATE_ROUTER_TOP_K=5 toolgate config show";

/// Check or show the server's configuration, or print an example.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Report every mistake of a configuration at once.
    Check {
        /// The file to check. Default: as for --config.
        file: Option<PathBuf>,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Print a configuration file with every key, its meaning, range and default.
    Example,
    /// Show every key's value and where it comes from. Secrets are not shown.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

pub(super) fn run(config: Config) -> Result<Exit, Failure> {
    match config.action {
        Action::Check { file, mut config } => {
            config.config = file.or(config.config);
            let parsed = config.load(Vec::new())?;
            output::print(&summary(&parsed))?;
        }
        Action::Example => output::print(&example())?,
        Action::Show { json: true, config } => {
            output::print_json(&as_json(&config.load(Vec::new())?.settings))?;
        }
        Action::Show { json: false, config } => {
            output::print(&as_table(&config.load(Vec::new())?.settings))?;
        }
    }
    Ok(Exit::Done)
}

fn summary(parsed: &Parsed) -> String {
    let set = parsed.settings.iter().filter(|setting| setting.source != Source::Default);
    format!(
        "The configuration is good: {} set, the rest is default.\n",
        counted(set.count(), "key")
    )
}

fn as_table(settings: &Settings) -> String {
    let columns = [Column::Left("KEY"), Column::Left("VALUE"), Column::Left("FROM")];
    let rows = settings.iter().map(|setting| {
        vec![setting.key.name.to_owned(), setting.value.to_string(), setting.source.to_string()]
    });
    render(&columns, rows)
}

fn as_json(settings: &Settings) -> Value {
    let entry = |setting: &toolgate_config::Setting| {
        let value = match &setting.value {
            Setting::Absent => Value::Null,
            Setting::Count(number) => json!(number),
            Setting::Decimal(number) => json!(number),
            Setting::Flag(flag) => json!(flag),
            other => json!(other.to_string()),
        };
        let from = setting.source.to_string();
        (setting.key.name.to_owned(), json!({ "value": value, "from": from }))
    };
    Value::Object(Map::from_iter(settings.iter().map(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_config::{Config, FlagValue, Inputs, KEYS};

    fn parsed() -> Parsed {
        let flag = |key: &str, value: &str| FlagValue {
            flag: "--set".into(),
            key: key.into(),
            value: value.into(),
        };
        let secret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";
        let inputs = Inputs {
            environment: [("HOME".to_owned(), "/h".to_owned())].into(),
            flags: vec![flag("router.top_k", "5"), flag("handle.key", secret)],
            file: None,
        };
        Config::parse(&inputs).expect("a good configuration")
    }

    #[test]
    fn every_key_is_shown_and_no_secret() {
        let settings = parsed().settings;
        let table = as_table(&settings);
        let json = as_json(&settings);
        for key in KEYS {
            assert!(table.contains(key.name) && json.get(key.name).is_some(), "{}", key.name);
        }
        assert!(!table.contains("c2Vj") && !json.to_string().contains("c2Vj"));
        assert_eq!(json["router.top_k"], json!({ "value": 5, "from": "flag --set" }));
        assert_eq!(json["handle.key_file"]["value"], Value::Null);
        assert_eq!(json["server.max_deadline"]["value"], "30s");
    }

    #[test]
    fn a_good_configuration_is_said_to_be_good() {
        assert!(summary(&parsed()).contains("good: 2 keys set"));
    }
}
