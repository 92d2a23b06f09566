//! Watches that go on between requests.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use toolgate_client::{Client, Error, v1};

use crate::clients::timeout;
use crate::failure::Failure;
use crate::messages::{read, write};

/// Changes that are collected before they are taken.
const HELD: usize = 10_000;

/// The watches that were started and not stopped, by their numbers.
#[derive(Default)]
pub struct Watches {
    running: HashMap<u64, Watch>,
    started: u64,
}

struct Watch {
    changes: mpsc::Receiver<Result<v1::WatchCatalogResponse, Error>>,
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watches {
    /// Begins to collect.
    pub fn start(&mut self, client: &Client, args: &Value) -> Result<Value, Failure> {
        let mut watch = client.watch_catalog(read(&args["request"])?);
        let (send, changes) = mpsc::channel(HELD);
        let task = tokio::spawn(async move {
            while let Some(change) = watch.next().await {
                if send.send(change).await.is_err() {
                    return;
                }
            }
        });
        self.started += 1;
        self.running.insert(self.started, Watch { changes, task });
        Ok(json!({ "watch": self.started }))
    }

    /// Hands out what was collected, waiting for `count` changes until the time is over.
    pub async fn take(&mut self, args: &Value) -> Result<Value, Failure> {
        let watch = args["watch"].as_u64().and_then(|number| self.running.get_mut(&number));
        let watch = watch.ok_or_else(|| Failure::driver("no such watch"))?;
        let count = args["count"].as_u64().unwrap_or(1);
        let end = Instant::now() + timeout(args)?.unwrap_or(Duration::from_secs(5));
        let mut taken = Map::new();
        let mut events = Vec::new();
        while (events.len() as u64) < count {
            match timeout_at(end, watch.changes.recv()).await {
                Ok(Some(Ok(change))) => events.push(write(&change)),
                Ok(Some(Err(error))) => {
                    taken.insert("error".into(), Failure::from(error).to_json());
                    break;
                }
                Ok(None) | Err(_) => break,
            }
        }
        taken.insert("events".into(), events.into());
        Ok(taken.into())
    }

    /// Ends a watch.
    pub fn stop(&mut self, args: &Value) -> Result<Value, Failure> {
        let stopped = args["watch"].as_u64().and_then(|number| self.running.remove(&number));
        stopped.map(|_| json!({})).ok_or_else(|| Failure::driver("no such watch"))
    }
}
