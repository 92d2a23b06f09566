//! Scripted language model on a local port, which can misbehave on purpose.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// Received requests: the tool's name and the request head of each.
pub(crate) type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Status line, additional headers and body of a response.
pub(crate) type Reply = (&'static str, &'static str, String);

/// Starts the model and returns its base address and the list of received requests. `conduct` gets the tool in the
/// request and the number of earlier requests for that tool. If it returns `None`, the connection closes without an
/// answer.
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
        let mut asked = asked.lock();
        asked.push((name.clone(), head));
        asked.iter().filter(|(other, _)| *other == name).count() - 1
    };
    let (status, header, text) = conduct(&tool, before)?;
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", text.len());
    connection.write_all(format!("{head}{header}\r\n{text}").as_bytes()).ok()
}

/// Returns a successful completion with this text.
pub(crate) fn said(content: &str) -> Reply {
    ("200 OK", "", json!({"choices": [{"message": {"content": content}}]}).to_string())
}
