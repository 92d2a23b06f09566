//! JSON with comments and trailing commas, as editors write it.

/// Returns the text as plain JSON: comments and trailing commas are blanks, so that lines and columns stay.
pub(crate) fn without_comments(text: &str) -> String {
    let mut plain: Vec<char> = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut comma = None;
    while let Some(character) = rest.next() {
        match (character, rest.peek()) {
            ('"', _) => {
                comma = None;
                plain.push('"');
                copy_string(&mut rest, &mut plain);
            }
            ('/', Some('/')) => {
                plain.push(' ');
                while let Some(skipped) = rest.next_if(|next| *next != '\n') {
                    plain.push(blank(skipped));
                }
            }
            ('/', Some('*')) => {
                plain.push(' ');
                let mut before = ' ';
                for skipped in rest.by_ref() {
                    plain.push(blank(skipped));
                    if before == '*' && skipped == '/' {
                        break;
                    }
                    before = skipped;
                }
            }
            (',', _) => {
                comma = Some(plain.len());
                plain.push(',');
            }
            ('}' | ']', _) => {
                if let Some(comma) = comma.take() {
                    plain[comma] = ' ';
                }
                plain.push(character);
            }
            _ => {
                if !character.is_whitespace() {
                    comma = None;
                }
                plain.push(character);
            }
        }
    }
    plain.into_iter().collect()
}

/// Copies a string up to its closing quote.
fn copy_string(rest: &mut impl Iterator<Item = char>, plain: &mut Vec<char>) {
    while let Some(character) = rest.next() {
        plain.push(character);
        match character {
            '"' => return,
            '\\' => plain.extend(rest.next()),
            _ => {}
        }
    }
}

fn blank(character: char) -> char {
    if character == '\n' { '\n' } else { ' ' }
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
        for text in ["", "{\"a\\\"//\": [1, 2]}", "\"open", "/* open", "\\"] {
            let plain = without_comments(text);
            assert_eq!(plain.chars().count(), text.chars().count(), "{text}");
        }
        assert_eq!(without_comments("{\"a\\\"//\": [1, 2]}"), "{\"a\\\"//\": [1, 2]}");
    }
}
