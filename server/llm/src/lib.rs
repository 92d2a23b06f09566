//! Formats of LLM providers' APIs, in one place: OpenAI's Chat Completions and Responses, Anthropic's Messages, Gemini, and
//! MCP. [`render`] writes tools in a provider's format. [`strategy`] puts them into requests, and [`price`] says what those
//! cost. [`context_window`] knows the windows of models. [`history`] reads the messages of a conversation. [`calls`] reads the model's calls. Nothing here knows Toolgate's
//! wire format, so that clients, server and gateway share it.

pub mod calls;
pub mod envelope;
pub mod history;
pub mod price;
pub mod render;
mod search_tool;
pub mod strategy;
mod window;

pub use search_tool::{SEARCH_TOOL, SEARCH_TOOL_NAME};
pub use window::context_window;
