//! Minimal DER reader (X.690), just enough for the names and dates of certificates.

use time::{Date, Month};

pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const IA5_STRING: u8 = 0x16;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
/// Tag `[0] EXPLICIT`, which marks the version field of a certificate.
pub(super) const VERSION: u8 = 0xa0;

/// Element with its tag and its content bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
}

/// Iterator over consecutive elements; ends at the first incomplete one.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = std::mem::take(&mut self.0).split_first_chunk()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Element { tag, content })
    }
}

/// Parses decimal digits as a number.
pub(super) fn digits(text: &[u8]) -> Option<i64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    text.iter().try_fold(0, |number, byte| Some(number * 10 + digit(byte)?))
}

/// Converts `MMDDHHMMSSZ` in a given year to seconds since 1970 (UTC). A leap second counts as the second before it.
pub(super) fn moment(year: i64, rest: &[u8]) -> Option<i64> {
    let (fields, b"Z") = rest.split_at_checked(10)? else { return None };
    let field = |at: usize| u8::try_from(digits(&fields[at * 2..at * 2 + 2])?).ok();
    let year = i32::try_from(year).ok()?;
    let month = Month::try_from(field(0)?).ok()?;
    let date = Date::from_calendar_date(year, month, field(1)?).ok()?;
    let second = field(4).filter(|second| *second < 61)?.min(59);
    let moment = date.with_hms(field(2)?, field(3)?, second).ok()?;
    Some(moment.assume_utc().unix_timestamp())
}
