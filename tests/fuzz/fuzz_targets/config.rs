//! Fuzz target for configuration files and environment variables. Any input gives a configuration within its ranges, or
//! mistakes that name their place.
#![no_main]

use std::collections::BTreeMap;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use toolgate_config::{Config, Inputs, KEYS, SourceFile};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    // The file comes before the NUL byte. One value per line follows, for the keys in the order of the table.
    let (file, values) = text.split_once('\0').unwrap_or((&text, ""));
    let environment = KEYS.iter().zip(values.lines()).map(|(key, value)| (key.env(), value.into()));
    let inputs = Inputs {
        file: Some(SourceFile { path: PathBuf::from("toolgate.toml"), text: file.to_owned() }),
        environment: environment.collect::<BTreeMap<_, _>>(),
        flags: Vec::new(),
    };
    match Config::parse(&inputs) {
        Ok(parsed) => {
            let config = &parsed.config;
            assert!(config.server.max_connections >= 1 && config.limits.max_intents >= 1);
            assert!((-1.0..=1.0).contains(&config.router.threshold));
            assert!((1..=100).contains(&config.router.top_k));
            let shown = format!("{config:?}");
            assert!(!shown.is_empty());
        }
        Err(errors) => {
            assert!(!errors.0.is_empty());
            assert!(errors.0.iter().all(|mistake| !mistake.problem.is_empty()));
            assert!(!errors.to_string().is_empty());
        }
    }
});
