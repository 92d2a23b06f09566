//! Checks that involve several keys.

use toolgate_serving::OPEN_COST;
use toolgate_telemetry::endpoint_mistake;

use super::components::PoolConfig;
use super::key::{Key, KeySpec};
use super::keys::{
    ENCODER_IN_PROCESS, ENCODER_MODEL, ENCODER_MODEL_DIR, HANDLE_KEY, HANDLE_KEY_FILE,
    LIMITS_MAX_INTENT_SIZE, LIMITS_MAX_MESSAGE_SIZE, LIMITS_MAX_SCHEMA_SIZE, LIMITS_MAX_STATE_SIZE,
    SERVER_ADMIN_LISTEN, SERVER_LISTEN, SERVER_MAX_WATCHES, SERVER_RESPONSE_BUFFER_LIMIT,
    STORE_URL, STORE_URL_FILE, TELEMETRY_OTLP_ENDPOINT,
};
use super::mistake::{ConfigErrors, Mistake, Source};
use super::settings::Settings;
use super::value::Value;

mod security;

/// Checks for contradictions between keys and returns all of them.
pub(super) fn check(settings: &Settings) -> Result<(), ConfigErrors> {
    let found = [
        same_address(settings),
        two_of(settings, &HANDLE_KEY.spec, &HANDLE_KEY_FILE.spec),
        two_of(settings, &STORE_URL.spec, &STORE_URL_FILE.spec),
        no_key_for_replicas(settings),
        two_models(settings),
        nobody_embeds(settings),
        no_room_for_an_answer(settings),
        too_big_for_a_message(settings, &LIMITS_MAX_SCHEMA_SIZE),
        too_big_for_a_message(settings, &LIMITS_MAX_INTENT_SIZE),
        too_big_for_a_message(settings, &LIMITS_MAX_STATE_SIZE),
        no_collector(settings),
    ];
    let found = found.into_iter().flatten().chain(security::check(settings));
    ConfigErrors::unless_empty(found.collect())
}

fn same_address(settings: &Settings) -> Option<Mistake> {
    let grpc = settings.read(&SERVER_LISTEN);
    let admin = settings.read(&SERVER_ADMIN_LISTEN);
    if grpc != admin || grpc.port() == 0 {
        return None;
    }
    let problem = format!("the same as {SERVER_LISTEN}, {grpc}: give it another port");
    Some(mistake(settings, &SERVER_ADMIN_LISTEN.spec, problem))
}

/// Reports a key that is set together with the file that would hold its value. One of the two is enough.
fn two_of(settings: &Settings, value: &KeySpec, file: &KeySpec) -> Option<Mistake> {
    if is_absent(settings, value) || is_absent(settings, file) {
        return None;
    }
    let source = &settings.get(value).source;
    let problem = format!("{} is set too ({source}): keep one of them", value.name);
    Some(mistake(settings, file, problem))
}

/// Requires a configured handle key beside a shared store. With a generated key, other replicas would refuse the
/// handles.
fn no_key_for_replicas(settings: &Settings) -> Option<Mistake> {
    let store = [&STORE_URL.spec, &STORE_URL_FILE.spec]
        .into_iter()
        .find(|key| !is_absent(settings, key))?;
    if !is_absent(settings, &HANDLE_KEY.spec) || !is_absent(settings, &HANDLE_KEY_FILE.spec) {
        return None;
    }
    let problem =
        format!("replicas sign handles with one key: set {HANDLE_KEY_FILE} or {HANDLE_KEY} too");
    Some(mistake(settings, store, problem))
}

fn two_models(settings: &Settings) -> Option<Mistake> {
    let model = &settings.get(&ENCODER_MODEL.spec).source;
    let directory = &settings.get(&ENCODER_MODEL_DIR.spec).source;
    if *model == Source::Default || *directory == Source::Default {
        return None;
    }
    let problem = format!("{ENCODER_MODEL} is set too ({model}): keep one of them");
    Some(mistake(settings, &ENCODER_MODEL_DIR.spec, problem))
}

fn nobody_embeds(settings: &Settings) -> Option<Mistake> {
    if settings.read(&ENCODER_IN_PROCESS) || !PoolConfig::from(settings).is_empty() {
        return None;
    }
    let problem = "false, and there is no worker: nothing would embed".to_owned();
    Some(mistake(settings, &ENCODER_IN_PROCESS.spec, problem))
}

fn no_room_for_an_answer(settings: &Settings) -> Option<Mistake> {
    let watches = settings.read(&SERVER_MAX_WATCHES) * OPEN_COST;
    let least = settings.read(&LIMITS_MAX_MESSAGE_SIZE) + watches;
    if settings.read(&SERVER_RESPONSE_BUFFER_LIMIT) >= least {
        return None;
    }
    let message = settings.get(&LIMITS_MAX_MESSAGE_SIZE.spec);
    let problem = format!(
        "must be at least {LIMITS_MAX_MESSAGE_SIZE}, which is {} ({}), and 16KiB for each of {SERVER_MAX_WATCHES}",
        message.value, message.source
    );
    Some(mistake(settings, &SERVER_RESPONSE_BUFFER_LIMIT.spec, problem))
}

fn too_big_for_a_message(settings: &Settings, part: &Key<usize>) -> Option<Mistake> {
    if settings.read(part) < settings.read(&LIMITS_MAX_MESSAGE_SIZE) {
        return None;
    }
    let message = settings.get(&LIMITS_MAX_MESSAGE_SIZE.spec);
    let problem = format!(
        "must be less than {LIMITS_MAX_MESSAGE_SIZE}, which is {} ({})",
        message.value, message.source
    );
    Some(mistake(settings, &part.spec, problem))
}

fn no_collector(settings: &Settings) -> Option<Mistake> {
    let endpoint = settings.read_optional(&TELEMETRY_OTLP_ENDPOINT)?;
    let problem = endpoint_mistake(&endpoint).filter(|_| !endpoint.is_empty())?;
    let problem = format!("\"{endpoint}\": {problem}");
    Some(mistake(settings, &TELEMETRY_OTLP_ENDPOINT.spec, problem))
}

fn is_absent(settings: &Settings, key: &KeySpec) -> bool {
    matches!(settings.get(key).value, Value::Absent)
}

fn mistake(settings: &Settings, key: &KeySpec, problem: String) -> Mistake {
    Mistake { source: settings.get(key).source.clone(), key: Some(key.name.into()), problem }
}
