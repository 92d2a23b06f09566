//! One run of the binary, on free ports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tonic::transport::{Channel, Endpoint};
use toolgate_model_hub::{Silent, Source, default_model_dir, fetch};
use toolgate_proto::v1::encoder_service_client::EncoderServiceClient;

/// Time limit that holds even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Worker {
    child: Child,
    lines: Receiver<String>,
    grpc: String,
    admin: String,
}

/// Returns the directory of the cached model; fetches it first if it is missing.
pub fn model_dir() -> PathBuf {
    let dir = default_model_dir().expect("a home directory");
    fetch(&dir, &Source::online(), &mut Silent).expect("the model can be fetched");
    dir
}

/// Builds the command of the binary, without environment variables that would change it. Later flags win.
pub fn command(flags: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate-encoder-worker"));
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| name.to_string_lossy().starts_with("TOOLGATE_")) {
        command.env_remove(name);
    }
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    command.args(["--log-format", "json", "--device", "cpu", "--format", "f32"]);
    command.arg("--model-dir").arg(model_dir());
    command.args(flags.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Worker {
    /// Starts a worker and waits until it answers calls.
    pub fn serving(flags: &str) -> Self {
        Self::serving_as(command(&format!("--canary-timeout 20s {flags}")))
    }

    /// Starts a worker like [`Self::serving`], from a command prepared by the test.
    pub fn serving_as(command: Command) -> Self {
        let mut worker = Self::listening(command);
        worker.event("serving");
        worker
    }

    /// Starts a worker and waits until its ports are open.
    pub fn listening(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the binary starts");
        let log = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(log).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        let mut worker = Self { child, lines, grpc: String::new(), admin: String::new() };
        let event = worker.event("listening");
        let text = |key: &str| event[key].as_str().expect("an address").to_owned();
        (worker.grpc, worker.admin) = (text("grpc"), text("admin"));
        worker
    }

    /// Returns the next log event with that message.
    pub fn event(&mut self, message: &str) -> Value {
        let mut said = Vec::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("no {message:?} ({error}): {said:#?}"));
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            if event["message"] == message {
                return event;
            }
            said.push(line);
        }
    }

    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc));
        endpoint.expect("an address").connect().await.expect("the port is open")
    }

    pub async fn client(&self) -> EncoderServiceClient<Channel> {
        EncoderServiceClient::new(self.channel().await)
    }

    /// Returns the status line and the body of a GET on the admin port.
    pub fn get(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.admin).expect("the admin port is open");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }

    /// Returns one sample of `/metrics`.
    pub fn metric(&self, sample: &str) -> f64 {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find(|line| line.split(' ').next() == Some(sample));
        let value = line.and_then(|line| line.rsplit(' ').next()).and_then(|v| v.parse().ok());
        value.unwrap_or_else(|| panic!("no {sample} in\n{text}"))
    }

    /// Waits until a sample is at least `least`.
    pub async fn metric_reaches(&self, sample: &str, least: f64) {
        let limit = Instant::now() + PATIENCE;
        while self.metric(sample) < least {
            assert!(Instant::now() < limit, "{sample} never was {least}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let kill = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status();
        assert!(kill.expect("kill runs").success());
    }

    /// Closes the worker's standard input.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Returns the exit code, and the time until the worker ended.
    pub async fn exit(&mut self) -> (Option<i32>, Duration) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return (status.code(), started.elapsed());
            }
            assert!(started.elapsed() < PATIENCE, "it does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
