//! What went wrong, as the protocol says it.

use serde_json::{Value, json};
use toolgate_client::{Code, Error};

/// Why a request has no value.
pub enum Failure {
    /// A call failed.
    Call(Error),
    /// The SDK refused it before anything was sent.
    Usage { message: String },
    /// The request is none that the driver knows.
    Driver { message: String },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.code() {
            Some(_) => Self::Call(error),
            None => Self::usage(error),
        }
    }
}

impl Failure {
    /// Of a mistake that the SDK found.
    pub fn usage(error: impl std::fmt::Display) -> Self {
        Self::Usage { message: error.to_string() }
    }

    /// Of a request that can't be read.
    pub fn driver(message: impl Into<String>) -> Self {
        Self::Driver { message: message.into() }
    }

    /// The protocol's form.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Usage { message } => json!({ "kind": "usage", "message": message }),
            Self::Driver { message } => json!({ "kind": "driver", "message": message }),
            Self::Call(error) => of_call(error),
        }
    }
}

fn of_call(error: &Error) -> Value {
    let code = error.code().map(code_name).unwrap_or_default();
    let Some(call) = error.answer() else {
        return json!({
            "kind": "call", "code": code, "reason": "", "message": error.to_string(),
            "metadata": {}, "field_violations": [], "retry_after": null,
        });
    };
    let violations = call.violations.iter();
    let violations = violations.map(|v| json!({ "field": v.field, "description": v.description }));
    json!({
        "kind": "call",
        "code": code,
        "reason": call.reason_name,
        "message": call.message,
        "metadata": call.metadata,
        "field_violations": violations.collect::<Vec<_>>(),
        "retry_after": call.retry_delay.map(|delay| delay.as_secs_f64()),
    })
}

/// Such as `INVALID_ARGUMENT`.
pub fn code_name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}
