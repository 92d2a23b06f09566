//! Elements of a JSON array, or of lines of JSON, each with the line that it begins on.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::eval::input_error::InputError;
use crate::eval::query_file::lines;

/// Returns the elements as JSON text, with their line numbers from 1.
///
/// # Errors
/// An array that cannot be parsed. Lines of JSON are not checked.
pub(super) fn read<'a>(path: &Path, text: &'a str) -> Result<Vec<(usize, &'a str)>, InputError> {
    if !text.trim_start().starts_with('[') {
        return Ok(lines(text).collect());
    }
    let elements: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| InputError::of_json(path, 1, &error))?;
    let mut line = 1;
    let mut counted = 0;
    let numbered = elements.into_iter().map(|element| {
        let element = element.get();
        // Each element is a slice of the text, and they come in its order.
        let begins = element.as_ptr() as usize - text.as_ptr() as usize;
        line += text.as_bytes()[counted..begins].iter().filter(|byte| **byte == b'\n').count();
        counted = begins;
        (line, element)
    });
    Ok(numbered.collect())
}

/// Parses one element.
///
/// # Errors
/// The parse error, with its line.
pub(super) fn parse<T: DeserializeOwned>(
    path: &Path,
    line: usize,
    element: &str,
) -> Result<T, InputError> {
    serde_json::from_str(element).map_err(|error| InputError::of_json(path, line, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_know_their_lines() {
        let path = Path::new("x.json");
        let array = "\n[{\"a\":\n1},\n\n  2, 3]\n";
        let wanted = vec![(2, "{\"a\":\n1}"), (5, "2"), (5, "3")];
        assert_eq!(read(path, array).expect("an array"), wanted);
        assert_eq!(read(path, "{}\n\n{").expect("lines"), [(1, "{}"), (3, "{")]);
        assert_eq!(read(path, "[1,\n").expect_err("cut").line, Some(2));
        let wrong = parse::<u8>(path, 7, "{\n\"a\"\n}").expect_err("no number");
        assert_eq!(wrong.line, Some(7));
    }
}
