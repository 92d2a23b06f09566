//! Envelopes that are opened while the model writes them.

use serde_json::Value;
use toolgate_llm::envelope::CALL_TOOL_NAME;

use crate::answer::{is_search, open};

/// Most bytes of an envelope that are held until its tool is known.
const HELD_MAX: usize = 256 << 10;

/// Opener of one envelope.
#[derive(Debug, Default)]
pub(crate) struct Opener {
    text: String,
    state: State,
}

/// Next part of the call that stands in an envelope.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Name of the tool, once.
    pub(crate) name: Option<String>,
    /// Next piece of the arguments.
    pub(crate) arguments: String,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// The name is not there yet.
    #[default]
    Reading,
    /// The arguments are written as they come.
    Passing(Nesting),
    /// The envelope is opened when it is whole.
    Held,
    /// The envelope is too large, and is written as it comes.
    GivenUp,
    Done,
}

/// Place within a JSON object.
#[derive(Debug, Default, Clone, Copy)]
struct Nesting {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

/// Beginning of an envelope.
#[derive(Debug, PartialEq, Eq)]
enum Beginning {
    /// More is needed.
    Short,
    /// Name of the tool, and place of the object of its arguments.
    Named(String, usize),
    /// The envelope is written in another order.
    Other,
}

impl Opener {
    /// Takes the next piece of the envelope's arguments.
    pub(crate) fn push(&mut self, piece: &str) -> Part {
        match self.state {
            State::Done => Part::default(),
            State::GivenUp => Part { name: None, arguments: piece.to_owned() },
            State::Passing(nesting) => self.pass(nesting, piece),
            State::Reading | State::Held => {
                self.text.push_str(piece);
                if self.text.len() > HELD_MAX {
                    self.state = State::GivenUp;
                    let arguments = std::mem::take(&mut self.text);
                    return Part { name: Some(CALL_TOOL_NAME.to_owned()), arguments };
                }
                self.read()
            }
        }
    }

    /// Returns the rest of the call when the envelope is whole. What holds no call stays a call of the envelope.
    pub(crate) fn end(&mut self) -> Part {
        let state = std::mem::replace(&mut self.state, State::Done);
        if !matches!(state, State::Reading | State::Held) {
            return Part::default();
        }
        let text = std::mem::take(&mut self.text);
        match open(&Value::from(text.as_str())) {
            Some(call) => Part { name: Some(call.name), arguments: call.arguments_json },
            None => Part { name: Some(CALL_TOOL_NAME.to_owned()), arguments: text },
        }
    }

    fn read(&mut self) -> Part {
        if matches!(self.state, State::Held) {
            return Part::default();
        }
        match beginning(&self.text) {
            Beginning::Short => Part::default(),
            // A search is answered when it is whole.
            Beginning::Named(name, _) if is_search(&name) => {
                self.state = State::Held;
                Part::default()
            }
            Beginning::Named(name, at) => {
                let begun = std::mem::take(&mut self.text).split_off(at);
                let arguments = self.pass(Nesting::default(), &begun).arguments;
                Part { name: Some(name), arguments }
            }
            Beginning::Other => {
                self.state = State::Held;
                Part::default()
            }
        }
    }

    /// Writes arguments up to the end of their object.
    fn pass(&mut self, mut nesting: Nesting, piece: &str) -> Part {
        for (at, byte) in piece.bytes().enumerate() {
            if nesting.is_end(byte) {
                self.state = State::Done;
                return Part { name: None, arguments: piece[..=at].to_owned() };
            }
        }
        self.state = State::Passing(nesting);
        Part { name: None, arguments: piece.to_owned() }
    }
}

impl Nesting {
    /// Takes the next byte. Returns true if it ends the object.
    fn is_end(&mut self, byte: u8) -> bool {
        if self.is_escaped {
            self.is_escaped = false;
        } else if self.is_text {
            self.is_escaped = byte == b'\\';
            self.is_text = byte != b'"';
        } else {
            match byte {
                b'"' => self.is_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    return self.depth == 0;
                }
                _ => {}
            }
        }
        false
    }
}

