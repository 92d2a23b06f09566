//! `toolgate key`: creates and revokes API keys in the configured store. A running server sees changes within seconds.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::arguments::ConfigArguments;
use super::failure::{Exit, Failure};
use super::output;
use super::serve::with_causes;
use super::store::must_exist;
use crate::serve::open_now;
use toolgate_access::audit::{Actor, Audit, Change, Effect};
use toolgate_access::auth::AuthMetrics;
use toolgate_access::auth::api_key::ApiKey;
use toolgate_config::Config;
use toolgate_config::units::parse_duration;
use toolgate_core::identity::TenantId;
use toolgate_core::role::{Role, Roles};
use toolgate_store::{KeyReading, KeyStore, StoreError, StoredKey};

mod report;

const EXAMPLES: &str = "\
Examples:
  toolgate key create --tenant acme --role agent --label \"support bot\" --expires 90d
  toolgate key create --role admin --label operations      of any tenant that a call names
  toolgate key list --tenant acme
  toolgate key rotate 0123456789ab --overlap 24h           a new secret; the old one ends a day later
  toolgate key revoke 0123456789ab

A key is shown once, when it is made: what is stored is a hash of it. Works beside a server on the same store.";

/// Longest life of a key, in days: ten years.
const LIFE_MAX_DAYS: i64 = 3_660;
const MS_OF_A_DAY: i64 = 86_400_000;
const LABEL_MAX: usize = 200;
const PRINCIPAL_MAX: usize = 256;
/// Number of keys per read from the store.
const PAGE: u32 = 1_000;

