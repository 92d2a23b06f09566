//! Check for tools that a registration would reject.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::finding::{Code, Finding, Severity};
use crate::eval::stock::{Rejected, Stock};

/// Returns an error for each rejected tool. Repeated names have a code of their own.
#[must_use]
pub fn check(stock: &Stock) -> Vec<Finding> {
    let taken: HashSet<(&str, &str)> = stock
        .catalog
        .tools
        .iter()
        .map(|tool| (stock.names.in_file(&tool.record.server), tool.record.name.as_str()))
        .collect();
    let is_repeated = |rejected: &Rejected| {
        let rejection = &rejected.rejection;
        rejection.field.ends_with(".name")
            && taken.contains(&(rejected.server.as_str(), rejection.name.as_str()))
    };
    stock.rejected.iter().map(|rejected| finding(rejected, is_repeated(rejected))).collect()
}

fn finding(rejected: &Rejected, is_repeated: bool) -> Finding {
    let rejection = &rejected.rejection;
    let (code, problem, remedy) = if is_repeated {
        let problem = "another tool of the MCP server has the same name; the first one counts";
        (Code::DuplicateName, problem.to_owned(), "give each tool a name of its own")
    } else {
        let problem = format!("{}: {}", rejection.field, rejection.problem);
        (Code::Rejected, problem, "mend the definition: a registration leaves the tool out")
    };
    Finding {
        code,
        severity: Severity::Error,
        server: rejected.server.clone(),
        tool: rejection.name.clone(),
        problem,
        remedy: remedy.to_owned(),
        evidence: field(rejection.field.as_str()),
    }
}

fn field(field: &str) -> Value {
    json!({ "field": field })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tool::samples::{server, stock};
    use toolgate_config::LimitsConfig;

    #[test]
    fn what_a_registration_refuses_is_an_error() {
        let good = || json!({"type": "object"});
        let tools = [
            ("a", "d", good()),
            ("b", "d", json!({"type": 3})),
            ("a", "other", good()),
            ("", "d", good()),
        ];
        let stock = Stock::check(&[server("s", &tools)], &LimitsConfig::default());
        let found = check(&stock);
        let shape: Vec<_> = found.iter().map(|f| (f.code, f.tool.as_str())).collect();
        assert_eq!(
            shape,
            [(Code::Rejected, "b"), (Code::DuplicateName, "a"), (Code::Rejected, "")]
        );
        assert!(found.iter().all(|f| f.severity == Severity::Error));
        assert!(found[0].problem.starts_with("tools[1].inputSchema: "), "{}", found[0].problem);
    }

    #[test]
    fn a_clean_catalog_has_none() {
        assert!(check(&stock(&[("a", "x"), ("b", "y")])).is_empty());
    }
}
