//! JSON with comments and trailing commas, as editors write it.

/// Returns the text as plain JSON: comments and trailing commas are blanks, so that each byte keeps its place.
pub(crate) fn without_comments(text: &str) -> String {
    let mut plain = blank_comments(text);
    for comma in trailing_commas(&plain) {
        plain.replace_range(comma..=comma, " ");
    }
    plain
}

/// Returns the text with comments as blanks, so that each byte keeps its place.
pub(crate) fn blank_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match (character, rest.peek()) {
            ('"', _) => {
                plain.push('"');
                copy_string(&mut rest, &mut plain);
            }
            ('/', Some('/')) => {
                plain.push(' ');
                while let Some(skipped) = rest.next_if(|next| *next != '\n') {
                    blank(skipped, &mut plain);
                }
            }
            ('/', Some('*')) => {
                plain.push(' ');
                let mut before = ' ';
                for skipped in rest.by_ref() {
                    blank(skipped, &mut plain);
                    if before == '*' && skipped == '/' {
                        break;
                    }
                    before = skipped;
                }
            }
            _ => plain.push(character),
        }
    }
    plain
}

/// Returns the places of commas that nothing but blanks follows before a closing bracket.
fn trailing_commas(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut comma = None;
    let mut is_string = false;
    let mut is_escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        if is_string {
            is_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            continue;
        }
        match byte {
            b',' => comma = Some(place),
            b'}' | b']' => found.extend(comma.take()),
            _ if byte.is_ascii_whitespace() => {}
            _ => {
                comma = None;
                is_string = byte == b'"';
            }
        }
    }
    found
}

/// Copies a string up to its closing quote.
fn copy_string(rest: &mut impl Iterator<Item = char>, plain: &mut String) {
    while let Some(character) = rest.next() {
        plain.push(character);
        match character {
            '"' => return,
            '\\' => plain.extend(rest.next()),
            _ => {}
        }
    }
}

/// Adds as many blanks as the character has bytes.
fn blank(character: char, plain: &mut String) {
    let with = if character == '\n' { "\n" } else { " " };
    plain.push_str(&with.repeat(character.len_utf8()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_blanks() {
        let text = "{ // a \"quote\n  \"b\": \"// no comment, */\", /* c\n d */ \"e\": [1, 2, /* f */ ],\n}";
        let plain = without_comments(text);
        let value: serde_json::Value = serde_json::from_str(&plain).expect("JSON");
        assert_eq!(value, serde_json::json!({"b": "// no comment, */", "e": [1, 2]}));
        assert_eq!(plain.lines().count(), text.lines().count());
    }

    #[test]
    fn plain_json_stays_as_it_is() {
        for text in ["", "{\"a\\\"//\": [1, 2]}", "\"open", "/* open", "\\", "// é\n/* 日 */"] {
            let plain = without_comments(text);
            assert_eq!(plain.len(), text.len(), "{text}");
        }
        assert_eq!(without_comments("{\"a\\\"//\": [1, 2]}"), "{\"a\\\"//\": [1, 2]}");
    }
}
