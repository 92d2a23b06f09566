//! Values of keys: the conversion from a source's value to the key's type. Ranges are enforced here.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_encoder::Device;

use super::certificate_rule::CertificateRule;
use super::gpus::Gpus;
use super::key::Kind;
use super::origin::WebOrigin;
use super::secret::SecretKey;
use super::store_url::StoreUrl;
use super::units::{format_duration, format_size, parse_duration, parse_size};
use super::worker_address::WorkerAddress;
use toolgate_core::deferral::{Mode, Pattern};
use toolgate_core::identity::TenantId;

/// Value as a source gives it, before the key's type is known.
#[derive(Debug, Clone)]
pub(super) enum Raw {
    /// Text from the environment or the command line, where everything is text.
    Untyped(String),
    /// TOML string.
    Text(String),
    /// TOML integer, in decimal.
    Integer(String),
    /// TOML float.
    Float(String),
    /// TOML boolean.
    Boolean(bool),
    /// TOML array of strings.
    List(Vec<String>),
    /// Any other TOML type: its name with the article.
    Other(&'static str),
}

/// Value of the right type and within range.
#[derive(Debug, Clone)]
pub enum Value {
    /// Absent value: no source gives one and there is no default.
    Absent,
    /// Value of [`Kind::Address`].
    Address(SocketAddr),
    /// Value of [`Kind::Count`].
    Count(u64),
    /// Value of [`Kind::Size`], in bytes.
    Size(u64),
    /// Value of [`Kind::Duration`].
    Duration(Duration),
    /// Value of [`Kind::Decimal`].
    Decimal(f64),
    /// Value of [`Kind::Flag`].
    Flag(bool),
    /// Value of [`Kind::Path`].
    Path(PathBuf),
    /// Value of [`Kind::Choice`].
    Choice(&'static str),
    /// Value of [`Kind::Words`].
    Words(Vec<&'static str>),
    /// Value of [`Kind::Certificates`].
    Certificates(Vec<CertificateRule>),
    /// Value of [`Kind::Secret`].
    Secret(SecretKey),
    /// Value of [`Kind::StoreUrl`].
    StoreUrl(StoreUrl),
    /// Value of [`Kind::Text`].
    Text(String),
    /// Value of [`Kind::Device`].
    Device(Device),
    /// Value of [`Kind::Devices`].
    Devices(Vec<Device>),
    /// Value of [`Kind::Gpus`].
    Gpus(Gpus),
    /// Value of [`Kind::Workers`].
    Workers(Vec<WorkerAddress>),
    /// Value of [`Kind::Mode`].
    Mode(Mode),
    /// Value of [`Kind::TenantModes`].
    TenantModes(Vec<(TenantId, Mode)>),
    /// Value of [`Kind::Tenants`].
    Tenants(Vec<TenantId>),
    /// Value of [`Kind::Patterns`].
    Patterns(Vec<Pattern>),
    /// Value of [`Kind::Origins`].
    Origins(Vec<WebOrigin>),
}

impl Value {
    /// Returns true if the values are equal. Secrets are compared, but not shown.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Secret(one), Self::Secret(other)) => one.as_bytes() == other.as_bytes(),
            (Self::StoreUrl(one), Self::StoreUrl(other)) => one.expose() == other.expose(),
            _ => self.to_string() == other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    /// Writes the value in the grammar of environment variables. A secret only says that it is set.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => formatter.write_str("(not set)"),
            Self::Address(address) => address.fmt(formatter),
            Self::Count(count) => count.fmt(formatter),
            Self::Size(bytes) => formatter.write_str(&format_size(*bytes)),
            Self::Duration(duration) => formatter.write_str(&format_duration(*duration)),
            Self::Decimal(number) => number.fmt(formatter),
            Self::Flag(flag) => flag.fmt(formatter),
            Self::Path(path) => path.display().fmt(formatter),
            Self::Choice(word) => formatter.write_str(word),
            Self::Secret(_) | Self::StoreUrl(_) => formatter.write_str("(set, not shown)"),
            Self::Words(words) => joined(formatter, words),
            Self::Certificates(rules) => joined(formatter, rules),
            Self::Text(text) => formatter.write_str(text),
            Self::Device(device) => device.fmt(formatter),
            Self::Devices(devices) => joined(formatter, devices),
            Self::Gpus(gpus) => gpus.fmt(formatter),
            Self::Workers(workers) => joined(formatter, workers),
            Self::Mode(mode) => mode.fmt(formatter),
            Self::TenantModes(modes) => {
                let text =
                    |(tenant, mode): &(TenantId, Mode)| format!("{}={mode}", tenant.as_str());
                joined(formatter, &modes.iter().map(text).collect::<Vec<_>>())
            }
            Self::Tenants(tenants) => {
                joined(formatter, &tenants.iter().map(TenantId::as_str).collect::<Vec<_>>())
            }
            Self::Patterns(patterns) => joined(formatter, patterns),
            Self::Origins(origins) => joined(formatter, origins),
        }
    }
}

fn joined(formatter: &mut fmt::Formatter<'_>, list: &[impl ToString]) -> fmt::Result {
    let list: Vec<_> = list.iter().map(ToString::to_string).collect();
    formatter.write_str(&list.join(","))
}

impl Raw {
    /// Parses the raw value as `kind`. The error describes the problem and a valid value.
    pub(super) fn parse(&self, kind: &Kind) -> Result<Value, String> {
        let text = self.text_for(kind).ok_or_else(|| self.complaint(kind, None))?;
        parse(kind, &text).map_err(|reason| self.complaint(kind, reason.as_deref()))
    }

