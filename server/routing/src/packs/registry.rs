//! Collection of all packs of a server, and the choice of the pack for a registered MCP server.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::warn;

use super::attached::{Attached, Given};
use super::document::Pack;
use super::everyday;
use super::kinds;
use super::lines::Lines;
use super::means::{self, BackgroundRows, Gist, Gists, MEANS_FILE, MeanKey, MeansFile};
use super::shipped::{self, SHIPPED_MEANS};
use crate::catalog::Hubs;
use crate::encoder::{Encoder, Flow};
use crate::router::intent;
use crate::router::ranking::background::Background;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, ToolId};
use toolgate_store::StoredCatalog;

/// Maximum texts in one call to the encoder. One tool's requests are never split.
const CHUNK: usize = 256;

/// Minimum tools that a pack must share with a server of another name to be used for it. It must also share half of the
/// server's tools.
const TOOLS_MIN: usize = 3;

/// Packs, and the gists of their requests' embeddings and of everyday requests, once computed. All tenants use the same.
#[derive(Debug, Default)]
pub struct Packs {
    packs: Vec<Pack>,
    /// Files of gists, of which those that were asked for are in `gists` too.
    files: Vec<MeansFile>,
    gists: Mutex<Gists>,
    /// Embeddings of everyday requests, by the encoder's fingerprint. Needed while requests are embedded.
    everyday: Mutex<HashMap<String, Arc<Vec<Vec<f32>>>>>,
    /// MCP servers for which no pack is used.
    without: Vec<String>,
    /// Fingerprint of the encoder that made the shipped means.
    shipped_by: Option<String>,
}

impl Packs {
    /// Loads the packs that come with the product.
    #[must_use]
    pub fn shipped() -> Self {
        let shipped = shipped::packs();
        everyday::take(&shipped);
        let packs = Self::of(shipped);
        match MeansFile::read(SHIPPED_MEANS) {
            Ok(means) => Self { shipped_by: Some(means.fingerprint.clone()), ..packs.with(means) },
            Err(problem) => {
                warn!(problem, "the means of the shipped packs can't be read");
                packs
            }
        }
    }

    /// Creates a collection of these packs. The first one that fits a server is used for it.
    #[must_use]
    pub fn of(packs: Vec<Pack>) -> Self {
        Self { packs, ..Self::default() }
    }

    /// Returns the collection with no pack for MCP servers of these names.
    #[must_use]
    pub fn without(self, servers: Vec<String>) -> Self {
        Self { without: servers, ..self }
    }

    /// Returns the collection with only the packs of these MCP servers.
    ///
    /// # Errors
    /// The first name that no pack has.
    pub fn only(mut self, servers: &[String]) -> Result<Self, String> {
        let has =
            |pack: &Pack, name: &str| pack.servers.iter().any(|own| plain(own) == plain(name));
        let is_unknown = |name: &&String| !self.packs.iter().any(|pack| has(pack, name));
        if let Some(unknown) = servers.iter().find(is_unknown) {
            return Err(unknown.clone());
        }
        self.packs.retain(|pack| servers.iter().any(|name| has(pack, name)));
        Ok(self)
    }

    /// Returns the collection with the gists of a file, which come before those of earlier files.
    fn with(mut self, means: MeansFile) -> Self {
        self.files.insert(0, means);
        self
    }

    /// Returns the gist of requests, if it was computed or a file has it.
    fn known(&self, key: &MeanKey) -> Option<Arc<Gist>> {
        let mut gists = self.gists.lock();
        if let Some(gist) = gists.get(key) {
            return Some(Arc::clone(gist));
        }
        let mut files = self.files.iter().filter(|file| file.fingerprint == key.0);
        let gist = Arc::new(files.find_map(|file| file.gist(&key.1))?);
        gists.insert(key.clone(), Arc::clone(&gist));
        Some(gist)
    }

    fn is_known(&self, key: &MeanKey) -> bool {
        let is_in = |file: &MeansFile| file.fingerprint == key.0 && file.has(&key.1);
        self.gists.lock().contains_key(key) || self.files.iter().any(is_in)
    }

