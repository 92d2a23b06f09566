//! Requests that are already assigned to a tool. The same request must not stand for two tools.

use std::collections::HashMap;

use parking_lot::Mutex;
use toolgate_routing::packs::lint::words;

/// Words of each request, mapped to the tool that has it.
#[derive(Debug, Default)]
pub struct Claims(Mutex<HashMap<String, String>>);

impl Claims {
    /// Assigns a request to a tool.
    ///
    /// # Errors
    /// Returns the name of the tool that already has the request.
    pub fn take(&self, request: &str, tool: &str) -> Result<(), String> {
        let mut taken = self.0.lock();
        match taken.get(&words(request)) {
            Some(other) => Err(other.clone()),
            None => {
                taken.insert(words(request), tool.to_owned());
                Ok(())
            }
        }
    }

    /// Releases all requests of a tool.
    pub fn give_back(&self, tool: &str) {
        let mut taken = self.0.lock();
        taken.retain(|_, other| other != tool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_for_one_tool() {
        let claims = Claims::default();
        assert_eq!(claims.take("What changed?", "a"), Ok(()));
        assert_eq!(claims.take("what changed", "b"), Err("a".to_owned()));
        claims.give_back("b");
        assert!(claims.take("what changed", "b").is_err());
        claims.give_back("a");
        assert_eq!(claims.take("what changed", "b"), Ok(()));
    }
}
