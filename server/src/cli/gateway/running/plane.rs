//! Configuration of the routing plane within the gateway's process, and of the stores beside it.

use std::net::SocketAddr;

use toolgate_config::{Config as ServerConfig, FlagValue, Source, StoreConfig, keys};

use crate::cli::arguments::{ConfigArguments, model_flag};
use crate::cli::failure::Failure;
use crate::cli::gateway::{RunArguments, data_dir};
use crate::cli::output;

/// Handle key of a configuration that is read for its store alone.
const NO_HANDLE_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Returns the configuration of a store of API keys: a data directory, or the URL of a database.
pub(super) fn key_store(arguments: &ConfigArguments, place: &str) -> Result<StoreConfig, Failure> {
    store_at(arguments, "gateway.auth.key_store", place)
}

/// Returns the configuration of a store at a place that a key of a file names.
pub(in crate::cli) fn store_at(
    arguments: &ConfigArguments,
    named_by: &str,
    place: &str,
) -> Result<StoreConfig, Failure> {
    let is_shared = place.contains("://");
    let key = if is_shared { &keys::STORE_URL.spec } else { &keys::STORE_PATH.spec };
    let flag = |key: &str, value: &str| FlagValue {
        flag: named_by.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let mut flags = vec![flag(key.name, place)];
    if is_shared {
        // A server would need its own beside a shared store. Nothing is signed here.
        flags.push(flag(keys::HANDLE_KEY.spec.name, NO_HANDLE_KEY));
    }
    Ok(arguments.load(flags)?.config.store)
}

/// Returns the configuration of the plane within this process, which listens on a free port of this machine unless `--set` names
/// another address. What is meant for a service beside it (a file, the environment) counts for neither address, and is told.
pub(super) fn plane_config(arguments: &RunArguments) -> Result<ServerConfig, Failure> {
    let flag = |key: &str, value: String| FlagValue {
        flag: "toolgate gateway".into(),
        key: key.to_owned(),
        value,
    };
    let own: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 0));
    let addresses = [keys::SERVER_LISTEN.spec.name, keys::SERVER_ADMIN_LISTEN.spec.name];
    let named = arguments.server_config().named(&addresses);
    for setting in named.iter().filter(|setting| !matches!(setting.source, Source::Flag(_))) {
        output::note(format_args!(
            "{}: {} is for `toolgate serve` and counts for nothing here: the plane within the gateway listens on a free port of this machine, or where --set {}=ADDRESS:PORT says",
            setting.source, setting.key.name, setting.key.name
        ));
    }
    let mut flags = Vec::new();
    for key in addresses {
        if !arguments.settings.iter().any(|(set, _)| set == key) {
            flags.push(flag(key, own.to_string()));
        }
    }
    flags.extend(model_flag(arguments.model_dir.as_deref()));
    let data = data_dir(arguments.data_dir.as_deref(), &arguments.server_config(), flags.clone())?;
    flags.push(flag(keys::STORE_PATH.spec.name, data.to_string_lossy().into_owned()));
    Ok(arguments.server_config().load(flags)?.config)
}