/// Reads `{"name": "...", "arguments": {`, with any white space.
fn beginning(text: &str) -> Beginning {
    let mut reader = Reader { text, at: 0 };
    let read = |reader: &mut Reader<'_>| -> Result<String, Beginning> {
        reader.sign(b'{')?;
        reader.key("name")?;
        let name = reader.text()?;
        reader.sign(b',')?;
        reader.key("arguments")?;
        reader.sign(b'{')?;
        Ok(name)
    };
    match read(&mut reader) {
        Ok(name) if name.trim().is_empty() => Beginning::Other,
        Ok(name) => Beginning::Named(name, reader.at - 1),
        Err(end) => end,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn sign(&mut self, sign: u8) -> Result<(), Beginning> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        match rest.bytes().next() {
            None => Err(Beginning::Short),
            Some(next) if next == sign => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Beginning::Other),
        }
    }

    fn key(&mut self, key: &str) -> Result<(), Beginning> {
        if self.text()? != key {
            return Err(Beginning::Other);
        }
        self.sign(b':')
    }

    fn text(&mut self) -> Result<String, Beginning> {
        self.sign(b'"')?;
        let mut is_escaped = false;
        for (at, byte) in self.text[self.at..].bytes().enumerate() {
            if is_escaped {
                is_escaped = false;
            } else if byte == b'\\' {
                is_escaped = true;
            } else if byte == b'"' {
                let end = self.at + at + 1;
                let text = serde_json::from_str(&self.text[self.at - 1..end]);
                self.at = end;
                return text.map_err(|_| Beginning::Other);
            }
        }
        Err(Beginning::Short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens an envelope that comes in pieces of so many bytes.
    fn opened(text: &str, size: usize) -> Part {
        let mut opener = Opener::default();
        let mut whole = Part::default();
        let mut rest = text;
        while !rest.is_empty() {
            let end = (size..=rest.len()).find(|at| rest.is_char_boundary(*at));
            let (piece, next) = rest.split_at(end.unwrap_or(rest.len()));
            add(&mut whole, opener.push(piece));
            rest = next;
        }
        add(&mut whole, opener.end());
        whole
    }

    fn add(whole: &mut Part, part: Part) {
        assert!(whole.name.is_some() || part.name.is_some() || part.arguments.is_empty());
        assert!(whole.name.is_none() || part.name.is_none(), "a name comes once");
        whole.name = whole.name.take().or(part.name);
        whole.arguments.push_str(&part.arguments);
    }

    #[test]
    fn calls_come_out_however_they_are_cut() {
        let inner = r#"{"é":"}\"{", "b":[{"c":1.0}]}"#;
        for text in [
            format!(r#"{{"name":"mcp__a__b","arguments":{inner}}}"#),
            format!(" {{ \"name\" : \"mcp__a__b\" ,\n\"arguments\" : {inner} }} "),
        ] {
            for size in 1..=text.len() {
                let part = opened(&text, size);
                assert_eq!(part.name.as_deref(), Some("mcp__a__b"), "{size}");
                assert_eq!(part.arguments, inner, "{size}");
            }
        }
    }

    #[test]
    fn other_orders_are_opened_when_they_are_whole() {
        for text in [
            r#"{"arguments":{"a":1},"name":"t"}"#,
            r#"{"name":"t","arguments":"{\"a\":1}"}"#,
            r#""{\"name\":\"t\",\"arguments\":{\"a\":1}}""#,
        ] {
            for size in 1..=text.len() {
                let part = opened(text, size);
                let read: Value = serde_json::from_str(&part.arguments).expect("JSON");
                assert_eq!((part.name.as_deref(), read["a"].as_u64()), (Some("t"), Some(1)));
            }
        }
    }

    #[test]
    fn a_call_without_arguments_has_an_empty_object() {
        for text in [
            r#"{"name":"t"}"#,
            r#"{"name":"t","arguments":null}"#,
            r#"{"name":"t","arguments":""}"#,
        ] {
            let part = opened(text, 4);
            assert_eq!((part.name.as_deref(), part.arguments.as_str()), (Some("t"), "{}"));
        }
    }

    #[test]
    fn a_search_is_held_under_each_of_its_names() {
        let mut opener = Opener::default();
        let text = r#"{"name":"functions.toolgate_search_tools","arguments":{"query":"x"}}"#;
        assert_eq!(opener.push(text), Part::default());
        assert_eq!(opener.end().arguments, r#"{"query":"x"}"#);
    }

    #[test]
    fn what_holds_no_call_stays() {
        for text in [
            "",
            "{",
            r#"{"name":""#,
            r#"{"name":7}"#,
            "[]",
            r#"{"arguments":{}}"#,
            r#"{"name":"t","arguments":"ls -l"}"#,
            r#"{"name":"t","arguments":[1]}"#,
        ] {
            let part = opened(text, 1);
            assert_eq!(part.name.as_deref(), Some(CALL_TOOL_NAME), "{text}");
            assert_eq!(part.arguments, text);
        }
    }

    #[test]
    fn an_envelope_that_is_cut_off_has_the_beginning_of_its_arguments() {
        let text = r#"{"name":"t","arguments":{"a":{"b":"c"}}}"#;
        let begin = text.find(r#"{"a""#).expect("there");
        for end in begin + 1..text.len() - 1 {
            let part = opened(&text[..end], 3);
            assert_eq!(
                (part.name.as_deref(), part.arguments.as_str()),
                (Some("t"), &text[begin..end])
            );
        }
    }

    #[test]
    fn a_large_one_is_let_through() {
        let text = format!(r#"{{"arguments":{{"a":"{}"}},"name":"t"}}"#, "x".repeat(HELD_MAX));
        let part = opened(&text, 1 << 10);
        assert_eq!(part.name.as_deref(), Some(CALL_TOOL_NAME));
        assert_eq!(part.arguments, text);
    }
}
