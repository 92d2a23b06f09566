//! Messages about names that are not known: the known one that was probably meant, and the command that lists them all.

use toolgate_client::{Client, Error, ErrorReason};
use toolgate_core::nearest::nearest;

use super::failure::Failure;

/// Returns a problem with a name, the known one that it is near to, and the command that lists them.
pub(super) fn unknown<'a>(
    problem: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    list: &str,
) -> String {
    let near = nearest(name, known).map(|near| format!(": did you mean `{near}`?"));
    let near = near.as_deref().unwrap_or(":");
    format!("{problem}{near} `{list}` lists them")
}

/// Returns what to say of an MCP server that a catalog does not have.
pub(super) fn unknown_server<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let problem = format!("the catalog has no MCP server `{name}`");
    unknown(&problem, name, known, "toolgate servers")
}

/// Returns the message about the first of these MCP servers that a catalog does not have; `None` if it has all, or if the caller
/// may not list them.
pub(super) async fn missing_server(client: &Client, names: &[&str]) -> Option<String> {
    let known = client.all_servers().await.ok()?;
    let known = || known.iter().map(|server| server.name.as_str());
    let missing = names.iter().find(|name| !known().any(|known| known == **name))?;
    Some(unknown_server(missing, known()))
}

/// Returns the failure of a call that named these MCP servers: if the catalog does not have one of them, with the name that was
/// probably meant.
pub(super) async fn failure_of(client: &Client, names: &[&str], error: Error) -> Failure {
    if error.reason() == Some(ErrorReason::ServerNotFound)
        && let Some(message) = missing_server(client, names).await
    {
        return Failure::new(message);
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_told_with_the_nearest() {
        let told = |name| unknown_server(name, ["git", "time"].into_iter());
        assert_eq!(
            told("gti"),
            "the catalog has no MCP server `gti`: did you mean `git`? `toolgate servers` lists them"
        );
        assert_eq!(
            told("zebra"),
            "the catalog has no MCP server `zebra`: `toolgate servers` lists them"
        );
    }
}
