//! One process of the binary. It listens on free ports and is killed with SIGKILL.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use toolgate_client::{Client, ClientOptions, RetryOptions};

/// Time limit for a start. It is long enough for a busy machine.
const START_MAX: Duration = Duration::from_secs(60);

pub struct Server {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Server {
    /// Starts the server with the `model` and `data` folders in `folder`.
    pub fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("TOOLGATE_")) {
            command.env_remove(name);
        }
        command.arg("serve").env("XDG_CONFIG_HOME", folder);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(folder.join("data"));
        command.arg("--model-dir").arg(folder.join("model"));
        command.args(["--log-format", "json", "--log-level", "info"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let log = child.stderr.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(log).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        Self { child, lines }
    }

    /// Waits for the server's address and returns a client. The client does not retry, because retries would hide a
    /// kill.
    pub async fn client(&mut self) -> Client {
        let mut said = Vec::new();
        loop {
            let line = self.lines.recv_timeout(START_MAX);
            let line = line.unwrap_or_else(|error| panic!("no address ({error}): {said:#?}"));
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(address) = event["grpc"].as_str() {
                let retry = RetryOptions { max_attempts: 1, ..RetryOptions::default() };
                let deadline = Duration::from_secs(30);
                let options = ClientOptions { retry, deadline, ..ClientOptions::default() };
                let endpoint = format!("http://{address}");
                return Client::connect(&endpoint, options).await.expect("it serves");
            }
            said.push(line);
        }
    }

    #[cfg(target_os = "linux")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
