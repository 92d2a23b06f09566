//! Comma-separated values (RFC 4180). Quoted fields may hold commas, line breaks and doubled quotes.

use csv::{ReaderBuilder, StringRecord};

/// Last record of a text that is read. In quotes that never end, it becomes a part of the record before it.
const END: &str = "\nend";

/// One record, with the line that it begins on, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
}

/// Returns true if a line names exactly these columns, ignoring case.
pub(super) fn is_header(line: &str, columns: &[&str]) -> bool {
    let record = read(line).next();
    record.is_some_and(|(_, record)| {
        let same = |(field, column): (&str, &&str)| field.trim().eq_ignore_ascii_case(column);
        record.len() == columns.len() && record.iter().zip(columns).all(same)
    })
}

/// Returns the records of a text. Blank lines are skipped.
///
/// # Errors
/// The line of the record whose quotes are never closed.
pub(super) fn records(text: &str) -> Result<Vec<Record>, usize> {
    let text = format!("{text}{END}");
    let mut records = Vec::new();
    let mut line = 1;
    let mut counted = 0;
    for (begin, record) in read(&text) {
        line += text[counted..begin].matches('\n').count();
        counted = begin;
        records.push(Record { line, fields: record.iter().map(str::to_owned).collect() });
    }
    let last = records.pop().map_or(Vec::new(), |record| record.fields);
    if last != [END.trim()] {
        return Err(line);
    }
    records.retain(|record| record.fields.iter().any(|field| !field.trim().is_empty()));
    Ok(records)
}

/// Reads records, each with the byte at which it begins.
fn read(text: &str) -> impl Iterator<Item = (usize, StringRecord)> {
    let reader =
        ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    reader.into_records().map(|record| {
        let record =
            record.expect("text in memory is readable UTF-8, and records may differ in length");
        let begin = record.position().map_or(0, |position| position.byte() as usize);
        // Line breaks before a record count as its own.
        let breaks = text[begin..].bytes().take_while(|byte| b"\r\n".contains(byte)).count();
        (begin + breaks, record)
    })
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
        assert_eq!(records("\"a"), Err(1));
        assert_eq!(records("a,\"b\"\n").map(|records| records.len()), Ok(1));
        assert_eq!(records("").map(|records| records.len()), Ok(0));
        assert!(is_header(" query,\"TOOL\"", &["Query", "Tool"]));
        assert!(!is_header("query", &["Query", "Tool"]) && !is_header("a,b", &["Query", "Tool"]));
    }
}
