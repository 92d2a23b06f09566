//! Page sizes and page tokens (AIP-158). A token names the last row of a page and its listing.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;
use serde::{Deserialize, Serialize};

use super::bounded::in_a_list;
use toolgate_core::error::Error;
use toolgate_store::ToolCursor;

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1_000;
const PAGE_BYTES: usize = 2 << 20;
const TOKEN_MAX: usize = 2_048;

/// Position in a listing.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PageCursor {
    /// After this MCP server.
    Server {
        /// Name of the server.
        name: String,
    },
    /// After this tool.
    Tool {
        /// Server that the listing is filtered by; empty for all.
        of: String,
        /// Server of the tool.
        server: String,
        /// Name of the tool.
        name: String,
    },
}

/// Returns the number of rows to read. 0 stands for the default, and larger sizes are cut to the maximum (AIP-158).
pub(super) fn page_size(wire: i32) -> Result<u32, Error> {
    match u32::try_from(wire) {
        Ok(0) => Ok(PAGE_DEFAULT),
        Ok(size) => Ok(size.min(PAGE_MAX)),
        Err(_) => Err(Error::field("page_size", "must not be negative")),
    }
}

/// Returns the number of rows that fit an answer, at least one. Clients refuse messages above 4 MiB, so a page of long
/// rows ends early, at half the size limit of a message.
pub(super) fn within_bytes<T: Message>(rows: &[T], message_max: usize) -> usize {
    fitting(rows.iter().map(in_a_list), message_max)
}

/// Returns the number of rows of these sizes that fit an answer, at least one.
pub(super) fn fitting(sizes: impl Iterator<Item = usize>, message_max: usize) -> usize {
    let most = page_bytes(message_max);
    let mut total = 0;
    let fits = sizes.take_while(|size| {
        total += size;
        total <= most
    });
    fits.count().max(1)
}

/// Returns the maximum size of a page's rows in bytes.
pub(super) fn page_bytes(message_max: usize) -> usize {
    PAGE_BYTES.min(message_max / 2)
}

impl PageCursor {
    /// Returns the token for the page after this position.
    pub(super) fn token(&self) -> Result<String, Error> {
        let json = serde_json::to_vec(self).map_err(Error::internal)?;
        Ok(URL_SAFE_NO_PAD.encode(json))
    }

    fn read(token: &str) -> Result<Self, Error> {
        if token.len() > TOKEN_MAX {
            return Err(Error::PageTokenInvalid);
        }
        let json = URL_SAFE_NO_PAD.decode(token).map_err(|_| Error::PageTokenInvalid)?;
        serde_json::from_slice(&json).map_err(|_| Error::PageTokenInvalid)
    }
}

/// Returns the server after which a page of servers begins.
pub(super) fn after_server(token: &str) -> Result<Option<String>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    match PageCursor::read(token)? {
        PageCursor::Server { name } => Ok(Some(name)),
        PageCursor::Tool { .. } => Err(Error::PageTokenInvalid),
    }
}

/// Returns the tool after which a page of tools begins.
pub(super) fn after_tool(token: &str, filter: &str) -> Result<Option<ToolCursor>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    match PageCursor::read(token)? {
        PageCursor::Tool { of, server, name } if of == filter => {
            Ok(Some(ToolCursor { server, name }))
        }
        _ => Err(Error::PageTokenInvalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_bound_to_their_listing() {
        let text = |value: &str| value.to_owned();
        let tool = PageCursor::Tool { of: text("git"), server: text("git"), name: text("log") };
        let token = tool.token().expect("a token");
        let cursor = ToolCursor { server: text("git"), name: text("log") };
        assert_eq!(after_tool(&token, "git").expect("a place"), Some(cursor));
        assert!(after_tool(&token, "").is_err());
        assert!(after_server(&token).is_err());
        for forged in ["x", "e30", &"A".repeat(3_000), "ä"] {
            assert!(after_server(forged).is_err(), "{forged}");
        }
    }

    #[test]
    fn pages_of_long_definitions_end_early() {
        let fitting = |size, message_max| fitting([size; 5].into_iter(), message_max);
        assert_eq!(fitting(PAGE_BYTES / 2, usize::MAX), 2);
        assert_eq!(fitting(PAGE_BYTES * 2, usize::MAX), 1);
        assert_eq!(fitting(PAGE_BYTES / 2, PAGE_BYTES), 1);
        assert_eq!(fitting(10, 60), 3);
        assert_eq!(fitting(10, usize::MAX), 5);
        let rows = [20; 5].map(|bytes| "x".repeat(bytes));
        assert_eq!(within_bytes(&rows, 150), 2, "with what stands around them");
    }

    #[test]
    fn page_sizes() {
        assert_eq!(page_size(0).expect("a size"), PAGE_DEFAULT);
        assert_eq!(page_size(7).expect("a size"), 7);
        assert_eq!(page_size(i32::MAX).expect("a size"), PAGE_MAX);
        assert!(page_size(-1).is_err());
    }
}
