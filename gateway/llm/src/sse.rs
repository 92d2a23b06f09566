//! Server-sent events, cut out of a stream with their bytes.

use serde_json::Value;

/// Most bytes of one event; a larger one is no event, and is written as it comes.
const EVENT_MAX: usize = 8 << 20;

/// Splitter of a stream into events.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    /// Bytes at the beginning that hold no end of an event.
    scanned: usize,
}

impl Splitter {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Returns the next whole event with its end, or what is too large to be one.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let from = self.scanned.saturating_sub(3);
        if let Some(end) = end_of_event(&self.buffer[from..]) {
            self.scanned = 0;
            let rest = self.buffer.split_off(from + end);
            return Some(std::mem::replace(&mut self.buffer, rest));
        }
        self.scanned = self.buffer.len();
        (self.buffer.len() > EVENT_MAX).then(|| self.rest())
    }

    /// Returns what is left when the stream has ended.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.scanned = 0;
        std::mem::take(&mut self.buffer)
    }
}

/// Returns the place behind the first empty line.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find_map(|at| {
        let rest = &bytes[at..];
        let ends: [&[u8]; 3] = [b"\n\n", b"\n\r\n", b"\r\r"];
        ends.into_iter().find(|end| rest.starts_with(end)).map(|end| at + end.len())
    })
}

/// Returns the data of an event.
pub(crate) fn data(event: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(event).ok()?;
    let lines = text.split(['\r', '\n']).filter_map(|line| line.strip_prefix("data:"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Writes an event with a JSON value.
pub(crate) fn write(name: Option<&str>, data: &Value, out: &mut Vec<u8>) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_however_they_are_cut() {
        let stream =
            b"event: a\ndata: 1\n\ndata: 2\r\n\r\n: c\n\nid: 3\ndata: x\ndata:  y\n\ndata: cut";
        for size in 1..stream.len() {
            let mut splitter = Splitter::default();
            let mut events = Vec::new();
            for piece in stream.chunks(size) {
                splitter.push(piece);
                while let Some(event) = splitter.next() {
                    events.push(event);
                }
            }
            assert_eq!(splitter.rest(), b"data: cut");
            let datas: Vec<_> = events.iter().map(|event| data(event)).collect();
            let some = |text: &str| Some(text.to_owned());
            assert_eq!(datas, [some("1"), some("2"), None, some("x\n y")], "{size}");
            assert_eq!(events.concat().len() + "data: cut".len(), stream.len());
        }
    }

    #[test]
    fn lines_may_end_with_a_carriage_return() {
        for (event, expected) in [
            ("event: a\rdata: 1\rdata: 2\r\r", "1\n2"),
            ("event: a\r\ndata: 1\r\ndata:2\r\n\r\n", "1\n2"),
        ] {
            assert_eq!(data(event.as_bytes()).as_deref(), Some(expected), "{event:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_let_through() {
        let mut splitter = Splitter::default();
        splitter.push(&vec![b'x'; EVENT_MAX + 1]);
        assert_eq!(splitter.next().map(|event| event.len()), Some(EVENT_MAX + 1));
        assert_eq!(splitter.next(), None);
    }
}
