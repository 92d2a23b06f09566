//! Metadata of a host's request that goes to the server, and notes of the server that come back on the request's stream.
#![expect(deprecated, reason = "both eras: logging is deprecated in the newer")]

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, RequestMetaObject,
    TASKS_EXTENSION_ID,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc};

use crate::host::is_modern;

/// Time for the last notes of a call to be sent.
const LAST_NOTES: Duration = Duration::from_secs(1);

/// Least level for a session of a revision before 2026-07-28 that set none. What is sent then is the server's to decide; below
/// this level are messages that another host may have asked for.
const UNSET: LoggingLevel = LoggingLevel::Info;

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
    let mut capabilities = context.client_capabilities().unwrap_or_default();
    if !is_modern(context)
        && let Some(extensions) = &mut capabilities.extensions
    {
        // Tasks of this form are of 2026-07-28.
        extensions.remove(TASKS_EXTENSION_ID);
    }
    meta.set_client_capabilities(capabilities);
    with_level(&mut meta, level);
    if let Ok(meta) = serde_json::to_value(meta) {
        params.insert("_meta".to_owned(), meta);
    }
}

fn with_level(meta: &mut RequestMetaObject, level: Option<LoggingLevel>) {
    if let (Some(level), None) = (level, meta.log_level()) {
        meta.set_log_level(level);
    }
}

/// Host that hears what a server tells during its request: progress under its own token, if it asked for it, and messages of
/// the level that it wants.
pub(crate) struct Hearer {
    peer: Peer<RoleServer>,
    token: Option<Value>,
    level: Option<LoggingLevel>,
    /// Server whose name the host is to see in messages.
    named: Option<String>,
}

impl Hearer {
    /// Returns the host of a request; `None` if it wants to hear nothing. Its session has set `level`; messages have the name of
    /// the server that is `named`.
    pub(crate) fn of(
        context: &RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
        named: Option<&str>,
    ) -> Option<Self> {
        let token = context.meta.get_progress_token();
        let token = token.and_then(|token| serde_json::to_value(token).ok());
        let session = || (!is_modern(context)).then(|| level_of(level));
        let level = context.meta.log_level().or_else(session);
        let wants_nothing = token.is_none() && level.is_none();
        let named = named.map(str::to_owned);
        (!wants_nothing).then(|| Self { peer: context.peer.clone(), token, level, named })
    }

    /// Tells the host, and returns whether it is still there.
    pub(crate) async fn tell(&self, note: Value) -> bool {
        let told = match read(note, self.token.as_ref(), self.level) {
            Some(Note::Progress(progress)) => self.peer.notify_progress(progress).await,
            Some(Note::Message(message)) => {
                let message = with_name(message, self.named.as_deref());
                self.peer.notify_logging_message(message).await
            }
            None => Ok(()),
        };
        told.is_ok()
    }
}

/// Tells a host what its server says until the answer comes, and then what the server said before it.
pub(crate) async fn tell_until<T>(
    hearer: &Hearer,
    mut notes: mpsc::Receiver<Value>,
    answer: impl Future<Output = T>,
) -> T {
    let answered = Notify::new();
    let tell = async {
        loop {
            let note = tokio::select! {
                biased;
                note = notes.recv() => note,
                () = answered.notified() => None,
            };
            let Some(note) = note else { return };
            if !hearer.tell(note).await {
                return;
            }
        }
    };
    let mut tell = pin!(tell);
    let mut answer = pin!(answer);
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        () = &mut tell => return answer.await,
    };
    answered.notify_one();
    // A host that takes nothing gets the answer all the same.
    let _late = tokio::time::timeout(LAST_NOTES, tell).await;
    answer
}

/// Returns the message of a server's notification, with the name of the server if it is to be `named`; `None` if it is below the
/// level of a session, or none.
pub(crate) fn message(
    params: Value,
    level: Option<LoggingLevel>,
    named: Option<&str>,
) -> Option<LoggingMessageNotificationParam> {
    match read(params, None, Some(level_of(level)))? {
        Note::Message(message) => Some(with_name(message, named)),
        Note::Progress(_) => None,
    }
}

/// Returns the least level of messages for a session that may have set one.
fn level_of(set: Option<LoggingLevel>) -> LoggingLevel {
    set.unwrap_or(UNSET)
}

/// Returns a message whose logger says which server it is of, where several are behind one face.
fn with_name(
    mut message: LoggingMessageNotificationParam,
    named: Option<&str>,
) -> LoggingMessageNotificationParam {
    if let Some(server) = named {
        let logger = message.logger.take();
        let logger = logger.map_or_else(|| server.to_owned(), |own| format!("{server}/{own}"));
        message.logger = Some(logger);
    }
    message
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
    fn a_message_says_whose_it_is_where_several_servers_are_behind_one_face() {
        let logger = |own: Value, named: Option<&str>| {
            let params = json!({"level": "info", "logger": own, "data": 1});
            message(params, None, named).expect("a message").logger
        };
        assert_eq!(logger(json!("db"), Some("notes")).as_deref(), Some("notes/db"));
        assert_eq!(logger(Value::Null, Some("notes")).as_deref(), Some("notes"));
        assert_eq!(logger(json!("db"), None).as_deref(), Some("db"));
    }

    #[test]
    fn a_session_without_a_level_hears_no_details() {
        let is_heard = |level: &str, least: Option<LoggingLevel>| {
            message(json!({"level": level, "data": 1}), least, None).is_some()
        };
        assert!(is_heard("info", None) && !is_heard("debug", None));
        assert!(is_heard("debug", Some(LoggingLevel::Debug)));
        assert!(!is_heard("info", Some(LoggingLevel::Error)));
        assert!(message(json!({"progress": 1, "progressToken": 1}), None, None).is_none());
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
