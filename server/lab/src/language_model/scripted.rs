//! A small language model on a port of this machine, which can misbehave on purpose.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// What was asked: the tool's name and the whole head of the request.
pub(crate) type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Status line, further headers and body.
pub(crate) type Reply = (&'static str, &'static str, String);

/// Starts a model that answers by what it is told of a tool, and how often it was asked about it before; `None` never
/// answers. Its base address, and what it was asked.
pub(crate) fn start(
    conduct: impl Fn(&Value, usize) -> Option<Reply> + Send + Sync + 'static,
) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let conduct = Arc::new(conduct);
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let seen = Arc::clone(&seen);
            let conduct = Arc::clone(&conduct);
            thread::spawn(move || answer(connection, &seen, &*conduct));
        }
    });
    (address, asked)
}

fn answer(
    mut connection: TcpStream,
    asked: &Asked,
    conduct: &dyn Fn(&Value, usize) -> Option<Reply>,
) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut head = String::new();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        head.push_str(&line);
        line.clear();
    }
    let length = head.lines().find_map(|line| {
        line.to_lowercase().strip_prefix("content-length: ").map(|n| n.trim().parse().ok())
    });
    let mut body = vec![0; length??];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let tool: Value = serde_json::from_str(body["messages"][1]["content"].as_str()?).ok()?;
    let name = tool["name"].as_str()?.to_owned();
    let before = {
        let mut asked = asked.lock().expect("no panic while held");
        asked.push((name.clone(), head));
        asked.iter().filter(|(other, _)| *other == name).count() - 1
    };
    let (status, header, text) = conduct(&tool, before)?;
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", text.len());
    connection.write_all(format!("{head}{header}\r\n{text}").as_bytes()).ok()
}

/// A good completion with this text.
pub(crate) fn said(content: &str) -> Reply {
    ("200 OK", "", json!({"choices": [{"message": {"content": content}}]}).to_string())
}
