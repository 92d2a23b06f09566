//! The conformance driver of the Rust SDK: one JSON request a line on standard input, one JSON answer a line on
//! standard output, in order.

mod calls;
mod clients;
mod failure;
mod helpers;
mod loads;
mod messages;
mod tools;
mod watches;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, stdin, stdout};

use crate::clients::Clients;
use crate::failure::Failure;
use crate::watches::Watches;

/// What is kept from one request to the next.
#[derive(Default)]
struct Driver {
    clients: Clients,
    watches: Watches,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut driver = Driver::default();
    let mut lines = BufReader::new(stdin()).lines();
    let mut out = stdout();
    while let Some(line) = lines.next_line().await? {
        if line.trim().is_empty() {
            continue;
        }
        let outcome = AssertUnwindSafe(driver.answer(&line)).catch_unwind().await;
        let answer = match outcome {
            Ok(Ok(value)) => json!({ "ok": value }),
            Ok(Err(failure)) => json!({ "error": failure.to_json() }),
            Err(panic) => json!({ "error": { "kind": "crash", "message": said(&*panic) } }),
        };
        out.write_all(format!("{answer}\n").as_bytes()).await?;
        out.flush().await?;
    }
    Ok(())
}

impl Driver {
    async fn answer(&mut self, line: &str) -> Result<Value, Failure> {
        let request: Value = serde_json::from_str(line).map_err(|error| Failure::Usage {
            // A text of Rust's holds no lone surrogate.
            message: format!("no JSON that this language's texts can hold: {error}"),
        })?;
        let op = request["op"].as_str().unwrap_or_default();
        let args = &request["args"];
        if let Some(answer) = helpers::run(op, args).or_else(|| tools::run(op, args)) {
            return answer;
        }
        match op {
            "versions" => return Ok(versions()),
            "watch_take" => return self.watches.take(args).await,
            "watch_stop" => return self.watches.stop(args),
            _ => {}
        }
        if op == "open_close" {
            return loads::open_close(&request["client"], args).await;
        }
        if op == "bench" && args["raw"] == true {
            return loads::raw_bench(&request["client"], args).await;
        }
        let client = self.clients.get(&request["client"])?;
        match op {
            "watch_start" => self.watches.start(&client, args),
            "soak" => loads::soak(&client, args).await,
            "bench" => loads::bench(&client, args).await,
            op => calls::run(op, &client, args).await,
        }
    }
}

fn versions() -> Value {
    json!({ "sdk": toolgate_client::VERSION, "runtime": env!("COMPILER") })
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words")
}
