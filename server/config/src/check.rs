//! Checks that involve several keys.

use toolgate_serving::OPEN_COST;
use toolgate_telemetry::endpoint_mistake;

use super::components::PoolConfig;
use super::mistake::{ConfigErrors, Mistake, Source};
use super::settings::Settings;
use super::value::Value;

mod security;

/// Checks for contradictions between keys and returns all of them.
pub(super) fn check(settings: &Settings) -> Result<(), ConfigErrors> {
    let found = [
        same_address(settings),
        two_of(settings, "handle.key", "handle.key_file"),
        two_of(settings, "store.url", "store.url_file"),
        no_key_for_replicas(settings),
        two_models(settings),
        nobody_embeds(settings),
        no_room_for_an_answer(settings),
        too_big_for_a_message(settings, "limits.max_schema_size"),
        too_big_for_a_message(settings, "limits.max_intent_size"),
        too_big_for_a_message(settings, "limits.max_state_size"),
        no_collector(settings),
    ];
    let found = found.into_iter().flatten().chain(security::check(settings));
    ConfigErrors::unless_empty(found.collect())
}

fn same_address(settings: &Settings) -> Option<Mistake> {
    let grpc = settings.get("server.listen");
    let admin = settings.get("server.admin_listen");
    match (&grpc.value, &admin.value) {
        (Value::Address(one), Value::Address(other)) if one == other && one.port() != 0 => {
            Some(mistake(
                settings,
                "server.admin_listen",
                format!("the same as server.listen, {one}: give it another port"),
            ))
        }
        _ => None,
    }
}

/// Reports a key that is set together with the file that would hold its value. One of the two is enough.
fn two_of(settings: &Settings, value: &str, file: &str) -> Option<Mistake> {
    let given = settings.get(value);
    let kept = settings.get(file);
    if matches!(given.value, Value::Absent) || matches!(kept.value, Value::Absent) {
        return None;
    }
    let problem = format!("{value} is set too ({}): keep one of them", given.source);
    Some(mistake(settings, file, problem))
}

/// Requires a configured handle key beside a shared store. With a generated key, other replicas would refuse the
/// handles.
fn no_key_for_replicas(settings: &Settings) -> Option<Mistake> {
    let is_absent = |name: &str| matches!(settings.get(name).value, Value::Absent);
    let store = ["store.url", "store.url_file"].into_iter().find(|name| !is_absent(name))?;
    if !is_absent("handle.key") || !is_absent("handle.key_file") {
        return None;
    }
    let problem = "replicas sign handles with one key: set handle.key_file or handle.key too";
    Some(mistake(settings, store, problem.to_owned()))
}

fn two_models(settings: &Settings) -> Option<Mistake> {
    let model = settings.get("encoder.model");
    let directory = settings.get("encoder.model_dir");
    if model.source == Source::Default || directory.source == Source::Default {
        return None;
    }
    let problem = format!("encoder.model is set too ({}): keep one of them", model.source);
    Some(mistake(settings, "encoder.model_dir", problem))
}

fn nobody_embeds(settings: &Settings) -> Option<Mistake> {
    let name = "encoder.in_process";
    let alone = PoolConfig::from(settings).is_empty();
    if alone && matches!(settings.get(name).value, Value::Flag(false)) {
        let problem = "false, and there is no worker: nothing would embed".to_owned();
        return Some(mistake(settings, name, problem));
    }
    None
}

fn no_room_for_an_answer(settings: &Settings) -> Option<Mistake> {
    let name = "server.response_buffer_limit";
    let message = settings.get("limits.max_message_size");
    let watches = match settings.get("server.max_watches").value {
        Value::Count(count) => count * OPEN_COST as u64,
        _ => 0,
    };
    match (&settings.get(name).value, &message.value) {
        (Value::Size(room), Value::Size(answer)) if *room < answer + watches => {
            let problem = format!(
                "must be at least limits.max_message_size, which is {} ({}), and 16KiB for each of server.max_watches",
                message.value, message.source
            );
            Some(mistake(settings, name, problem))
        }
        _ => None,
    }
}

fn too_big_for_a_message(settings: &Settings, name: &str) -> Option<Mistake> {
    let message = settings.get("limits.max_message_size");
    match (&settings.get(name).value, &message.value) {
        (Value::Size(part), Value::Size(whole)) if part >= whole => {
            let problem = format!(
                "must be less than limits.max_message_size, which is {} ({})",
                message.value, message.source
            );
            Some(mistake(settings, name, problem))
        }
        _ => None,
    }
}

fn no_collector(settings: &Settings) -> Option<Mistake> {
    let name = "telemetry.otlp_endpoint";
    let Value::Text(endpoint) = &settings.get(name).value else { return None };
    let problem = endpoint_mistake(endpoint).filter(|_| !endpoint.is_empty())?;
    Some(mistake(settings, name, format!("\"{endpoint}\": {problem}")))
}

fn mistake(settings: &Settings, name: &str, problem: String) -> Mistake {
    Mistake { source: settings.get(name).source.clone(), key: Some(name.into()), problem }
}
