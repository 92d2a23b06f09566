//! The admin port. It serves metrics and health checks over plain HTTP, on a port of its own.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolgate_serving::serve_pages;

use toolgate_app::plane::Plane;
use toolgate_app::telemetry::Metrics;

/// Content type of the exposition text (OpenMetrics 1.0).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// State behind the routes of the admin port.
#[derive(Clone)]
pub struct Admin {
    /// The service whose shard and store gauges are read.
    pub plane: Arc<Plane>,
    /// Counters and histograms of the process.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the service starts to drain. The process is not ready from then on.
    pub draining: CancellationToken,
}

/// Body of `/`, a list of the other pages.
const PAGES: &str = concat!(
    "Toolgate ",
    env!("CARGO_PKG_VERSION"),
    ", admin port\n\n",
    "/metrics  metrics (OpenMetrics)\n",
    "/livez    whether the process works\n",
    "/readyz   whether it takes calls\n",
    "/healthz  the same as /readyz\n",
    "/version  name and version (JSON)\n",
);

/// Body of `/version`, as JSON.
const VERSION: &str =
    concat!("{\"name\":\"toolgate\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n");

/// Serves `/`, `/metrics`, `/livez`, `/readyz`, `/healthz` and `/version` until `over`.
pub async fn serve(listener: TcpListener, admin: Admin, over: CancellationToken) {
    let routes = Router::new()
        .route("/", get(|| async { PAGES }))
        .route(
            "/version",
            get(|| async { ([(header::CONTENT_TYPE, "application/json")], VERSION) }),
        )
        .route("/metrics", get(expose))
        .route("/livez", get(liveness))
        .route("/readyz", get(readiness))
        .route("/healthz", get(readiness))
        .with_state(admin);
    serve_pages(listener, routes, over).await;
}

async fn expose(State(admin): State<Admin>) -> impl IntoResponse {
    let shards = admin.plane.shards_reading();
    ([(header::CONTENT_TYPE, OPEN_METRICS)], admin.metrics.expose(shards))
}

/// Fails once the encoder of this process has stopped, because only a restart brings it back.
async fn liveness(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.metrics.encoder().in_process_stopped() {
        (StatusCode::SERVICE_UNAVAILABLE, "the encoder has stopped\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

async fn readiness(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.draining.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n");
    }
    let is_cut_off = !admin.plane.reaches_store();
    match liveness(State(admin)).await {
        // Route and Gate still answer without the store, and a restart would not bring the store back.
        (StatusCode::OK, _) if is_cut_off => (
            StatusCode::OK,
            "ok, but the store can't be reached: serving what is loaded or copied\n",
        ),
        answer => answer,
    }
}
