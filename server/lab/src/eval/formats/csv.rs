//! Comma-separated values (RFC 4180). Quoted fields may hold commas, line breaks and doubled quotes.

/// One record, with the line that it begins on, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
}

/// Returns true if a line names exactly these columns, ignoring case.
pub(super) fn is_header(line: &str, columns: &[&str]) -> bool {
    let fields: Vec<_> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
    fields.len() == columns.len()
        && fields.iter().zip(columns).all(|(field, column)| field.eq_ignore_ascii_case(column))
}

/// Returns the records of a text. Blank lines are skipped.
///
/// # Errors
/// The line of an opening quote that is never closed.
pub(super) fn records(text: &str) -> Result<Vec<Record>, usize> {
    let mut records = Vec::new();
    let mut record = Record { line: 1, fields: vec![String::new()] };
    let mut line = 1;
    let mut opened = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        let field = record.fields.last_mut().expect("a record has a field from the start");
        match (letter, opened) {
            ('"', Some(_)) if letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            ('"', Some(_)) => opened = None,
            ('"', None) if field.is_empty() => opened = Some(line),
            (letter, Some(_)) => field.push(letter),
            (',', None) => record.fields.push(String::new()),
            ('\r', None) if letters.peek() == Some(&'\n') => {}
            ('\n', None) => {
                let next = Record { line, fields: vec![String::new()] };
                records.push(std::mem::replace(&mut record, next));
            }
            (letter, None) => field.push(letter),
        }
    }
    if let Some(line) = opened {
        return Err(line);
    }
    records.push(record);
    records.retain(|record| record.fields.iter().any(|field| !field.trim().is_empty()));
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_commas_line_breaks_and_quotes() {
        let text = "Query,Tool\r\n\"a, \"\"b\"\"\nc\",X\n\nsay \"hi\",Y";
        let records = records(text).expect("records");
        let shape: Vec<_> = records.iter().map(|r| (r.line, r.fields.join("|"))).collect();
        let wanted = [(1, "Query|Tool"), (2, "a, \"b\"\nc|X"), (5, "say \"hi\"|Y")];
        assert_eq!(shape, wanted.map(|(line, fields)| (line, fields.to_owned())));
    }

    #[test]
    fn quotes_that_never_end_are_at_fault() {
        assert_eq!(records("a,b\nc,\"d\n\n"), Err(2));
        assert!(is_header(" query,\"TOOL\"", &["Query", "Tool"]));
        assert!(!is_header("query", &["Query", "Tool"]) && !is_header("a,b", &["Query", "Tool"]));
    }
}