    /// Returns the text to parse; `None` if the TOML type is the wrong one for `kind`.
    fn text_for(&self, kind: &Kind) -> Option<String> {
        match (self, kind) {
            // The space at the end of a prefix counts.
            (Self::Untyped(text), Kind::Text) => Some(text.clone()),
            (Self::Untyped(text), _) => Some(text.trim().to_owned()),
            (Self::List(items), kind) if kind.is_list() => Some(items.join(",")),
            (Self::Text(text), kind) if kind.is_quoted() => Some(text.clone()),
            (Self::Integer(text), Kind::Count { .. } | Kind::Decimal { .. } | Kind::Gpus) => {
                Some(text.clone())
            }
            (Self::Float(text), Kind::Decimal { .. }) => Some(text.clone()),
            (Self::Boolean(flag), Kind::Flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    fn complaint(&self, kind: &Kind, reason: Option<&str>) -> String {
        let expected = kind.expected();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        if kind.is_secret() {
            return format!("expected {expected}{reason}; the value is not repeated here");
        }
        let found = match self {
            Self::Untyped(text) => format!("\"{text}\""),
            Self::Text(text) => format!("the string \"{text}\""),
            Self::Integer(text) => format!("the integer {text}"),
            Self::Float(text) => format!("the number {text}"),
            Self::Boolean(flag) => format!("the boolean {flag}"),
            Self::List(items) => format!("the array [{}]", items.join(", ")),
            Self::Other(name) => (*name).to_owned(),
        };
        format!("expected {expected}, found {found}{reason}")
    }
}

/// Parses `text` as `kind`. Returns `Err(Some(reason))` if there is more to say than that the text is not as expected.
fn parse(kind: &Kind, text: &str) -> Result<Value, Option<String>> {
    match kind {
        Kind::Address => text.parse().map(Value::Address).map_err(|_| address_hint(text)),
        Kind::Count { min, max } => {
            let count = text.parse().map_err(|_| None)?;
            within(count, min, max).map(Value::Count)
        }
        Kind::Size { min, max } => {
            within(parse_size(text).map_err(Some)?, min, max).map(Value::Size)
        }
        Kind::Duration { min, max } => {
            within(parse_duration(text).map_err(Some)?, min, max).map(Value::Duration)
        }
        Kind::Decimal { min, max } => {
            within(text.parse().map_err(|_| None)?, min, max).map(Value::Decimal)
        }
        Kind::Flag => text.parse().map(Value::Flag).map_err(|_| None),
        Kind::Path if text.is_empty() => Err(Some("it is empty".into())),
        Kind::Path => Ok(Value::Path(PathBuf::from(text))),
        Kind::Choice(words) => {
            let word = words.iter().find(|word| **word == text);
            word.map(|word| Value::Choice(word)).ok_or(None)
        }
        Kind::Words(words) => list(text, |item| one_of(words, item)).map(Value::Words),
        Kind::Certificates => list(text, |item| item.parse()).map(Value::Certificates),
        Kind::Secret => {
            SecretKey::from_base64(text).map(Value::Secret).map_err(|error| Some(error.to_string()))
        }
        Kind::StoreUrl => {
            StoreUrl::parse(text).map(Value::StoreUrl).map_err(|error| Some(error.to_string()))
        }
        Kind::Text => Ok(Value::Text(text.to_owned())),
        Kind::Device => text.parse().map(Value::Device).map_err(|_| None),
        Kind::Devices => list(text, definite_device).map(Value::Devices),
        Kind::Gpus => text.parse().map(Value::Gpus).map_err(|_| None),
        Kind::Workers => list(text, |item| item.parse()).map(Value::Workers),
        Kind::Mode => text.parse().map(Value::Mode).map_err(|_| None),
        Kind::TenantModes => list(text, tenant_mode).map(Value::TenantModes),
        Kind::Tenants => list(text, tenant).map(Value::Tenants),
        Kind::Patterns => list(text, pattern).map(Value::Patterns),
        Kind::Origins => list(text, |item| item.parse()).map(Value::Origins),
    }
}

/// Parses the items between commas; an empty text has none.
fn list<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Option<String>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let named = |item: &str| parse(item).map_err(|problem| format!("{item}: {problem}"));
    text.split(',').map(|item| named(item.trim()).map_err(Some)).collect()
}

fn one_of(words: &[&'static str], text: &str) -> Result<&'static str, String> {
    let word = words.iter().find(|word| **word == text);
    word.copied().ok_or_else(|| "not among them".into())
}

/// Parses a device other than `auto`. A worker that chose its own device might take another worker's.
fn definite_device(text: &str) -> Result<Device, String> {
    match text.parse() {
        Ok(Device::Auto) => Err("each worker needs a device of its own".into()),
        parsed => parsed.map_err(|_| "no such device".into()),
    }
}

/// Parses an item such as `acme=auto:20`.
fn tenant_mode(text: &str) -> Result<(TenantId, Mode), String> {
    let (tenant, mode) = text.split_once('=').ok_or("no mode after a =")?;
    let tenant = TenantId::parse(tenant.trim()).map_err(|_| "no tenant's name")?;
    Ok((tenant, mode.trim().parse()?))
}

fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::parse(text).map_err(|_| "no tenant's name".into())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    if text.is_empty() { Err("it is empty".into()) } else { Ok(Pattern::new(text)) }
}

fn within<T: PartialOrd>(value: T, min: &T, max: &T) -> Result<T, Option<String>> {
    // A NaN is in no range.
    if value >= *min && value <= *max { Ok(value) } else { Err(None) }
}

fn address_hint(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    let named = port.parse::<u16>().is_ok() && host.contains(|letter: char| letter.is_alphabetic());
    if named && !host.contains(':') {
        return Some("host names are not looked up: write the address".into());
    }
    (host.is_empty()).then(|| "write 0.0.0.0 for every interface".into())
}
