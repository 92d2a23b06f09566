//! Numbers of the processes that share a routing plane. What a process registers bears its number, so that none takes out what
//! another uses. Numbers are leased: what a process left that ended by force is taken out by the others, and its number is free
//! again, so that a plane sees no more of them than run at a time.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use toolgate_client::{Client, Code, Error, ErrorReason, registration, v1};

use crate::toolset::{DIGEST_DIGITS, prefix_of};

/// Tenant of the plane that has the numbers: an MCP server without tools for each, whose description says who holds it.
const NUMBERS: &str = "llm-numbers";

/// Description of a number that nobody holds.
const FREE: &str = "free";

/// Most processes that share a plane.
const NUMBERS_MAX: u32 = 256;

/// Parts of a lease's time after each of which it is renewed.
const RENEWALS: u32 = 5;

/// Time for a call of the plane.
const CALL_MAX: Duration = Duration::from_secs(10);

/// MCP servers of a page.
const PAGE: i32 = 1_000;

/// Lease of a number by this process.
#[derive(Debug)]
pub(crate) struct Leases {
    plane: Client,
    lasting: Duration,
    /// Name of this process, which no other one has.
    holder: String,
    held: Mutex<Option<Held>>,
    keeping: Lock<Option<AbortHandle>>,
}

/// Number that this process holds.
#[derive(Debug, Clone)]
struct Held {
    number: u32,
    /// Etag of its MCP server, which changes when another process takes the number.
    etag: String,
    /// Time of the newest renewal by the plane's clock, since 1970.
    renewed_at: Duration,
    /// Time of the newest renewal here, before the plane was asked.
    since: Instant,
    renewals: u64,
}

impl Leases {
    /// Returns a lease of a number that lasts so long without a renewal. The number is asked for when it is needed.
    pub(crate) fn new(plane: &Client, lasting: Duration) -> Self {
        let key = || RandomState::new().hash_one(std::process::id());
        Self {
            plane: plane.with_deadline(CALL_MAX),
            lasting,
            holder: format!("{:016x}{:016x}", key(), key()),
            held: Mutex::default(),
            keeping: Lock::default(),
        }
    }

    /// Holds a number from now on, and takes out what processes left that ended by force.
    pub(crate) fn begin(self: &Arc<Self>) {
        let leases = Arc::clone(self);
        let keeping = tokio::spawn(async move {
            loop {
                leases.keep().await;
                sleep(leases.lasting / RENEWALS).await;
            }
        });
        *self.keeping.lock() = Some(keeping.abort_handle());
    }

    async fn keep(&self) {
        let renewed = self.renew(&mut self.held.lock().await).await;
        let swept = match renewed {
            Ok(held) => timeout(self.lasting / RENEWALS, self.sweep(&held)).await.unwrap_or(Ok(())),
            Err(error) => Err(error),
        };
        if let Err(error) = swept {
            tracing::warn!(%error, "the lease of what the routing plane has of this process could not be renewed");
        }
    }

    /// Returns the number of this process, which stays its own for half of the lease's time at least.
    ///
    /// # Errors
    /// The plane's, or that there is no number left.
    pub(crate) async fn number(&self) -> Result<u32, Error> {
        let mut held = self.held.lock().await;
        match &*held {
            Some(held) if held.since.elapsed() < self.lasting / 2 => Ok(held.number),
            Some(_) | None => Ok(self.renew(&mut held).await?.number),
        }
    }

    /// Returns true if this process holds a number. What another one holds is not this one's to take out.
    pub(crate) async fn holds(&self, number: u32) -> bool {
        let held = self.held.lock().await;
        let is_fresh = |held: &Held| held.number == number && held.since.elapsed() < self.lasting;
        held.as_ref().is_some_and(is_fresh)
    }

    /// Notes a set's tenant under a number before anything is registered in it, so that it can be found if this process ends.
    ///
    /// # Errors
    /// The plane's.
    pub(crate) async fn note(&self, number: u32, tenant: &str) -> Result<(), Error> {
        let request = v1::RegisterServerRequest {
            tenant: sets_of(number),
            server: tenant.to_owned(),
            pending: true,
            ..Default::default()
        };
        self.plane.register_server(request).await.map(drop)
    }

    /// Forgets a tenant that nothing is registered in any more.
    ///
    /// # Errors
    /// The plane's.
    pub(crate) async fn forget(&self, number: u32, tenant: &str) -> Result<(), Error> {
        self.unregister(&sets_of(number), tenant).await
    }

