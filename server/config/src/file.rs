//! Reader of the TOML file. Turns its text into one raw value per key, with line numbers. `value` checks types and
//! ranges later.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::KEYS;
use super::mistake::{Mistake, Source};
use super::settings::{Said, SourceFile};
use super::value::Raw;
use toolgate_core::nearest::nearest;

/// Returns the values in the file. Adds syntax errors and unknown sections to `mistakes`.
pub(super) fn read(file: &SourceFile, mistakes: &mut Vec<Mistake>) -> Vec<Said> {
    let (document, errors) = DeTable::parse_recoverable(&file.text);
    mistakes.extend(errors.iter().map(|error| Mistake {
        source: file.at(error.span()),
        key: None,
        problem: format!("not TOML: {}", error.message().trim_end()),
    }));
    let sound_lines = sound_part(&file.text, &errors);
    let is_sound = |name: &Spanned<Cow<'_, str>>| name.span().start < sound_lines;
    let mut said = Vec::new();
    for (name, value) in document.get_ref().iter().filter(|(name, _)| is_sound(name)) {
        match value.get_ref() {
            DeValue::Table(section) if is_section(name.get_ref()) => {
                for (short, value) in section.iter().filter(|(name, _)| is_sound(name)) {
                    let key = format!("{}.{}", name.get_ref(), short.get_ref());
                    said.push(file.said(key, short.span(), value.get_ref()));
                }
            }
            DeValue::Table(_) => mistakes.push(unknown_section(file, name)),
            _ => said.push(file.said(name.get_ref().to_string(), name.span(), value.get_ref())),
        }
    }
    said
}

/// Returns the number of bytes before the line of the first syntax error. The parser can only guess at the rest, so
/// mistakes there are not reported.
fn sound_part(text: &str, errors: &[toml::de::Error]) -> usize {
    let starts = errors.iter().filter_map(|error| error.span()).map(|span| span.start);
    starts.min().map_or(text.len(), |start| {
        let before = &text.as_bytes()[..start.min(text.len())];
        before.iter().rposition(|byte| *byte == b'\n').unwrap_or(0)
    })
}

fn sections() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.section())
}

fn is_section(name: &str) -> bool {
    sections().any(|section| section == name)
}

fn unknown_section(file: &SourceFile, name: &Spanned<Cow<'_, str>>) -> Mistake {
    let problem = match nearest(name.get_ref(), sections()) {
        Some(near) => format!("no such section; did you mean [{near}]?"),
        None => "no such section; `toolgate config example` lists all".into(),
    };
    Mistake {
        source: file.at(Some(name.span())),
        key: Some(format!("[{}]", name.get_ref())),
        problem,
    }
}

impl SourceFile {
    fn said(&self, key: String, span: Range<usize>, value: &DeValue<'_>) -> Said {
        Said { source: self.at(Some(span)), key, raw: raw(value) }
    }

    fn at(&self, span: Option<Range<usize>>) -> Source {
        let line = span.map_or(0, |span| {
            let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
            1 + before.iter().filter(|byte| **byte == b'\n').count()
        });
        Source::File { path: self.path.clone(), line }
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(decimal) => Raw::Integer(decimal.to_string()),
            // Beyond 128 bits, no range allows the number. The text shows what was written.
            Err(_) => Raw::Integer(number.to_string()),
        },
        DeValue::Float(number) => Raw::Float(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Raw::Boolean(*flag),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Array(items) => {
            let text = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
            let items: Option<Vec<_>> = items.iter().map(text).collect();
            items.map_or(Raw::Other("an array"), Raw::List)
        }
        DeValue::Table(_) => Raw::Other("a table"),
    }
}
