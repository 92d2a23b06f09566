//! Outcome of a command: its exit code, and for a failure a message with the problem and its solution.

use std::io;
use std::process::ExitCode;

use toolgate_client::{Error as ClientError, ErrorReason};

use super::output;
use toolgate_config::ConfigErrors;

/// Exit of a command. The codes are part of the interface and listed in `toolgate --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Success.
    Done,
    /// Failure.
    Failed,
    /// Invalid command line.
    Usage,
    /// Refusal by Gate, a rejected tool in a registration, or a problem found by a check.
    Refused,
    /// No server within reach.
    Unreachable,
    /// Interruption by Ctrl-C.
    Interrupted,
    /// The code of a program that the command ran.
    Program(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Unreachable => 4,
            // Shells report this code for a process that SIGINT ended.
            Exit::Interrupted => 130,
            Exit::Program(code) => code,
        })
    }
}

/// Failure of a command.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, message: message.into() }
    }

    pub(super) fn unreachable(message: impl Into<String>) -> Self {
        Self { exit: Exit::Unreachable, message: message.into() }
    }

    pub(super) fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, message: "interrupted".into() }
    }

    pub(super) fn exit(&self) -> Exit {
        self.exit
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the failure, unless its message is empty.
    pub(super) fn report(&self) {
        if !self.message.is_empty() {
            output::print_error(&self.message);
        }
    }
}

/// Error of writing results. A reader that closed its end (`| head`) is not a failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::Done, message: String::new() };
        }
        Self::new(format!("the result cannot be written: {error}"))
    }
}

/// End of the HTTP/2 error of a server that answered with HTTP/1.
const HTTP_1: &str = "frame with invalid size";

/// Beginning of the message of an answer that is none of gRPC. The HTTP status stands at its end.
const NO_GRPC: &str = "grpc-status header missing";

impl Failure {
    /// Returns the failure of a call to something that is no Toolgate server. `met` says what is known of it.
    fn foreign(met: &str) -> Self {
        Self::unreachable(format!(
            "what answers at the endpoint is no Toolgate server: {met}\n  --endpoint and TOOLGATE_ENDPOINT name the gRPC address of a \
             server (server.listen, by default http://127.0.0.1:7070), not that of its metrics (7071), of a gateway (7080) or of an LLM \
             proxy (7090); for a gateway's own plane it is --endpoint gateway"
        ))
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable { cause, .. } if cause.ends_with(HTTP_1) => {
                Self::foreign("it answers with HTTP/1, and gRPC is HTTP/2")
            }
            ClientError::Call(call) if call.message.starts_with(NO_GRPC) => {
                let status = call.message.rsplit(' ').next().unwrap_or_default();
                Self::foreign(&format!("it answers with HTTP status {status}, and not with gRPC"))
            }
            ClientError::Unreachable { endpoint, cause } => Self {
                exit: Exit::Unreachable,
                message: format!(
                    "no Toolgate server at {endpoint} ({cause})\n  start one with `toolgate serve`, or \
                     name the gRPC address of one (server.listen, not that of its metrics, of a \
                     gateway or of an LLM proxy) with --endpoint or TOOLGATE_ENDPOINT"
                ),
            },
            ClientError::Endpoint { .. } => Self::usage(format!("--endpoint: {error}")),
            ClientError::Deadline { .. } => {
                Self::new(format!("{error}\n  --deadline sets how long a call may take"))
            }
            error if error.reason() == Some(ErrorReason::DeadlineExceeded) => {
                let limits = "--deadline sets how long a call may take, up to server.max_deadline";
                Self::new(format!("{error}\n  {limits}"))
            }
            error => Self::new(error.to_string()),
        }
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self::new(errors.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use toolgate_client::{CallError, Code};

    use super::*;

    #[test]
    fn an_unreachable_server_has_its_own_code_and_says_what_to_do() {
        let failure = Failure::from(ClientError::Unreachable {
            endpoint: "http://127.0.0.1:7070".into(),
            cause: "Connection refused".into(),
        });
        assert_eq!(failure.exit(), Exit::Unreachable);
        for part in ["http://127.0.0.1:7070", "toolgate serve", "--endpoint"] {
            assert!(failure.message().contains(part), "{}", failure.message());
        }
    }

    #[test]
    fn what_is_no_toolgate_server_is_told_with_the_port_that_is_meant() {
        let call = |message: &str| CallError {
            rpc: "GetUsage",
            code: Code::Unimplemented,
            reason: None,
            reason_name: String::new(),
            message: message.to_owned(),
            metadata: BTreeMap::new(),
            violations: Vec::new(),
            retry_delay: None,
        };
        let status = "grpc-status header missing, mapped from HTTP status code 404";
        let cause = "connection error detected: frame with invalid size";
        let endpoint = "http://127.0.0.1:7080";
        for (error, met) in [
            (ClientError::Call(Box::new(call(status))), "HTTP status 404"),
            (ClientError::Unreachable { endpoint: endpoint.into(), cause: cause.into() }, "HTTP/1"),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.exit(), Exit::Unreachable);
            for part in [met, "server.listen", "7070", "--endpoint gateway"] {
                assert!(failure.message().contains(part), "{}", failure.message());
            }
        }
        let other = Failure::from(ClientError::Call(Box::new(call("not served"))));
        assert_eq!(other.exit(), Exit::Failed);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit(), failure.message()), (Exit::Done, ""));
        let failure = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(failure.exit(), Exit::Failed);
    }

    #[test]
    fn a_bad_endpoint_is_a_usage_mistake() {
        let error =
            ClientError::Endpoint { endpoint: "x".into(), problem: "it names no port".into() };
        assert_eq!(Failure::from(error).exit(), Exit::Usage);
    }
}