    /// Takes out all that was registered under the number, also what was being registered, and gives it back. What can't be taken
    /// out is left to the others, once the lease has ended.
    pub(crate) async fn release(&self) {
        // Nothing is renewed while this is held.
        let mut held = self.held.lock().await;
        if let Some(keeping) = self.keeping.lock().take() {
            keeping.abort();
        }
        let Some(held) = held.take() else { return };
        if let Err(error) = self.give_back(&held).await {
            tracing::warn!(%error, "what the routing plane has of this process is free once its lease has ended");
        }
    }

    async fn give_back(&self, held: &Held) -> Result<(), Error> {
        // What another process has by now is not this one's to take out.
        let Some(held) = self.renewed(held).await? else { return Ok(()) };
        self.clear(held.number).await?;
        self.write(held.number, &held.etag, FREE.to_owned()).await.map(drop)
    }

    /// Renews the lease, or takes a number if there is none or another process has taken it.
    async fn renew(&self, held: &mut MutexGuard<'_, Option<Held>>) -> Result<Held, Error> {
        if let Some(last) = held.as_ref() {
            if let Some(renewed) = self.renewed(last).await? {
                **held = Some(renewed.clone());
                return Ok(renewed);
            }
            tracing::warn!("the routing plane takes this process for one that ended");
        }
        **held = None;
        let claimed = self.claim().await?;
        **held = Some(claimed.clone());
        Ok(claimed)
    }

    /// Renews a lease. `None` if another process has taken the number.
    async fn renewed(&self, last: &Held) -> Result<Option<Held>, Error> {
        if let Some(renewed) = self.renewed_from(last).await? {
            return Ok(Some(renewed));
        }
        // The number is this process's still if it is the answer to an earlier renewal that was lost.
        let servers = self.servers(NUMBERS).await?;
        let is_same = |server: &&v1::McpServer| number_of(server) == Some(last.number);
        let Some(server) = servers.iter().find(is_same) else { return Ok(None) };
        let mut said = server.description.split(' ');
        if said.next() != Some(self.holder.as_str()) {
            return Ok(None);
        }
        let renewals = said.next().and_then(|renewals| renewals.parse().ok());
        let renewals = renewals.unwrap_or(last.renewals);
        let etag = server.etag.clone();
        self.renewed_from(&Held { etag, renewals, ..last.clone() }).await
    }

