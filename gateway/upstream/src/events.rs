//! Events of a `text/event-stream`, within a bound. The data of a larger event is skipped but for its ends, as lines are.

use std::io;

use tokio::io::AsyncBufRead;

use crate::lines::{KEPT, Line, Lines};

/// Bytes of a line beside its data: `data: `.
const FIELD_MAX: usize = 64;

/// Kind of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A JSON-RPC message.
    #[default]
    Message,
    /// The URL to send messages to.
    Endpoint,
    /// Something else.
    Other,
}

/// Event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) data: Line,
}

/// Reader of events. It loses nothing when a read is dropped halfway.
#[derive(Debug)]
pub(crate) struct Events<R> {
    lines: Lines<R>,
    limit: usize,
    kind: Kind,
    data: Option<Line>,
}

impl<R: AsyncBufRead + Unpin> Events<R> {
    /// Reads events whose data has at most `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        let lines = Lines::new(reader, limit.saturating_add(FIELD_MAX));
        Self { lines, limit, kind: Kind::default(), data: None }
    }

    /// Returns the next event that has data, or `None` at the end; a last event without an empty line behind it is none.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Event>> {
        while let Some(line) = self.lines.next().await? {
            match line {
                Line::Whole(line) => {
                    let line = line.strip_suffix(b"\r").unwrap_or(&line);
                    if !line.is_empty() {
                        self.add(line);
                        continue;
                    }
                    let kind = std::mem::take(&mut self.kind);
                    if let Some(data) = self.data.take() {
                        return Ok(Some(Event { kind, data }));
                    }
                }
                Line::Skipped { head, tail } => {
                    if let Some(head) = value_of(&head, b"data") {
                        self.add_data(Line::Skipped { head: head.to_vec(), tail });
                    }
                }
            }
        }
        Ok(None)
    }

    fn add(&mut self, line: &[u8]) {
        if let Some(data) = value_of(line, b"data") {
            self.add_data(Line::Whole(data.to_vec()));
        } else if let Some(kind) = value_of(line, b"event") {
            self.kind = match kind {
                b"" | b"message" => Kind::Message,
                b"endpoint" => Kind::Endpoint,
                _ => Kind::Other,
            };
        }
    }

    /// Adds a line to the event's data. Beyond the limit, only the ends of both are kept.
    fn add_data(&mut self, line: Line) {
        self.data = Some(match (self.data.take(), line) {
            (None, line) => line,
            (Some(Line::Whole(mut data)), Line::Whole(line))
                if data.len() + line.len() < self.limit =>
            {
                data.push(b'\n');
                data.extend(line);
                Line::Whole(data)
            }
            (Some(before), line) => Line::Skipped { head: head_of(before), tail: tail_of(line) },
        });
    }
}

fn head_of(line: Line) -> Vec<u8> {
    match line {
        Line::Whole(mut line) => {
            line.truncate(KEPT);
            line
        }
        Line::Skipped { head, .. } => head,
    }
}

fn tail_of(line: Line) -> Vec<u8> {
    match line {
        Line::Whole(line) => line[line.len().saturating_sub(KEPT)..].to_vec(),
        Line::Skipped { tail, .. } => tail,
    }
}

/// Returns the value of a field if the line has it.
fn value_of<'a>(line: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(field)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let value = rest.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str, limit: usize) -> Vec<Event> {
        let mut events = Events::new(text.as_bytes(), limit);
        let mut all = Vec::new();
        while let Some(event) = events.next().await.expect("a stream") {
            all.push(event);
        }
        all
    }

    fn message(data: &str) -> Event {
        Event { kind: Kind::Message, data: Line::Whole(data.as_bytes().to_vec()) }
    }

    #[tokio::test]
    async fn events_are_read_as_the_format_says() {
        let text = ": ping\n\nevent: endpoint\r\ndata: /m?x=1\r\n\r\nid: 1\nretry: 5\ndata:a\ndata: b\ndata\n\nevent: x\n\ndata: c\nevent: message\n\nevent: y\ndata: d\n\n";
        let endpoint = Event { kind: Kind::Endpoint, data: Line::Whole(b"/m?x=1".to_vec()) };
        let other = Event { kind: Kind::Other, data: Line::Whole(b"d".to_vec()) };
        assert_eq!(all(text, 100).await, [endpoint, message("a\nb\n"), message("c"), other]);
    }

    #[tokio::test]
    async fn a_stream_cut_anywhere_has_only_whole_events() {
        let text = "data: {\"a\":1}\n\ndata: {\"b\":2}\n\n";
        for end in 0..=text.len() {
            let expected: &[Event] = match end {
                ..15 => &[],
                15..30 => &[message("{\"a\":1}")],
                _ => &[message("{\"a\":1}"), message("{\"b\":2}")],
            };
            assert_eq!(all(&text[..end], 100).await, expected, "{end}");
        }
    }

    #[tokio::test]
    async fn of_a_large_event_the_ends_are_kept_and_the_next_is_read() {
        let long = format!("{{\"id\":7,{}}}", " ".repeat(9_000));
        let lines = format!("data: {{\"id\":8,\ndata: {}}}\n", " ".repeat(1_995));
        let text = format!("data: {long}\n\n{lines}\n: {long}\ndata: x\n\n");
        let events = all(&text, 2_000).await;
        for (event, id) in events.iter().zip([7, 8]) {
            let Line::Skipped { head, tail } = &event.data else { panic!("{event:?}") };
            assert!(head.len() <= KEPT && tail.len() <= KEPT);
            assert_eq!(crate::lines::id_of(head, tail), Some(id));
        }
        assert_eq!(events[2..], [message("x")]);
    }
}
