//! Connections whose credential is their principal's own.

use std::sync::Arc;

use super::OwnConnections;
use crate::credentials::Authorizer;

impl OwnConnections {
    /// Ends those that take their tokens from here.
    pub(in crate::fleet) fn end_of(&self, authorizer: &Arc<Authorizer>) {
        self.open.lock().retain(|_, own| {
            let is_its =
                own.authorizer.as_ref().is_some_and(|source| Arc::ptr_eq(source, authorizer));
            if is_its {
                own.ended.cancel();
            }
            !is_its
        });
    }
}
