//! Metadata of a host's request that goes to the server, and notes of the server that come back on the request's stream.
#![expect(deprecated, reason = "both eras: logging is deprecated in the newer")]

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, RequestMetaObject,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// Notes of a call that wait to be sent. More are dropped.
const NOTES_MAX: usize = 16;

/// Least level of messages that a host of a revision before 2026-07-28 set for its session; `None` before it did.
pub(crate) type SessionLevel = Arc<Mutex<Option<LoggingLevel>>>;

/// Sets the host's metadata in the parameters of a request: its capabilities are those that the server may use, and the
/// level of its session is the request's, unless the request has one.
pub(crate) fn set_meta(
    params: &mut Map<String, Value>,
    context: &RequestContext<RoleServer>,
    level: Option<LoggingLevel>,
) {
    let mut meta = context.meta.clone();
    meta.set_client_capabilities(context.client_capabilities().unwrap_or_default());
    with_level(&mut meta, level);
    if let Ok(meta) = serde_json::to_value(meta) {
        params.insert("_meta".to_owned(), meta);
    }
}

/// Returns the trace that the host's request is part of, as the metadata of a request to a server.
pub(crate) fn trace(meta: &RequestMetaObject) -> Map<String, Value> {
    let mut trace = Map::new();
    for field in ["traceparent", "tracestate", "baggage"] {
        if let Some(value) = meta.get(field).filter(|value| value.is_string()) {
            trace.insert(field.to_owned(), value.clone());
        }
    }
    trace
}

fn with_level(meta: &mut RequestMetaObject, level: Option<LoggingLevel>) {
    if let (Some(level), None) = (level, meta.log_level()) {
        meta.set_log_level(level);
    }
}

/// Returns the receiver of what a server tells during a call. The host gets progress under its own token, if it asked for it,
/// and messages of the level that it wants.
pub(crate) fn notes(
    context: &RequestContext<RoleServer>,
    level: Option<LoggingLevel>,
) -> Option<mpsc::Sender<Value>> {
    let token = context.meta.get_progress_token();
    let token = token.and_then(|token| serde_json::to_value(token).ok());
    let level = context.meta.log_level().or(level);
    if token.is_none() && level.is_none() {
        return None;
    }
    let peer = context.peer.clone();
    let (sender, mut notes) = mpsc::channel::<Value>(NOTES_MAX);
    tokio::spawn(async move {
        while let Some(note) = notes.recv().await {
            let is_sent = match read(note, token.as_ref(), level) {
                Some(Note::Progress(progress)) => peer.notify_progress(progress).await,
                Some(Note::Message(message)) => peer.notify_logging_message(message).await,
                None => Ok(()),
            };
            if is_sent.is_err() {
                return;
            }
        }
    });
    Some(sender)
}

/// Note of a server that a host gets.
#[derive(Debug)]
enum Note {
    Progress(ProgressNotificationParam),
    Message(LoggingMessageNotificationParam),
}

/// Reads the parameters of a notification; `None` if the host does not want it.
fn read(mut note: Value, token: Option<&Value>, least: Option<LoggingLevel>) -> Option<Note> {
    if note.get("progress").is_some() {
        note.as_object_mut()?.insert("progressToken".to_owned(), token?.clone());
        return serde_json::from_value(note).ok().map(Note::Progress);
    }
    let message: LoggingMessageNotificationParam = serde_json::from_value(note).ok()?;
    (severity(message.level) >= severity(least?)).then_some(Note::Message(message))
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_goes_under_the_hosts_token_or_not_at_all() {
        let note = json!({"progressToken": 7, "progress": 1.0});
        let Some(Note::Progress(told)) = read(note.clone(), Some(&json!("own")), None) else {
            panic!("no progress");
        };
        assert_eq!(serde_json::to_value(told.progress_token).expect("JSON"), "own");
        assert!(read(note, None, None).is_none());
    }

    #[test]
    fn a_trace_goes_on_and_nothing_else() {
        let meta =
            json!({"traceparent": "00-a-b-01", "tracestate": 1, "other": "x", "progressToken": 3});
        let meta: RequestMetaObject = serde_json::from_value(meta).expect("metadata");
        let trace = Value::Object(trace(&meta));
        assert_eq!(trace, json!({"traceparent": "00-a-b-01"}));
    }

    #[test]
    fn messages_below_the_level_that_the_host_set_are_left_out() {
        let note = |level: &str| json!({"level": level, "data": "x"});
        let least = Some(LoggingLevel::Warning);
        assert!(matches!(read(note("warning"), None, least), Some(Note::Message(_))));
        assert!(matches!(read(note("emergency"), None, least), Some(Note::Message(_))));
        assert!(read(note("notice"), None, least).is_none());
        assert!(read(note("emergency"), None, None).is_none());
        assert!(read(json!({"level": "no level", "data": 1}), None, least).is_none());
    }

    #[test]
    fn the_level_of_a_session_is_that_of_requests_without_one() {
        let mut meta = RequestMetaObject::new();
        with_level(&mut meta, None);
        assert_eq!(meta.log_level(), None);
        with_level(&mut meta, Some(LoggingLevel::Info));
        assert_eq!(meta.log_level(), Some(LoggingLevel::Info));
        with_level(&mut meta, Some(LoggingLevel::Error));
        assert_eq!(meta.log_level(), Some(LoggingLevel::Info));
    }
}
