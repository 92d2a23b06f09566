//! Many calls: how many fail, and how long each takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolgate_client::v1::router_service_client::RouterServiceClient;
use toolgate_client::{Client, DEFAULT_TARGET, v1};

use crate::clients::open;
use crate::failure::{Failure, code_name};
use crate::messages::read;

/// `calls` Route calls, `concurrency` at a time.
pub async fn soak(client: &Client, args: &Value) -> Result<Value, Failure> {
    let request: v1::RouteRequest = read(&args["request"])?;
    let calls = args["calls"].as_u64().unwrap_or(1);
    let begun = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..args["concurrency"].as_u64().unwrap_or(1) {
        let (client, request, next) = (client.clone(), request.clone(), next.clone());
        tasks.spawn(async move {
            let mut failed: Vec<String> = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < calls {
                if let Err(error) = client.route(request.clone()).await {
                    failed.push(error.code().map_or("USAGE".into(), code_name));
                }
            }
            failed
        });
    }
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    for code in tasks.join_all().await.into_iter().flatten() {
        *failed.entry(code).or_default() += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok(json!({ "calls": calls, "failed": failed, "seconds": seconds }))
}

/// Opens a client, calls once and closes it, again and again.
pub async fn open_close(settings: &Value, args: &Value) -> Result<Value, Failure> {
    let request: v1::GetServerRequest = read(&args["request"])?;
    let times = args["times"].as_u64().unwrap_or(1);
    for _ in 0..times {
        open(settings)?.get_server(request.clone()).await?;
    }
    Ok(json!({ "times": times }))
}

/// Calls one after another, each timed.
pub async fn bench(client: &Client, args: &Value) -> Result<Value, Failure> {
    let request: v1::RouteRequest = read(&args["request"])?;
    let mut micros = Vec::new();
    for _ in 0..args["calls"].as_u64().unwrap_or(1) {
        let begun = Instant::now();
        client.route(request.clone()).await?;
        micros.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(json!({ "micros": micros }))
}

/// The same through the generated stub, without the SDK's layer.
pub async fn raw_bench(settings: &Value, args: &Value) -> Result<Value, Failure> {
    let mut request: v1::RouteRequest = read(&args["request"])?;
    if request.tenant.is_empty() {
        request.tenant = settings["tenant"].as_str().unwrap_or_default().to_owned();
    }
    let target = settings["target"].as_str().unwrap_or(DEFAULT_TARGET);
    let address =
        if target.contains("://") { target.to_owned() } else { format!("http://{target}") };
    let failed = |error: &dyn std::fmt::Display| Failure::driver(error.to_string());
    let mut stub = RouterServiceClient::connect(address).await.map_err(|error| failed(&error))?;
    let mut micros = Vec::new();
    for _ in 0..args["calls"].as_u64().unwrap_or(1) {
        let begun = Instant::now();
        stub.route(request.clone()).await.map_err(|status| failed(&status))?;
        micros.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(json!({ "micros": micros }))
}
