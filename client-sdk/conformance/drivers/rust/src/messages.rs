//! Wire messages as proto3 JSON with the contract's own field names, and back.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage as _, SerializeOptions,
};
use serde_json::{Number, Value};
use toolgate_client::v1::FILE_DESCRIPTOR_SET;

use crate::failure::Failure;

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the contract is sound"));

/// The message that a JSON object says; the empty one for null.
pub fn read<M: Message + Default>(json: &Value) -> Result<M, Failure> {
    if json.is_null() {
        return Ok(M::default());
    }
    let plain = with_plain_numbers(json.clone());
    let message = DynamicMessage::deserialize(descriptor::<M>(), plain)
        .map_err(|error| Failure::driver(format!("{}: {error}", name::<M>())))?;
    Ok(message.transcode_to().expect("the same type"))
}

/// A list of messages.
pub fn read_all<M: Message + Default>(json: &Value) -> Result<Vec<M>, Failure> {
    json.as_array().into_iter().flatten().map(read).collect()
}

/// The message as a JSON object.
pub fn write<M: Message>(message: &M) -> Value {
    let mut dynamic = DynamicMessage::new(descriptor::<M>());
    dynamic.transcode_from(message).expect("the same type");
    debug_assert_eq!(dynamic.descriptor().full_name(), name::<M>());
    let options = SerializeOptions::new().use_proto_field_name(true);
    dynamic
        .serialize_with_options(serde_json::value::Serializer, &options)
        .expect("a message is JSON")
}

fn descriptor<M>() -> MessageDescriptor {
    POOL.get_message_by_name(&name::<M>()).expect("a message of the contract")
}

/// Generated types are named as their messages.
fn name<M>() -> String {
    let path = std::any::type_name::<M>();
    format!("toolgate.v1.{}", path.rsplit("::").next().unwrap_or(path))
}

/// Numbers as messages hold them: kept as they were written they would be read as objects.
fn with_plain_numbers(json: Value) -> Value {
    match json {
        Value::Number(number) if !number.is_u64() && !number.is_i64() => {
            let plain = number.as_f64().and_then(Number::from_f64);
            Value::Number(plain.unwrap_or(number))
        }
        Value::Array(items) => items.into_iter().map(with_plain_numbers).collect(),
        Value::Object(fields) => {
            let plain = fields.into_iter().map(|(key, value)| (key, with_plain_numbers(value)));
            Value::Object(plain.collect())
        }
        other => other,
    }
}
