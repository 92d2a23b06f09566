//! Plain text from a language model's answer: removes the model's thoughts and detects hidden characters.

/// Returns the answer without a leading `<think>` section, or an empty text if that section never ends.
#[must_use]
pub fn without_thoughts(answer: &str) -> &str {
    let text = answer.trim();
    if text.starts_with("<think>") {
        return text.split_once("</think>").map_or("", |(_, rest)| rest.trim());
    }
    text
}

/// Returns the first hidden character: a control character, a direction mark, a zero-width character, a tag or a
/// private-use character.
#[must_use]
pub fn hidden(text: &str) -> Option<char> {
    text.chars().find(|letter| is_hidden(*letter))
}

fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_left_out() {
        for (answer, wanted) in [
            (" said \n", "said"),
            ("<think>Hm.\nWell.</think>\nsaid", "said"),
            ("<think>for ever", ""),
            ("said <think>late</think>", "said <think>late</think>"),
        ] {
            assert_eq!(without_thoughts(answer), wanted);
        }
    }

    #[test]
    fn what_nobody_sees_is_told() {
        for letter in ['\n', '\u{1b}', '\u{202e}', '\u{200b}', '\u{e0041}'] {
            assert_eq!(hidden(&format!("a{letter}b")), Some(letter));
        }
        assert_eq!(hidden("Ça montre l'historique à 3 < 4 heures, 天気"), None);
    }
}