    /// Returns the embeddings of the background requests by the encoder with this fingerprint, if a file has them.
    #[must_use]
    pub fn background(&self, fingerprint: &str) -> Option<Arc<Vec<Vec<f32>>>> {
        let of_encoder = self.files.iter().filter(|file| file.fingerprint == fingerprint);
        let mut rows = of_encoder.filter_map(|file| file.background.as_ref());
        let count = Background::texts().len();
        let hash = Background::texts_hash();
        let fits = |rows: &&BackgroundRows| rows.texts == hash && rows.vectors.len() == count;
        rows.find(fits).map(|rows| Arc::clone(&rows.vectors))
    }

    /// Returns the collection with the packs of a directory (`*.yaml` and `*.yml`) before the others, and with the
    /// means stored there.
    ///
    /// # Errors
    /// A file that can't be read or is not a valid pack, with its name.
    pub fn with_directory(mut self, directory: &Path) -> Result<Self, String> {
        let problem = |error: std::io::Error| format!("{}: {error}", directory.display());
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(problem)? {
            let path = entry.map_err(problem)?.path();
            if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut own = Vec::with_capacity(paths.len() + self.packs.len());
        for path in paths {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            own.push(Pack::parse(&text).map_err(|mistakes| {
                let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
                format!("{}: {first}", path.display())
            })?);
        }
        own.append(&mut self.packs);
        self.packs = own;
        let path = directory.join(MEANS_FILE);
        match std::fs::read(&path) {
            Ok(content) => {
                let means = MeansFile::read(content);
                let means = means.map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(self.with(means))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// Returns all packs.
    #[must_use]
    pub fn all(&self) -> &[Pack] {
        &self.packs
    }

    /// Returns the pack for an MCP server: one that has its name, or else the one that shares most of its tools.
    #[must_use]
    pub fn of_server(&self, name: &str, tools: &HashSet<&str>) -> Option<&Pack> {
        let common = |pack: &Pack| pack.tools.keys().filter(|t| tools.contains(t.as_str())).count();
        let wanted = plain(name);
        let is_named = |pack: &&Pack| {
            pack.servers.iter().any(|server| plain(server) == wanted) && common(pack) > 0
        };
        self.packs.iter().find(is_named).or_else(|| {
            let enough =
                |(count, _): &(usize, &Pack)| *count >= TOOLS_MIN && 2 * count >= tools.len();
            // Of equal packs the first is taken: `max_by_key` would return the last.
            let counted = self.packs.iter().rev().map(|pack| (common(pack), pack)).filter(enough);
            counted.max_by_key(|(count, _)| *count).map(|(_, pack)| pack)
        })
    }

    /// Returns a detector of tools that are near to everything, or `None` if its limit was not measured for this
    /// encoder.
    #[must_use]
    pub fn hubs(&self, fingerprint: &str) -> Option<Hubs> {
        self.shipped_by.as_deref().filter(|shipped_by| *shipped_by == fingerprint)?;
        let everyday = self.known(&everyday::key(fingerprint))?;
        Some(Hubs::new(Arc::clone(&everyday.mean), everyday::NEAR_EVERYTHING))
    }

    /// Returns the requests from packs for the tools of a catalog. Requests that can't be embedded, or not `within`
    /// this time, still contribute their words. Embeddings that were finished are kept for the next call.
    pub async fn attach(
        &self,
        catalog: &StoredCatalog,
        encoder: &dyn Encoder,
        within: Duration,
    ) -> Attached {
        let lines = self.lines(catalog);
        let embed = async {
            self.embed(lines.iter().map(|(_, lines)| lines), encoder, &|_, _| {}).await?;
            if lines.is_empty() { Ok(()) } else { self.embed_everyday(encoder).await }
        };
        let embedded = tokio::time::timeout(within, embed).await;
        if let Err(error) = embedded.unwrap_or(Err(Error::DeadlineExceeded)) {
            warn!(%error, "some requests of packs are not embedded yet: they lend their words only");
        }
        let fingerprint = encoder.fingerprint();
        let everyday = self.known(&everyday::key(fingerprint)).map(|gist| Arc::clone(&gist.mean));
        let given = |(id, lines): (ToolId, Arc<Lines>)| {
            let gist = self.known(&(fingerprint.to_owned(), lines.hash()));
            (id, Given { lines, gist })
        };
        let tools = lines.into_iter().map(given).collect();
        Attached::new(tools, everyday)
    }

    /// Embeds the sample of everyday requests if their mean is not known.
    async fn embed_everyday(&self, encoder: &dyn Encoder) -> Result<(), Error> {
        let is_known = self.is_known(&everyday::key(encoder.fingerprint()));
        if is_known { Ok(()) } else { self.everyday(encoder).await.map(drop) }
    }

    /// Returns the embeddings of everyday requests, and keeps them and their mean. If their mean came from a file, returns
    /// the mean.
    async fn everyday(&self, encoder: &dyn Encoder) -> Result<Arc<Vec<Vec<f32>>>, Error> {
        let fingerprint = encoder.fingerprint();
        if let Some(known) = self.everyday.lock().get(fingerprint) {
            return Ok(Arc::clone(known));
        }
        // A file has their mean alone, which stands for them: 192 texts would keep a pack of a few requests waiting.
        let known = self.known(&everyday::key(fingerprint));
        if let Some(known) = known {
            return Ok(Arc::new(vec![known.mean.to_vec()]));
        }
        let texts = everyday::texts().to_vec();
        let count = texts.len();
        let embedded = encoder.embed(texts, Flow::ALONE, None).await?;
        let vectors: Vec<Vec<f32>> = embedded.into_iter().map(|one| one.vector).collect();
        let mean = everyday::mean(&vectors).filter(|_| vectors.len() == count);
        let mean = mean.ok_or_else(|| Error::internal("the encoder left texts out"))?;
        self.gists.lock().insert(everyday::key(fingerprint), Arc::new(Gist::of_mean(mean)));
        let vectors = Arc::new(vectors);
        self.everyday.lock().insert(fingerprint.to_owned(), Arc::clone(&vectors));
        Ok(vectors)
    }

    fn lines(&self, catalog: &StoredCatalog) -> Vec<(ToolId, Arc<Lines>)> {
        let mut tools: HashMap<&ServerName, HashSet<&str>> = HashMap::new();
        for tool in &catalog.tools {
            tools.entry(&tool.record.server).or_default().insert(tool.record.name.as_str());
        }
        let packs: HashMap<&ServerName, &Pack> = tools
            .iter()
            .filter(|(server, _)| !self.without.iter().any(|name| name == server.as_str()))
            .filter_map(|(server, tools)| Some((*server, self.of_server(server.as_str(), tools)?)))
            .collect();
        let of_tool = |record: &toolgate_store::ToolRecord| {
            let packed = packs.get(&record.server)?.tools.get(record.name.as_str())?;
            let id = ToolId { server: record.server.clone(), name: record.name.clone() };
            Some((id, Arc::clone(&packed.lines)))
        };
        catalog.tools.iter().filter_map(|tool| of_tool(&tool.record)).collect()
    }

    /// Returns a file with the gists of all requests and of everyday requests, and with the background requests
    /// ([`MEANS_FILE`]). All of them are embedded anew. `progress` is called with the number of finished tools and the total.
    ///
    /// # Errors
    /// The encoder fails, or there is no pack.
    pub async fn means_file(
        &mut self,
        encoder: &dyn Encoder,
        progress: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> Result<Vec<u8>, Error> {
        self.files.clear();
        self.gists.lock().clear();
        self.everyday.lock().clear();
        let lines: Vec<&Arc<Lines>> = self
            .packs
            .iter()
            .flat_map(|pack| pack.tools.values())
            .map(|tool| &tool.lines)
            .collect();
        self.embed(lines.iter().copied(), encoder, progress).await?;
        self.embed_everyday(encoder).await?;
        let fingerprint = encoder.fingerprint();
        let texts: Vec<String> = Background::texts().iter().map(ToString::to_string).collect();
        let count = texts.len();
        let vectors = encoder.embed(texts, Flow::ALONE, None).await?;
        if vectors.len() != count {
            return Err(Error::internal("the encoder left texts out"));
        }
        let vectors = Arc::new(vectors.into_iter().map(|one| one.vector).collect());
        let background = BackgroundRows { texts: Background::texts_hash(), vectors };
        let gists = self.gists.lock();
        let keys = lines.iter().map(|lines| (fingerprint.to_owned(), lines.hash()));
        let gists = keys
            .chain([everyday::key(fingerprint)])
            .filter_map(|key| gists.get_key_value(&key))
            .map(|(key, gist)| (key.clone(), Arc::clone(gist)));
        let gists = gists.collect();
        means::write(fingerprint, &gists, Some(&background)).map_err(Error::internal)
    }

    /// Embeds the requests that were not embedded before.
    async fn embed(
        &self,
        lines: impl Iterator<Item = &Arc<Lines>> + Send,
        encoder: &dyn Encoder,
        progress: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> Result<(), Error> {
        let fingerprint = encoder.fingerprint();
        let is_missing =
            |lines: &&Arc<Lines>| !self.is_known(&(fingerprint.to_owned(), lines.hash()));
        let missing: Vec<&Arc<Lines>> = lines.filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let everyday = self.everyday(encoder).await?;
        let mut rest = &missing[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest));
            let texts = now.iter().flat_map(|lines| lines.all()).map(|line| intent::embedded(line));
            let texts: Vec<String> = texts.collect();
            let count = texts.len();
            let vectors = encoder.embed(texts, Flow::ALONE, None).await?;
            if vectors.len() != count {
                return Err(Error::internal("the encoder left texts out"));
            }
            let mut vectors = vectors.into_iter().map(|embedded| embedded.vector);
            for lines in now {
                let own: Vec<Vec<f32>> = vectors.by_ref().take(lines.all().len()).collect();
                let gist = Arc::new(gist(&own, &everyday));
                self.gists.lock().insert((fingerprint.to_owned(), lines.hash()), gist);
            }
            rest = later;
            progress(missing.len() - rest.len(), missing.len());
        }
        Ok(())
    }
}

/// Returns the number of leading items that fit in one call to the encoder, at least one.
fn fitting(lines: &[&Arc<Lines>]) -> usize {
    let mut texts = 0;
    let fits = |one: &&&Arc<Lines>| {
        texts += one.all().len();
        texts <= CHUNK
    };
    lines.iter().take_while(fits).count().max(1)
}

fn gist(vectors: &[Vec<f32>], everyday: &[Vec<f32>]) -> Gist {
    let kinds = kinds::of(vectors);
    let nearness = kinds::nearness(&kinds, everyday);
    Gist { mean: mean(vectors), kinds: kinds.into(), nearness }
}

fn mean(vectors: &[Vec<f32>]) -> Arc<[f32]> {
    let mut sum = vectors.first().cloned().unwrap_or_default();
    for vector in vectors.iter().skip(1) {
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
    }
    sum.iter_mut().for_each(|value| *value /= vectors.len().max(1) as f32);
    sum.into()
}

/// Returns a server's name without the words that only say that it is a server: `mcp-server-git` becomes `git`.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    let said: Vec<&str> =
        words.filter(|word| !word.is_empty() && !matches!(*word, "mcp" | "server")).collect();
    said.join("-")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::super::shipped::SHIPPED;
    use super::*;
    use crate::catalog::check::{ToolCheck, Work};
    use crate::encoder::{EmbedFuture, Embedded};
    use toolgate_store::StoredTool;

    fn pack(server: &str, tools: &[&str]) -> Pack {
        let tools: String =
            tools.iter().map(|tool| format!("  {tool}: {{terse: [do {tool}]}}\n")).collect();
        Pack::parse(&format!("servers: [{server}]\ntools:\n{tools}")).expect("a pack")
    }

    #[test]
    fn a_server_has_the_pack_of_its_name_or_of_its_tools() {
        let packs = Packs::of(vec![
            pack("git", &["log", "diff", "add"]),
            pack("own", &["log", "diff", "add", "push"]),
            pack("chat", &["send", "read", "list", "delete"]),
        ]);
        let found = |name: &str, tools: &[&str]| {
            let pack = packs.of_server(name, &tools.iter().copied().collect());
            pack.map(|pack| pack.servers[0].clone())
        };
        assert_eq!(found("mcp-server-git", &["log"]).as_deref(), Some("git"));
        assert_eq!(found("Git", &["other"]), None, "none of its tools");
        assert_eq!(found("mine", &["log", "diff", "add"]).as_deref(), Some("git"), "the first");
        assert_eq!(found("mine", &["log", "diff", "add", "push"]).as_deref(), Some("own"));
        assert_eq!(found("mine", &["send", "read"]), None, "too few");
        assert_eq!(found("mine", &["send", "read", "list", "a", "b", "c", "d"]), None, "not half");
    }

    #[test]
    fn every_shipped_pack_can_be_read_and_was_embedded() {
        let packs = Packs::shipped();
        assert_eq!(packs.all().len(), SHIPPED.len());
        let shipped_by = packs.shipped_by.clone().expect("the default encoder");
        for (name, tool) in packs.all().iter().flat_map(|pack| &pack.tools) {
            let gist = packs.known(&(shipped_by.clone(), tool.lines.hash()));
            assert!(gist.is_some(), "{name} changed: `make packs`");
        }
        assert!(packs.hubs(&shipped_by).is_some() && packs.hubs("another").is_none());
        assert!(packs.background("another").is_none());
        let background = packs.background(&shipped_by);
        let background = background.expect("the background requests changed: `make packs`");
        let unit = |vector: &[f32]| (vector.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-3;
        assert!(background.iter().all(|vector| unit(vector)));
    }

    #[test]
    fn the_packs_of_some_servers_are_taken_by_name() {
        let packs = || Packs::of(vec![pack("git", &["log"]), pack("my-chat", &["send"])]);
        let only = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            packs().only(&names).map(|packs| packs.all().len())
        };
        assert_eq!(only(&["My Chat"]), Ok(1));
        assert_eq!(only(&["git", "my-chat"]), Ok(2));
        assert_eq!(only(&["git", "other"]), Err("other".into()));
    }

    #[test]
    fn own_packs_come_before_the_shipped_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("written");
        };
        write("b.yaml", "servers: [git]\ntools:\n  log: {terse: [x y]}\n");
        write("notes.txt", "no pack");
        let packs = Packs::default().with_directory(directory.path()).expect("read");
        assert_eq!(packs.all().len(), 1);
        write("a.yaml", "servers: [git]\n");
        let error = Packs::default().with_directory(directory.path()).expect_err("no tools");
        assert!(error.contains("a.yaml: ") && error.contains("tools"), "{error}");
    }
    /// Encoder that hangs at first, then leaves a text out, then works.
    #[derive(Default)]
    struct Late(AtomicUsize);

    impl Encoder for Late {
        fn fingerprint(&self) -> &str {
            "late"
        }

        fn dimensions(&self) -> usize {
            2
        }

        fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
            let before = self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                if before == 0 {
                    std::future::pending::<()>().await;
                }
                let embedded = Embedded { vector: vec![0.0, 1.0], truncated: false };
                Ok(vec![embedded; texts.len() - usize::from(before == 1)])
            })
        }
    }

    #[tokio::test]
    async fn an_encoder_that_hangs_is_not_waited_for_and_asked_again() {
        let tool = r#"{"name": "log", "inputSchema": {"type": "object"}}"#;
        let server = ServerName::parse("git").expect("a name");
        let settings = HashMap::new();
        let limits = toolgate_config::LimitsConfig::default();
        let check = ToolCheck {
            server: &server,
            settings: &settings,
            limits: &limits,
            is_trusted: false,
            work: Work::default(),
        };
        let record = check.check(0, tool).expect("a tool");
        let tools = vec![StoredTool { record, summary_revision: 1 }];
        let catalog = StoredCatalog { tools, ..StoredCatalog::default() };
        let packs = Packs::of(vec![pack("git", &["log"])]);
        let encoder = Late::default();
        let soon = Duration::from_millis(20);
        let first = packs.attach(&catalog, &encoder, soon).await;
        let id = ToolId { server, name: catalog.tools[0].record.name.clone() };
        let has_row = |attached: &Attached| attached.row(&id, &[1.0, 0.0]).1.is_some();
        assert!(first.lines(&id).is_some() && !has_row(&first) && !first.is_complete());
        let long = Duration::from_secs(60);
        let short = packs.attach(&catalog, &encoder, long).await;
        assert!(!has_row(&short), "an answer that is short says nothing of any text");
        let second = packs.attach(&catalog, &encoder, long).await;
        assert!(has_row(&second) && second.is_complete());
        assert!(second.everyday().is_some() && short.everyday().is_none());
        drop(packs.attach(&catalog, &encoder, soon).await);
        // The row is (.4, 1) at unit length, the summary is (1, 0), and the mean of everyday requests is (0, 1).
        let (row, mixed) = second.row(&id, &[1.0, 0.0]);
        let nearer = second.nearness(&row) - second.nearness(&[1.0, 0.0]);
        assert!((nearer - 1.0 / 0.4_f32.hypot(1.0)).abs() < 1e-6, "{nearer}");
        let with_query = |row: &[f32]| 0.6 * row[0] + 0.8 * row[1];
        let mixed = mixed.expect("it was mixed");
        let own = mixed.of_summary(with_query(&row), with_query(mixed.mean()));
        assert!((own - 0.6).abs() < 1e-5, "{own}");
        assert_eq!(encoder.0.load(Ordering::SeqCst), 4, "embedded once");
    }
}
