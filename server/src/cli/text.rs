//! Formats numbers and texts for people.

/// Formats 1234567 as "1,234,567".
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a signed number with grouped digits.
pub(super) fn grouped_signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

/// Formats a count with its noun, such as "1 tool" or "2 tools".
pub(super) fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(number as u64))
}

/// Joins a text into one line of at most `width` characters. Control characters are removed, because a terminal could
/// take them for commands.
pub(super) fn one_line(text: &str, width: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean: String = words.chars().filter(|letter| !letter.is_control()).collect();
    if clean.chars().count() <= width {
        return clean;
    }
    let kept: String = clean.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, want) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), want);
        }
        assert_eq!(grouped_signed(-12_345), "-12,345");
        assert_eq!((counted(1, "tool"), counted(2, "tool")), ("1 tool".into(), "2 tools".into()));
    }

    #[test]
    fn texts_fit_one_line() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("äöüäöü", 4), "äöü…");
        assert_eq!(one_line("\u{1b}[31mred", 20), "[31mred");
    }
}
