//! The encoder worker: a process that serves one encoder over gRPC, checks itself, and ends with an exit code that
//! tells its supervisor why. Everything but the parsing of the command line is here, so that another binary can be a
//! worker too.

mod admin;
mod api;
mod arguments;
mod bring_up;
mod canary;
mod config;
mod error;
#[cfg(debug_assertions)]
mod fault;
mod lifecycle;
mod logging;
mod telemetry;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime;
use tokio_util::sync::CancellationToken;
use toolgate_encoder::{EncoderHandle, GpuList, load_kernels_eagerly};
use toolgate_serving::{open_as_many_files_as_allowed, outlive_file_size_limit, stop_on_signal};
use toolgate_telemetry::Telemetry;
use tracing::{error, info, warn};

pub use arguments::{HELP, WorkerArguments};
pub use config::{CanaryConfig, WorkerConfig};
pub use error::{CanaryError, WorkerError};
pub use logging::{LogFormat, LogLevel};

use admin::Admin;
use api::Face;
use lifecycle::{Lifecycle, Phase};
use telemetry::Metrics;

/// Least and most threads that answer calls; the encoder has its own.
const CALL_THREADS: RangeInclusive<usize> = 2..=8;

/// Time within which the collector must accept the last spans, once all calls are over.
const LAST_SPANS_MAX: Duration = Duration::from_secs(1);

