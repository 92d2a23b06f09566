//! Token cost of a catalog in each form: names, summaries, signatures, full schemas.

use std::collections::HashMap;

use super::catalog_file::CatalogServer;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_core::tokens;
use toolgate_routing::catalog::check::{ToolCheck, Work};
use toolgate_routing::catalog::definition::Definition;
use toolgate_routing::catalog::signature::Signature;
use toolgate_store::ToolRecord;

/// Counts for the tools of one or several servers. Tokens are of cl100k_base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forms {
    /// Number of tools that a registration would accept.
    pub tools: u64,
    /// Number of tools that a registration would reject.
    pub rejected: u64,
    /// Tokens of the model-facing names, one name per line.
    pub names: u64,
    /// Tokens of the lines in the summary pool.
    pub summaries: u64,
    /// Tokens of the signatures, one per line.
    pub signatures: u64,
    /// Number of signatures that leave something out.
    pub lossy: u64,
    /// Tokens of the full definitions, minified.
    pub schemas: u64,
}

impl Forms {
    /// Measures the tools of one server.
    ///
    /// # Errors
    /// The server's name is one that no registration accepts.
    pub fn of(server: &CatalogServer, limits: &LimitsConfig) -> Result<Self, Error> {
        let name = ServerName::parse(&server.name)?;
        let settings = HashMap::new();
        let check = ToolCheck {
            server: &name,
            settings: &settings,
            limits,
            is_trusted: false,
            work: Work::default(),
        };
        let mut forms = Self::default();
        for (index, text) in server.tools.iter().enumerate() {
            match check.check(index, text) {
                Ok(record) => forms.count(&record)?,
                Err(_) => forms.rejected += 1,
            }
        }
        Ok(forms)
    }

    /// Adds the counts of another server.
    pub fn add(&mut self, other: &Self) {
        self.tools += other.tools;
        self.rejected += other.rejected;
        self.names += other.names;
        self.summaries += other.summaries;
        self.signatures += other.signatures;
        self.lossy += other.lossy;
        self.schemas += other.schemas;
    }

    fn count(&mut self, record: &ToolRecord) -> Result<(), Error> {
        let definition = Definition::parse(&record.definition)
            .map_err(|wrong| Error::internal(format!("{}: {}", wrong.part, wrong.problem)))?;
        let signature = Signature::of(&record.model_name, &definition);
        let line = |text: &str| u64::from(tokens::count(&format!("{text}\n")));
        self.tools += 1;
        self.names += line(&record.model_name);
        self.summaries += u64::from(record.summary_tokens);
        self.signatures += line(&signature.text);
        self.lossy += u64::from(signature.lossy);
        self.schemas += u64::from(record.schema_tokens);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::catalog_file;

    #[test]
    fn each_form_of_the_shipped_catalogs_costs_less_than_the_next() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/servers");
        let mut all = Forms::default();
        for server in catalog_file::read(&folder).expect("the shipped catalogs") {
            let forms = Forms::of(&server, &LimitsConfig::default()).expect("a name");
            assert_eq!(forms.rejected, 0, "{}", server.name);
            assert!(forms.names < forms.signatures, "{}", server.name);
            assert!(forms.signatures < forms.schemas, "{}", server.name);
            assert!(forms.names < forms.summaries, "{}", server.name);
            all.add(&forms);
        }
        assert!(all.tools > 800 && all.signatures * 2 < all.schemas, "{all:?}");
    }

    #[test]
    fn what_would_be_rejected_is_counted_apart() {
        let tools = vec![r#"{"name": "a", "inputSchema": {}}"#.into(), "3".into()];
        let mut server = CatalogServer { name: "s".into(), description: String::new(), tools };
        let forms = Forms::of(&server, &LimitsConfig::default()).expect("a name");
        assert_eq!((forms.tools, forms.rejected, forms.lossy), (1, 1, 0));
        server.name = "a__b".into();
        assert!(Forms::of(&server, &LimitsConfig::default()).is_err());
    }
}