/// Make, list, rotate and revoke API keys.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key and print it: it can't be shown again.
    Create(Create),
    /// List keys, without their secrets.
    List {
        /// Only this tenant's.
        #[arg(long, value_name = "NAME", value_parser = tenant)]
        tenant: Option<TenantId>,
        /// Also keys that are revoked or have expired.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// End a key at once: servers refuse it within five seconds.
    Revoke {
        /// The key's id: what is between `tgk_` and the next `_`.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Make a key like another one, which ends a while later.
    Rotate {
        /// The id of the key to replace.
        id: String,
        /// How long the old key is still good, such as 24h or 7d.
        #[arg(long, default_value = "24h", value_parser = span_ms, value_name = "DURATION")]
        overlap: i64,
        /// How long the new key is good, such as 90d. Default: as long as the old one was.
        #[arg(long, value_parser = span_ms, value_name = "DURATION")]
        expires: Option<i64>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// The tenant whose calls it makes. An admin's or a delegate's key may be of none.
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<TenantId>,
    /// What it may do: agent, catalog-writer, delegate or admin; may be given more than once.
    #[arg(long, required = true, value_name = "ROLE", value_parser = role)]
    role: Vec<Role>,
    /// What people know it by.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    label: String,
    /// Who calls with it, for policies (principal.id). Default: key: and the id; rotation keeps it.
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// How long it is good, such as 12h or 90d. Default: until it is revoked.
    #[arg(long, value_parser = span_ms, value_name = "DURATION")]
    expires: Option<i64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArguments,
}

pub(super) async fn run(arguments: Key) -> Result<Exit, Failure> {
    match arguments.action {
        Action::Create(create) => {
            let keys = Keys::open_or_make(&create.config).await?;
            let made = keys.create(&create).await?;
            show(&made, create.json)?;
        }
        Action::List { tenant, all, json, config } => {
            let keys = Keys::open(&config).await?;
            let now_ms = keys.now_ms().await?;
            let listed = keys.list(tenant.as_ref(), all, now_ms).await?;
            if json {
                output::print_json(&report::list_as_json(&listed, now_ms))?;
            } else {
                output::print(&report::list(&listed, now_ms))?;
            }
        }
        Action::Revoke { id, json, config } => {
            let keys = Keys::open(&config).await?;
            let KeyReading { key, now_ms } = keys.revoke(&id).await?;
            if json {
                output::print_json(&report::as_json(&key, now_ms))?;
            } else {
                output::print(&format!("{} is revoked: servers refuse it within 5 s\n", key.id))?;
            }
        }
        Action::Rotate { id, overlap, expires, json, config } => {
            let keys = Keys::open(&config).await?;
            let made = keys.rotate(&id, overlap, expires).await?;
            show(&made, json)?;
        }
    }
    Ok(Exit::Done)
}

fn show(made: &Made, json: bool) -> Result<(), Failure> {
    let Made { stored, secret } = made;
    if json {
        // Its creation time comes from the store's clock.
        let mut shown = report::as_json(stored, stored.created_ms);
        shown["key"] = secret.reveal().into();
        output::print_json(&shown)?;
    } else {
        output::note(report::made(stored));
        output::print(&format!("{}\n", secret.reveal()))?;
    }
    Ok(())
}

/// A new key: the stored part, and the secret that is shown once.
struct Made {
    stored: StoredKey,
    secret: ApiKey,
}

/// The keys of a store, and the audit of their changes. All times of a key come from the store's clock, because the
/// clock of the host that runs the command may be wrong.
struct Keys {
    store: Arc<dyn KeyStore>,
    audit: Audit,
}

impl Keys {
    /// Opens the configured store. A missing store is not created, because it has no keys.
    async fn open(arguments: &ConfigArguments) -> Result<Self, Failure> {
        let config = arguments.load(Vec::new())?.config;
        must_exist(&config.store)?;
        Self::of(&config).await
    }

    async fn open_or_make(arguments: &ConfigArguments) -> Result<Self, Failure> {
        Self::of(&arguments.load(Vec::new())?.config).await
    }

    async fn of(config: &Config) -> Result<Self, Failure> {
        let opened = open_now(&config.store).await;
        let store = opened.map_err(|error| Failure::new(with_causes(&error)))?;
        let audit = Audit::open(config.audit.file.as_deref(), AuthMetrics::default());
        let audit =
            audit.map_err(|error| Failure::new(format!("audit.file can't be opened: {error}")))?;
        Ok(Self { store, audit })
    }

    async fn now_ms(&self) -> Result<i64, Failure> {
        let now = self.store.read_clock_ms().await;
        now.map_err(|error| Failure::new(with_causes(&error)))
    }

    async fn create(&self, asked: &Create) -> Result<Made, Failure> {
        let roles: BTreeSet<_> = asked.role.iter().map(|role| role.name().to_owned()).collect();
        let may_be_of_any = Roles::of(&asked.role).may_be_of_any_tenant();
        if asked.tenant.is_none() && !may_be_of_any {
            return Err(Failure::usage(
                "--tenant is needed: only an admin's or a delegate's key may be of no tenant",
            ));
        }
        let is_line = |text: &str, most| text.len() <= most && !text.chars().any(char::is_control);
        if !is_line(&asked.label, LABEL_MAX) {
            return Err(Failure::usage("--label: one line of at most 200 bytes"));
        }
        let principal = asked.principal.as_deref();
        if principal.is_some_and(|name| name.is_empty() || !is_line(name, PRINCIPAL_MAX)) {
            return Err(Failure::usage("--principal: one line of 1 to 256 bytes"));
        }
        let now = self.now_ms().await?;
        let make = |id: &str| StoredKey {
            id: id.to_owned(),
            secret_hash: [0; 32],
            tenant: asked.tenant.clone(),
            principal: principal.map_or_else(|| format!("key:{id}"), str::to_owned),
            roles: roles.iter().cloned().collect(),
            label: asked.label.clone(),
            created_ms: now,
            expires_ms: asked.expires.map(|span| now + span),
            revoked_ms: None,
            used_ms: None,
        };
        self.keep_new("toolgate key create", make).await
    }

    async fn rotate(&self, id: &str, overlap: i64, expires: Option<i64>) -> Result<Made, Failure> {
        let KeyReading { key: old, now_ms: now } = self.find(id).await?;
        if let Some(word) = report::end(&old, now) {
            return Err(Failure::new(format!("{id} is {word}: make a new key instead")));
        }
        let life = expires.or(old.expires_ms.map(|end| end - old.created_ms));
        let make = |id: &str| StoredKey {
            id: id.to_owned(),
            created_ms: now,
            expires_ms: life.map(|life| now + life),
            revoked_ms: None,
            used_ms: None,
            ..old.clone()
        };
        let made = self.keep_new("toolgate key rotate", make).await?;
        self.end("toolgate key rotate", &old.id, now.saturating_add(overlap)).await?;
        Ok(made)
    }

    /// Stores a new key. If its random ID is taken, it tries another one.
    async fn keep_new(
        &self,
        act: &'static str,
        make: impl Fn(&str) -> StoredKey,
    ) -> Result<Made, Failure> {
        loop {
            let key = ApiKey::generate().map_err(|error| Failure::new(error.to_string()))?;
            let stored = StoredKey { secret_hash: key.secret_hash(), ..make(key.id()) };
            match self.change(act, &stored, false, self.store.create_key(&stored)).await? {
                Ok(()) => return Ok(Made { stored, secret: key }),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(Failure::new(with_causes(&error))),
            }
        }
    }

    async fn revoke(&self, id: &str) -> Result<KeyReading, Failure> {
        let now_ms = self.now_ms().await?;
        self.end("toolgate key revoke", id, now_ms).await
    }

    /// Ends a key at `at_ms`, in milliseconds since 1970 by the store's clock.
    async fn end(&self, act: &'static str, id: &str, at_ms: i64) -> Result<KeyReading, Failure> {
        let key = self.find(id).await?.key;
        let ended = self.change(act, &key, true, self.store.revoke_key(id, at_ms)).await?;
        ended.map_err(|error| Failure::new(with_causes(&error)))?;
        self.find(id).await
    }

    async fn find(&self, id: &str) -> Result<KeyReading, Failure> {
        let found = self.store.find_key(id).await;
        let found = found.map_err(|error| Failure::new(with_causes(&error)))?;
        found
            .ok_or_else(|| Failure::new(format!("there is no key {id}: `toolgate key list --all`")))
    }

    async fn list(
        &self,
        tenant: Option<&TenantId>,
        all: bool,
        now_ms: i64,
    ) -> Result<Vec<StoredKey>, Failure> {
        let mut keys = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.store.list_keys(&after, PAGE).await;
            let page = page.map_err(|error| Failure::new(with_causes(&error)))?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            let wanted = |key: &StoredKey| {
                tenant.is_none_or(|tenant| key.tenant.as_ref() == Some(tenant))
                    && (all || report::end(key, now_ms).is_none())
            };
            keys.extend(page.into_iter().filter(wanted));
        }
        keys.sort_by_key(|key| key.created_ms);
        Ok(keys)
    }

    /// Changes a key, and records the change in the audit.
    async fn change<T>(
        &self,
        act: &'static str,
        key: &StoredKey,
        withdraws: bool,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, Failure> {
        let tenant = key.tenant.as_ref().map_or("", TenantId::as_str);
        let actor = Actor { principal: user(), credential: String::new(), method: "cli" };
        let change =
            Change { act, tenant: tenant.to_owned(), of: key.id.clone(), actor, withdraws };
        let begun = self.audit.begin(change).await;
        let begun = begun.map_err(|error| Failure::new(with_causes(&error)))?;
        let made = work.await;
        begun.ends(made.as_ref().map(|_| Effect::default()).map_err(|_| "failed")).await;
        Ok(made)
    }
}

/// Returns the name of the user that runs the command, from the environment.
fn user() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    named.unwrap_or_default()
}

fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::parse(text).map_err(|_| TenantId::RIGHT.into())
}

fn role(text: &str) -> Result<Role, String> {
    Role::named(text).ok_or_else(|| format!("there are {}", Role::NAMES.join(", ")))
}

/// Parses a span such as 12h or 90d to milliseconds.
fn span_ms(text: &str) -> Result<i64, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let ms = match days {
        Some(days) => i64::from(days) * MS_OF_A_DAY,
        None => i64::try_from(parse_duration(text)?.as_millis()).unwrap_or(i64::MAX),
    };
    if ms <= LIFE_MAX_DAYS * MS_OF_A_DAY { Ok(ms) } else { Err("ten years at most".into()) }
}

#[cfg(test)]
mod tests;
