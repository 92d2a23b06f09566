//! Fuzz target for SearchTools queries. Any input is parsed within the limits, or refused with the name of its field. A
//! parsed query that is written and parsed again stays the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_routing::router::search::grammar::{NAMES_MAX, Query, TERMS_MAX};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    match Query::parse(&text) {
        Err(error) => assert!(error.to_string().starts_with("query: "), "{error}"),
        Ok(Query::Select(names)) => {
            assert!((1..=NAMES_MAX).contains(&names.len()));
            let again = format!("select:{}", names.join(","));
            assert_eq!(Query::parse(&again).expect("it was read"), Query::Select(names));
        }
        Ok(Query::Text { text, terms }) => {
            assert!(!text.is_empty() && terms.len() <= TERMS_MAX);
            assert!(terms.iter().all(|term| !term.text.is_empty()));
            let again = Query::parse(&text).expect("it was read");
            assert_eq!(again, Query::Text { text, terms });
        }
    }
});
