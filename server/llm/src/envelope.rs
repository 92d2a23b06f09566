//! The call envelope: one constant tool through which a model calls tools that are described in the conversation.

/// Name under which the model sees the envelope.
pub const CALL_TOOL_NAME: &str = "toolgate_call_tool";
