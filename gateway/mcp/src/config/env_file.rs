//! Files of variables, such as `.env`: one `NAME=VALUE` a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;

/// Quotes that a value may stand in.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Most bytes of a file.
const BYTES_MAX: u64 = 1 << 20;

/// Reads the variables of a file. The problem of one that can't be read never has a value in it.
pub(super) fn read(path: &str) -> Result<BTreeMap<String, String>, String> {
    let told = |error: std::io::Error| error.to_string();
    // What is no file, such as a pipe, could have no end, or never begin.
    if !std::fs::metadata(path).map_err(told)?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(told)?;
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(told)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    parse(&text)
}

/// Returns the variables of a text; the last of several with one name. Lines that are blank or begin with `#` are left out.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rest = text;
    let mut number = 1;
    let mut counted = text;
    while !rest.is_empty() {
        number += counted[..counted.len() - rest.len()].matches('\n').count();
        counted = rest;
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        let written = line.trim_start();
        if written.trim_end().is_empty() || written.starts_with('#') {
            rest = behind;
            continue;
        }
        let exported = written.strip_prefix("export ").unwrap_or(written);
        let name = exported.split_once('=').map(|(name, _value)| name.trim());
        let name = name
            .filter(|name| is_name(name))
            .ok_or_else(|| format!("line {number} is not NAME=VALUE"))?;
        let start = rest.find('=').map_or(rest.len(), |place| place + 1);
        let value = value_of(&rest[start..])
            .ok_or_else(|| format!("the value in line {number} has no closing quote"))?;
        if value.text.contains('\0') {
            return Err(format!("the value in line {number} has a NUL character"));
        }
        variables.insert(name.to_owned(), value.text);
        rest = value.behind;
    }
    Ok(variables)
}

/// Value, and the lines behind it.
struct Value<'t> {
    text: String,
    behind: &'t str,
}

/// Returns the value at the start of a text, up to the end of its line or of the quotes that it stands in; `None` if these have
/// no end.
fn value_of(text: &str) -> Option<Value<'_>> {
    let (line, behind) = text.split_once('\n').unwrap_or((text, ""));
    let begun = line.trim_start();
    let Some(quote) = begun.chars().next().filter(|first| QUOTES.contains(first)) else {
        let comment = line
            .match_indices('#')
            .find(|(place, _)| line[..*place].chars().next_back().is_none_or(char::is_whitespace));
        let written = comment.map_or(line, |(place, _)| &line[..place]);
        return Some(Value { text: written.trim().to_owned(), behind });
    };
    let inner = &text[line.len() - begun.len() + quote.len_utf8()..];
    let mut value = String::new();
    let mut characters = inner.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            _ if character == quote => {
                let after = &inner[place + quote.len_utf8()..];
                let behind = after.split_once('\n').map_or("", |(_line, behind)| behind);
                return Some(Value { text: value, behind });
            }
            '\\' if quote == '"' => match characters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            _ => value.push(character),
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !name.is_empty() && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_env_files_write_them() {
        let text = "\u{feff}# mine\n\nA=1\r\n export B = two words # a comment\nC=a#b\nD=\"x \\\"y\\\"\\n # z\" # w\nE='a\\n'\nF=\"two\nlines\"\nG=\nH= # none\nI=`'\"`\nA=2\nJ=a=b";
        let variables = parse(text).expect("variables");
        let wanted = [
            ("A", "2"),
            ("B", "two words"),
            ("C", "a#b"),
            ("D", "x \"y\"\n # z"),
            ("E", "a\\n"),
            ("F", "two\nlines"),
            ("G", ""),
            ("H", ""),
            ("I", "'\""),
            ("J", "a=b"),
        ];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables, BTreeMap::from(wanted));
        assert_eq!(parse(""), Ok(BTreeMap::new()));
    }

    #[test]
    fn a_problem_names_its_line_and_no_value() {
        for (text, told) in [
            ("A=1\nhush\n", "line 2 is not NAME=VALUE"),
            ("A=\"x\ny\"\n\nB C=hush", "line 4 is not NAME=VALUE"),
            ("=hush", "line 1 is not NAME=VALUE"),
            ("A=1\nB=\"hush\n", "the value in line 2 has no closing quote"),
            ("A=1\n\nB=hu\0sh\n", "the value in line 3 has a NUL character"),
        ] {
            assert_eq!(parse(text), Err(told.to_owned()), "{text}");
        }
        assert!(read("/no/such/.env").expect_err("no file").contains("No such file"));
        assert_eq!(read("/dev/zero"), Err("it is no regular file".to_owned()));
        let folder = tempfile::tempdir().expect("a folder");
        let large = folder.path().join(".env");
        std::fs::write(&large, "#".repeat((1 << 20) + 1)).expect("written");
        let told = read(large.to_str().expect("a path")).expect_err("too large");
        assert_eq!(told, "it has more than 1048576 bytes");
    }
}
