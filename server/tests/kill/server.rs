//! One life of the binary: started on free ports, killed without a word.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use toolgate_client::{Client, ClientOptions, RetryOptions};

/// Longer than any start on a machine that does other things too.
const START_MAX: Duration = Duration::from_secs(60);

pub struct Server {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Server {
    /// Starts over `folder`, where `model` and the data are.
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

    /// A client of it, once it says where it serves. Calls are made once: a kill is not retried away.
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

    /// The process' id.
    #[cfg(target_os = "linux")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
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
