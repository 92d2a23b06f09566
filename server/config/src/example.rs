//! Example configuration that `toolgate config example` prints. It shows the defaults as comments, made from the
//! declarations of the keys.

use std::fmt::Write as _;

use super::key::{Fallback, KeySpec};
use super::keys::KEYS;

const WIDTH: usize = 100;

const HEADER: &str = "\
# Configuration of the Toolgate server. Every key is shown with its default, commented out: take the `#`
# away to change it. Flags win over environment variables, those over this file, this over the defaults.
# Durations: 250ms, 10s, 5m, 1h. Sizes: 64KiB, 4MiB, 1GiB. Check a file with `toolgate config check`.
";

/// Returns a TOML file with every key's meaning, variable, range and default. All keys are commented out, so it changes
/// nothing.
#[must_use]
pub fn example() -> String {
    let mut text = String::from(HEADER);
    let mut section = "";
    for key in KEYS {
        if key.section() != section {
            section = key.section();
            push(&mut text, format_args!("\n[{section}]\n"));
        }
        push_key(&mut text, key);
    }
    text
}

fn push_key(text: &mut String, key: &KeySpec) {
    let range = key.kind.range();
    let range = if range.is_empty() { range } else { format!(" {}.", capitalised(&range)) };
    let choices = match &key.kind {
        super::Kind::Choice(words) => format!(" One of {}.", words.join(", ")),
        _ => String::new(),
    };
    let live = if key.is_live { " Read again on SIGHUP." } else { "" };
    let doc = format!("{}{range}{choices}{live} {}", key.doc, key.env());
    for line in wrapped(&doc, WIDTH - 2) {
        push(text, format_args!("# {line}\n"));
    }
    let value = default_text(key);
    let value = if key.kind.is_list() {
        let items = value.split(',').filter(|item| !item.is_empty());
        format!("[{}]", items.map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", "))
    } else if key.kind.is_quoted() {
        format!("{value:?}")
    } else {
        value.to_owned()
    };
    push(text, format_args!("#{} = {value}\n", key.short_name()));
}

/// Returns the default in the file's grammar. A directory that depends on the user is shown as an example, and a
/// missing default as empty text.
fn default_text(key: &KeySpec) -> &'static str {
    match key.default {
        Fallback::Text(text) => text,
        Fallback::DataDirectory => "~/.local/share/toolgate",
        Fallback::ModelDirectory => "~/.cache/toolgate/models/all-MiniLM-L6-v2",
        Fallback::Absent => "",
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("begins with one line and only grows");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("writing to a String does not fail");
}