    /// Renews a lease whose etag is known. `None` if it is another one by now.
    async fn renewed_from(&self, last: &Held) -> Result<Option<Held>, Error> {
        let since = Instant::now();
        let renewals = last.renewals + 1;
        match self.write(last.number, &last.etag, self.description(renewals)).await {
            Ok(server) => Ok(Some(Held { renewals, ..Held::new(last.number, &server, since) })),
            Err(error) if error.reason() == Some(ErrorReason::EtagMismatch) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes a number that nobody holds.
    async fn claim(&self) -> Result<Held, Error> {
        let known = self.servers(NUMBERS).await?;
        let free = known.iter().filter(|server| server.description == FREE);
        let free = free.filter_map(|server| Some((number_of(server)?, server.etag.clone())));
        let made: HashSet<u32> = known.iter().filter_map(number_of).collect();
        let new = (0..NUMBERS_MAX).filter(|number| !made.contains(number));
        let new = new.map(|number| (number, String::new()));
        let numbers: Vec<(u32, String)> = free.chain(new).collect();
        for (number, etag) in numbers {
            let Some(held) = self.take(number, &etag).await? else { continue };
            let Err(error) = self.clear(number).await else { return Ok(held) };
            tracing::warn!(%error, number, "what is left in the routing plane under a number can't be taken out; another one is taken");
            self.write(number, &held.etag, FREE.to_owned()).await?;
        }
        let problem = format!("{NUMBERS_MAX} processes of the proxy share it already");
        Err(Error::Answer { endpoint: self.plane.endpoint().to_owned(), problem })
    }

    /// Takes a number with this etag, or a new one. `None` if another process was faster.
    async fn take(&self, number: u32, etag: &str) -> Result<Option<Held>, Error> {
        let since = Instant::now();
        let lost = [ErrorReason::EtagMismatch, ErrorReason::RequestIdReused];
        match self.write(number, etag, self.description(0)).await {
            Ok(server) => Ok(Some(Held::new(number, &server, since))),
            Err(error) if error.reason().is_some_and(|reason| lost.contains(&reason)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes out what processes left whose lease has ended, and frees their numbers.
    async fn sweep(&self, own: &Held) -> Result<(), Error> {
        for server in self.servers(NUMBERS).await? {
            let Some(number) = number_of(&server) else { continue };
            let lasting = lasting_of(&server).unwrap_or(self.lasting);
            let is_over = own.renewed_at.saturating_sub(time_of(&server)) >= lasting;
            if server.description == FREE || number == own.number || !is_over {
                continue;
            }
            if let Err(error) = self.free(number, &server.etag).await {
                tracing::warn!(%error, number, "what an ended process had in the routing plane can't be taken out");
            }
        }
        Ok(())
    }

    /// Takes out what is left under a number that another process held, and frees it. If that fails, it is tried again once a
    /// lease has ended.
    async fn free(&self, number: u32, etag: &str) -> Result<(), Error> {
        // Whoever takes it is the only one that takes it.
        let Some(taken) = self.take(number, etag).await? else { return Ok(()) };
        self.clear(number).await?;
        self.write(number, &taken.etag, FREE.to_owned()).await?;
        tracing::info!(number, "what an ended process had in the routing plane was taken out");
        Ok(())
    }

    /// Takes out all that was registered under a number.
    async fn clear(&self, number: u32) -> Result<(), Error> {
        let sets = sets_of(number);
        for set in self.servers(&sets).await? {
            // Whoever may write catalogs can announce another tenant's name there.
            if is_set_of(number, &set.name) {
                for server in self.servers(&set.name).await? {
                    self.unregister(&set.name, &server.name).await?;
                }
            }
            self.unregister(&sets, &set.name).await?;
        }
        Ok(())
    }

    /// Returns what is said of a number that this process holds: its name, the renewals, and the length of the lease in milliseconds.
    fn description(&self, renewals: u64) -> String {
        format!("{} {renewals} {}", self.holder, self.lasting.as_millis())
    }

    /// Writes who holds a number, if its etag is still this one. Without an etag the number is made, which one process can do.
    async fn write(
        &self,
        number: u32,
        etag: &str,
        description: String,
    ) -> Result<v1::McpServer, Error> {
        let made = format!("make-{number}");
        let request = v1::RegisterServerRequest {
            tenant: NUMBERS.to_owned(),
            description,
            etag: etag.to_owned(),
            request_id: if etag.is_empty() { made } else { String::new() },
            ..registration(number.to_string(), "[]")
        };
        let registered = self.plane.register_server(request).await?;
        registered.server.ok_or_else(|| {
            let problem = "it lacks the server that was registered".to_owned();
            Error::Answer { endpoint: self.plane.endpoint().to_owned(), problem }
        })
    }

    /// Returns the MCP servers of a tenant; none if there is no such tenant.
    async fn servers(&self, tenant: &str) -> Result<Vec<v1::McpServer>, Error> {
        let request = v1::ListServersRequest {
            tenant: tenant.to_owned(),
            page_size: PAGE,
            ..Default::default()
        };
        match self.plane.servers(request).all().await {
            Err(error) if error.code() == Some(Code::NotFound) => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Takes an MCP server out; one that is not there is passed over.
    async fn unregister(&self, tenant: &str, server: &str) -> Result<(), Error> {
        let request = v1::UnregisterServerRequest {
            tenant: tenant.to_owned(),
            server: server.to_owned(),
            ..Default::default()
        };
        match self.plane.unregister_server(request).await {
            Err(error) if error.code() != Some(Code::NotFound) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Held {
    fn new(number: u32, server: &v1::McpServer, since: Instant) -> Self {
        let etag = server.etag.clone();
        Self { number, etag, renewed_at: time_of(server), since, renewals: 0 }
    }
}

/// Returns the tenant that has the tenants of a number's sets, as MCP servers that are announced.
fn sets_of(number: u32) -> String {
    format!("llm-sets-{number}")
}

/// Returns true if a tenant's name is one that the process of a number gives a set.
fn is_set_of(number: u32, tenant: &str) -> bool {
    let digest = tenant.strip_prefix(&prefix_of(number));
    digest.is_some_and(|digest| digest.len() == DIGEST_DIGITS && is_hexadecimal(digest))
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn number_of(server: &v1::McpServer) -> Option<u32> {
    server.name.parse().ok()
}

/// Returns the length of a number's lease, if its holder says it.
fn lasting_of(server: &v1::McpServer) -> Option<Duration> {
    let millis = server.description.split(' ').nth(2)?;
    millis.parse().ok().map(Duration::from_millis)
}

/// Returns the time of a server's last change by the plane's clock, since 1970.
fn time_of(server: &v1::McpServer) -> Duration {
    let Some(time) = &server.update_time else { return Duration::ZERO };
    let seconds = u64::try_from(time.seconds).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.nanos).unwrap_or_default())
}

#[cfg(test)]
mod tests;
