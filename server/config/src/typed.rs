//! Typed access to settings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_encoder::Device;

use super::certificate_rule::CertificateRule;
use super::origin::WebOrigin;
use super::settings::Settings;
use super::value::Value;
use super::worker_address::WorkerAddress;
use toolgate_core::deferral::Pattern;

/// Accessors, each for one type. The table gives every key its type, so that asking for another type is a defect. The
/// test `every_key_is_read_with_its_type` would show it.
impl Settings {
    pub(super) fn address(&self, name: &str) -> SocketAddr {
        match self.get(name).value {
            Value::Address(address) => address,
            _ => unreachable!("{name} is an address in the table"),
        }
    }

    pub(super) fn count(&self, name: &str) -> usize {
        match self.get(name).value {
            // The table's ranges stay below 2^50. A 32-bit machine cannot use what it cannot hold.
            Value::Count(number) | Value::Size(number) => {
                usize::try_from(number).unwrap_or(usize::MAX)
            }
            _ => unreachable!("{name} is a count or a size in the table"),
        }
    }

    pub(super) fn duration(&self, name: &str) -> Duration {
        match self.get(name).value {
            Value::Duration(duration) => duration,
            _ => unreachable!("{name} is a duration in the table"),
        }
    }

    pub(super) fn decimal(&self, name: &str) -> f64 {
        match self.get(name).value {
            Value::Decimal(number) => number,
            _ => unreachable!("{name} is a decimal in the table"),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        match &self.get(name).value {
            Value::Path(path) => path.clone(),
            _ => unreachable!("{name} is a path in the table, and placed before it is read"),
        }
    }

    pub(super) fn choice(&self, name: &str) -> &'static str {
        match self.get(name).value {
            Value::Choice(word) => word,
            _ => unreachable!("{name} is a choice in the table"),
        }
    }

    /// Returns the path of an optional key.
    pub(super) fn maybe_path(&self, name: &str) -> Option<PathBuf> {
        match &self.get(name).value {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    pub(super) fn words(&self, name: &str) -> &[&'static str] {
        match &self.get(name).value {
            Value::Words(words) => words,
            _ => unreachable!("{name} is a list of words in the table"),
        }
    }

    pub(super) fn certificates(&self, name: &str) -> Vec<CertificateRule> {
        match &self.get(name).value {
            Value::Certificates(rules) => rules.clone(),
            _ => unreachable!("{name} is a list of certificates in the table"),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match &self.get(name).value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn device(&self, name: &str) -> Device {
        match self.get(name).value {
            Value::Device(device) => device,
            _ => unreachable!("{name} is a device in the table"),
        }
    }

    pub(super) fn devices(&self, name: &str) -> Vec<Device> {
        match &self.get(name).value {
            Value::Devices(devices) => devices.clone(),
            _ => unreachable!("{name} is a list of devices in the table"),
        }
    }

    pub(super) fn workers(&self, name: &str) -> Vec<WorkerAddress> {
        match &self.get(name).value {
            Value::Workers(workers) => workers.clone(),
            _ => unreachable!("{name} is a list of addresses in the table"),
        }
    }

    pub(super) fn patterns(&self, name: &str) -> Vec<Pattern> {
        match &self.get(name).value {
            Value::Patterns(patterns) => patterns.clone(),
            _ => unreachable!("{name} is a list of patterns in the table"),
        }
    }

    pub(super) fn origins(&self, name: &str) -> Vec<WebOrigin> {
        match &self.get(name).value {
            Value::Origins(origins) => origins.clone(),
            _ => unreachable!("{name} is a list of origins in the table"),
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        match self.get(name).value {
            Value::Flag(flag) => flag,
            _ => unreachable!("{name} is a flag in the table"),
        }
    }
}
