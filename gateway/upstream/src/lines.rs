//! Lines of a process's output or of a stream of events, within a bound. A longer line is skipped, and its beginning and end are kept: they hold the
//! ID of the answer that it would have been.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Bytes that are kept of each end of a line that is skipped.
pub(crate) const KEPT: usize = 1 << 10;

/// Bytes of a line that is skipped. A longer one has no end.
const SKIPPED_MAX: usize = 256 << 20;

/// Line of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The line, without its break.
    Whole(Vec<u8>),
    /// Ends of a line that passed the bound.
    Skipped {
        /// First bytes.
        head: Vec<u8>,
        /// Last bytes.
        tail: Vec<u8>,
    },
}

/// Reader of lines. It loses nothing when a read is dropped halfway.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    line: Vec<u8>,
    /// True if the bytes in `line` are the end of a line of which `head` is the beginning.
    is_skipping: bool,
    head: Vec<u8>,
    skipped: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Reads lines of at most `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, line: Vec::new(), is_skipping: false, head: Vec::new(), skipped: 0 }
    }

    /// Returns the next line, or `None` at the end; a last line without a break is none.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.line.extend_from_slice(part);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            self.cut();
            if self.skipped > SKIPPED_MAX {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn cut(&mut self) {
        if !self.is_skipping && self.line.len() > self.limit {
            self.is_skipping = true;
            self.head = self.line[..KEPT.min(self.line.len())].to_vec();
        }
        if self.is_skipping && self.line.len() > KEPT {
            let excess = self.line.len() - KEPT;
            self.line.drain(..excess);
            self.skipped += excess;
            self.line.shrink_to(2 * KEPT);
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        self.skipped = 0;
        if std::mem::take(&mut self.is_skipping) {
            return Line::Skipped { head: std::mem::take(&mut self.head), tail: line };
        }
        Line::Whole(line)
    }
}

/// Returns the ID of a JSON-RPC message from the ends of its line: from its first fields, or its last.
pub(crate) fn id_of(head: &[u8], tail: &[u8]) -> Option<i64> {
    let head = String::from_utf8_lossy(head);
    let tail = String::from_utf8_lossy(tail);
    first_id(&head).or_else(|| last_id(&tail))
}

/// Looks for `"id"` among the fields before the first value that is an object or array.
fn first_id(head: &str) -> Option<i64> {
    let fields = head.trim_start().strip_prefix('{')?;
    let scalars = &fields[..fields.find(['{', '[']).unwrap_or(fields.len())];
    let (_, value) = scalars.split_once("\"id\"")?;
    let value = value.trim_start().strip_prefix(':')?;
    crate::tap::numeric(value.split(',').next()?.trim())
}

/// Looks for `"id"` as the last field of the whole message.
fn last_id(tail: &str) -> Option<i64> {
    let fields = tail.trim_end().strip_suffix('}')?;
    let (_, value) = fields.rsplit_once("\"id\"")?;
    let value = value.trim().strip_prefix(':')?;
    crate::tap::numeric(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_is_skipped_and_the_next_is_read() {
        let text = format!("short\n{{\"id\":7,\"result\":\"{}\"}}\nlast\nhalf", "x".repeat(5_000));
        let mut lines = Lines::new(text.as_bytes(), 2_000);
        assert_eq!(lines.next().await.expect("a line"), Some(Line::Whole(b"short".to_vec())));
        let Some(Line::Skipped { head, tail }) = lines.next().await.expect("a line") else {
            panic!("a line that is skipped");
        };
        assert_eq!(id_of(&head, &tail), Some(7));
        assert_eq!(lines.next().await.expect("a line"), Some(Line::Whole(b"last".to_vec())));
        assert_eq!(lines.next().await.expect("a line"), None);
    }

    #[test]
    fn an_id_is_found_at_either_end_and_not_within() {
        let id = |head: &str, tail: &str| id_of(head.as_bytes(), tail.as_bytes());
        assert_eq!(id(r#"{"jsonrpc":"2.0", "id" : 12 ,"result":{"#, ""), Some(12));
        assert_eq!(id(r#"{"id":"12","result":{"#, ""), Some(12));
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"xx"}]},"id": 4}"#), Some(4));
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"xx"}],"id":4}}"#), None);
        assert_eq!(id("", ""), None);
    }
}
