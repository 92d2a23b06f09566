//! Conversation of a Route request: its snapshot, its tokens, and what became of the calls that Gate refused in it.

use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_llm::history::RefusalOutcomes;
use toolgate_routing::router::Router;
use toolgate_routing::router::answers::account::Account;
use toolgate_routing::router::answers::conversation::{Surroundings, Utilisation};
use toolgate_routing::usage::Amounts;

/// Conversation as it was read from a request.
#[derive(Debug, Default)]
pub(super) struct ReadConversation {
    /// Snapshot as JSON; empty without a conversation.
    pub(super) snapshot: String,
    /// Texts that cost tokens.
    pub(super) texts: Vec<String>,
    /// Refused calls of the turn before.
    pub(super) outcomes: RefusalOutcomes,
    /// Tokens beside the conversation in the request to the model, and its window.
    pub(super) beside: Surroundings,
}

/// Conversation with its tokens counted.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Snapshot as JSON; empty without a conversation.
    pub(super) snapshot: String,
    tokens: u64,
    outcomes: RefusalOutcomes,
    /// Tokens beside the conversation in the request to the model, and its window.
    pub(super) beside: Surroundings,
}

impl ReadConversation {
    /// Counts the tokens.
    ///
    /// # Errors
    /// An internal error if the thread that counts fails.
    pub(super) async fn counted(
        self,
        router: &Router,
        tenant: &TenantId,
    ) -> Result<Conversation, Error> {
        let Self { snapshot, texts, outcomes, beside } = self;
        let tokens = router.conversation_tokens(tenant, texts).await?;
        Ok(Conversation { snapshot, tokens, outcomes, beside })
    }
}

impl Conversation {
    /// Returns its use of the context window beside the tools of a turn.
    pub(super) fn utilisation(&self, account: &Account) -> Utilisation {
        Utilisation::new(self.tokens, account, self.beside)
    }

    /// Returns the ledger amounts of the refused calls; `None` if there are none.
    pub(super) fn amounts(&self) -> Option<Amounts> {
        let RefusalOutcomes { mended, asked, given_up } = self.outcomes;
        let amounts = Amounts {
            mended_calls: mended,
            asked_calls: asked,
            given_up_calls: given_up,
            ..Amounts::default()
        };
        (self.outcomes != RefusalOutcomes::default()).then_some(amounts)
    }
}
