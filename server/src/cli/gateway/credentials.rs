//! `toolgate gateway credentials`: the keys that stored logins are sealed with, and their rotation.

use std::path::PathBuf;

use clap::Args;
use toolgate_upstream::{CredentialStore, KeyUse, Sealing};

use super::files::GatewayFiles;
use super::{data_dir, login};
use crate::cli::arguments::ConfigArguments;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::table::{Column, render};
use crate::cli::text::counted;

/// Arguments of `toolgate gateway credentials`.
#[derive(Debug, Args)]
pub(super) struct Credentials {
    /// Seal all stored logins with a new key, or with the first line of gateway.credential_key where the file names that.
    #[arg(long)]
    rotate: bool,
    #[command(flatten)]
    files: GatewayFiles,
    /// The gateway's data directory. Default: `gateway` in the usual one.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

pub(super) fn run(arguments: Credentials) -> Result<Exit, Failure> {
    let config = arguments.files.settled().read()?.config;
    let usual = ConfigArguments { config: None, settings: Vec::new() };
    let data = data_dir(arguments.data_dir.as_deref(), &usual, Vec::new())?;
    if !data.join(login::FOLDER).is_dir() {
        output::note(format_args!("no logins are stored in {}", data.display()));
        return Ok(Exit::Done);
    }
    let store = login::store(&config, &data)?;
    if arguments.rotate {
        let resealed = if store.has_own_keys() { store.rotate() } else { store.reseal() };
        let resealed = resealed.map_err(login::failure)?;
        output::note(format_args!("{} sealed anew", counted(resealed, "login")));
    }
    let sealing = store.sealing().map_err(login::failure)?;
    let columns = [Column::Left("key"), Column::Left(""), Column::Right("logins")];
    output::print(&render(&columns, rows(&sealing)))?;
    for line in remarks(&sealing) {
        output::print(&format!("{line}\n"))?;
    }
    Ok(if sealing.missing.is_empty() { Exit::Done } else { Exit::Refused })
}

/// Seals anew what older keys of a store had sealed, and tells people of logins whose key is not there.
pub(super) fn reseal_and_tell(store: &CredentialStore) {
    let sealing = store.reseal().and_then(|resealed| Ok((resealed, store.sealing()?)));
    match sealing {
        Ok((resealed, sealing)) => {
            if let Some(first) = sealing.keys.first().filter(|_| resealed > 0) {
                let logins = counted(resealed, "login");
                output::note(format_args!("{logins} sealed anew with the key {}", first.id));
            }
            for key in &sealing.missing {
                output::note(missing_line(key));
            }
        }
        Err(error) => tracing::warn!(%error, "logins are not sealed anew"),
    }
}

fn rows(sealing: &Sealing) -> impl Iterator<Item = Vec<String>> {
    let row = |key: &KeyUse, says: &str| {
        vec![key.id.to_string(), says.to_owned(), key.credentials.to_string()]
    };
    let known = sealing.keys.iter().enumerate();
    let known =
        known.map(move |(number, key)| row(key, if number == 0 { "seals" } else { "opens" }));
    known.chain(sealing.missing.iter().map(move |key| row(key, "not there")))
}

/// Returns the lines below the table: what is to be done.
fn remarks(sealing: &Sealing) -> Vec<String> {
    let mut lines: Vec<String> = sealing.missing.iter().map(missing_line).collect();
    if sealing.unnamed > 0 {
        let logins = counted(sealing.unnamed, "login");
        lines.push(format!(
            "{logins} of an earlier version: sealed with the first key at the next renewal; keep the other keys until then"
        ));
    }
    if sealing.damaged > 0 {
        lines.push(format!("{} damaged: log in again", counted(sealing.damaged, "file")));
    }
    let is_unneeded = |key: &&KeyUse| key.credentials == 0;
    let unneeded: Vec<_> = sealing.keys.iter().skip(1).filter(is_unneeded).collect();
    for key in unneeded.iter().filter(|_| sealing.unnamed == 0) {
        lines.push(format!("nothing needs the key {} any more: it can be taken away", key.id));
    }
    lines
}

fn missing_line(key: &KeyUse) -> String {
    let KeyUse { id, credentials } = key;
    let need = if *credentials == 1 { "needs" } else { "need" };
    format!(
        "{} {need} the key {id}, which is not there: add it on a line below the first, or log in again",
        counted(*credentials, "login")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_done_about_keys_is_told() {
        assert_eq!(remarks(&Sealing::default()), [""; 0]);
        let sealing = Sealing { unnamed: 1, damaged: 2, ..Sealing::default() };
        let lines = remarks(&sealing);
        assert!(lines[0].starts_with("1 login of an earlier version"), "{lines:?}");
        assert!(lines[1].starts_with("2 files damaged"), "{lines:?}");
    }
}