/// Runs a worker process from start to end: environment, logging, runtime, [`run`], exit code. To be called before the
/// process has a second thread.
#[must_use]
#[allow(unsafe_code, reason = "CUDA reads its settings from the environment alone")]
pub fn main(arguments: WorkerArguments) -> ExitCode {
    if arguments.find_gpus {
        return print_gpus();
    }
    // SAFETY: the threads of logging and of the runtime are started below.
    unsafe { load_kernels_eagerly() };
    let spans = arguments.spans();
    let telemetry = logging::start(arguments.log_format, arguments.log_level, spans.as_ref());
    let outcome = arguments.config().and_then(|config| live(config, telemetry));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error!(exit_code = failure.exit_code(), "{}", failure.with_causes());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints the GPUs that this process sees, as JSON.
fn print_gpus() -> ExitCode {
    let printed = serde_json::to_writer(io::stdout().lock(), &GpuList::find());
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn live(config: WorkerConfig, telemetry: Telemetry) -> Result<(), WorkerError> {
    let mut builder = runtime::Builder::new_multi_thread();
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let runtime = builder.worker_threads(call_threads(cores)).enable_all().build();
    let runtime = runtime.map_err(WorkerError::Runtime)?;
    let outcome = runtime.block_on(async {
        let exporting = telemetry.export();
        let outcome = run(config).await;
        exporting.stop(LAST_SPANS_MAX).await;
        outcome
    });
    // The drain is over: tasks that still run, such as a device that hangs, are not awaited.
    runtime.shutdown_background();
    outcome
}

/// Returns the threads that answer calls on a machine with `cores` cores: half as many, within the bounds. Answers for a
/// GPU of hundreds of thousands of texts a second take more than two.
fn call_threads(cores: usize) -> usize {
    (cores / 2).clamp(*CALL_THREADS.start(), *CALL_THREADS.end())
}

/// Serves until SIGINT or SIGTERM (or, if so configured, until standard input ends), then drains.
///
/// # Errors
/// The reason that it could not start, or that ended it.
pub async fn run(config: WorkerConfig) -> Result<(), WorkerError> {
    // The log may be a file.
    outlive_file_size_limit();
    open_as_many_files_as_allowed();
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    if config.until_stdin_ends {
        stop_with_stdin(stop.clone())?;
    }
    serve_until(config, stop).await
}

/// Waits for the end of standard input on its own thread, because such a read can't be cancelled.
fn stop_with_stdin(stop: CancellationToken) -> Result<(), WorkerError> {
    let wait = move || {
        // An input that can't be read has ended too.
        drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
        info!("standard input has ended: draining calls in progress");
        stop.cancel();
    };
    let spawned = thread::Builder::new().name("stdin".into()).spawn(wait);
    spawned.map(drop).map_err(WorkerError::Runtime)
}

/// Serves until `stop` is cancelled, then drains. The ports are open before the model is loaded. Health reports
/// NOT_SERVING until the encoder is warm and its first canary was right.
///
/// # Errors
/// The same as [`run`].
pub async fn serve_until(config: WorkerConfig, stop: CancellationToken) -> Result<(), WorkerError> {
    let listener = listen(config.listen, "--listen").await?;
    let admin_listener = listen(config.admin_listen, "--admin-listen").await?;
    announce(&listener, &admin_listener);
    let lifecycle = Arc::new(Lifecycle::default());
    let metrics = Arc::new(Metrics::new(Arc::clone(&lifecycle)));
    let drain = CancellationToken::new();
    let over = CancellationToken::new();
    let face = Face::new(Arc::clone(&lifecycle), Arc::clone(&metrics));
    let mut api = tokio::spawn(api::serve(listener, face, config.drain, drain.clone()));
    let admin = Admin { lifecycle: Arc::clone(&lifecycle), metrics: Arc::clone(&metrics) };
    let admin = tokio::spawn(admin::serve(admin_listener, admin, over.clone()));
    let ended = tokio::select! {
        failure = bring_up::and_watch(&config, &lifecycle, &metrics) => Err(failure),
        () = stop.cancelled() => Ok(()),
        served = &mut api => return Err(transport_error(served)),
    };
    lifecycle.enter(if ended.is_ok() { Phase::Draining } else { Phase::Broken });
    if let Err(failure) = &ended {
        error!("no longer serving: {}", failure.with_causes());
    }
    drain.cancel();
    let served = api.await;
    over.cancel();
    if let Err(error) = admin.await {
        warn!(%error, "the admin port failed");
    }
    info!("stopped");
    ended?;
    if matches!(served, Ok(Ok(()))) { Ok(()) } else { Err(transport_error(served)) }
}

/// Serves an encoder that is loaded already until `stop` is cancelled, without an admin port and without a canary of its
/// own. It is for benchmarks, whose device is a model of one.
///
/// # Errors
/// [`WorkerError::Transport`] if serving failed.
pub async fn serve_encoder(
    listener: TcpListener,
    encoder: EncoderHandle,
    stop: CancellationToken,
) -> Result<(), WorkerError> {
    let lifecycle = Arc::new(Lifecycle::default());
    let metrics = Arc::new(Metrics::new(Arc::clone(&lifecycle)));
    lifecycle.serve_with(encoder);
    let face = Face::new(Arc::clone(&lifecycle), metrics);
    match api::serve(listener, face, Duration::ZERO, stop).await {
        Ok(()) => Ok(()),
        failed => Err(transport_error(Ok(failed))),
    }
}

type Served = Result<Result<(), error::Cause>, tokio::task::JoinError>;

fn transport_error(served: Served) -> WorkerError {
    WorkerError::Transport(match served {
        Ok(Ok(())) => "it ended by itself".into(),
        Ok(Err(cause)) => cause,
        Err(panic) => panic.into(),
    })
}

async fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, WorkerError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| WorkerError::Listen { address, flag, source })
}

/// Prints the line from which a supervisor reads the ports.
fn announce(listener: &TcpListener, admin: &TcpListener) {
    let text = |bound: io::Result<SocketAddr>| bound.map_or_else(|_| "?".into(), |a| a.to_string());
    let grpc = listener.local_addr();
    let http = admin.local_addr();
    if grpc.as_ref().is_ok_and(|address| !address.ip().is_loopback()) {
        warn!(
            "listening beyond this machine without authentication: who reaches the port can embed"
        );
    }
    info!(grpc = text(grpc), admin = text(http), "listening");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_cores_answer_calls_within_bounds() {
        for (cores, threads) in [(1, 2), (4, 2), (8, 4), (16, 8), (128, 8)] {
            assert_eq!(call_threads(cores), threads, "{cores} cores");
        }
    }
}
