//! Requests of packs for the tools of a catalog, and the same packs without some of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::eval::stock::Stock;
use toolgate_core::identity::{ServerName, ToolId};
use toolgate_routing::packs::document::PackedTool;
use toolgate_routing::packs::{Lines, Pack, Packs};

/// One request of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Index of the pack among those in use.
    pub pack: usize,
    /// MCP name of the tool.
    pub tool: String,
    /// Voice of the request.
    pub voice: String,
    /// Text of the request.
    pub text: String,
    /// Tools of the catalog that the request is for; more than one if MCP servers share a pack.
    pub own: Vec<ToolId>,
    /// Round in which the request is left out. Each round leaves out one request of each tool.
    pub round: usize,
}

/// Packs in use by the MCP servers of a catalog, and their requests.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    /// All requests, by pack, tool and voice.
    pub all: Vec<Request>,
    packs: Vec<Pack>,
    places: HashMap<ServerName, usize>,
}

impl Requests {
    /// Collects the requests that packs have for a catalog. `seed` decides which requests are left out together.
    #[must_use]
    pub fn of(stock: &Stock, packs: &Packs, seed: u64) -> Self {
        let mut tools: BTreeMap<&ServerName, HashSet<&str>> = BTreeMap::new();
        for tool in &stock.catalog.tools {
            tools.entry(&tool.record.server).or_default().insert(tool.record.name.as_str());
        }
        let mut used = Self::default();
        let mut known: HashMap<*const Pack, usize> = HashMap::new();
        for (server, tools) in &tools {
            let Some(pack) = packs.of_server(server.as_str(), tools) else { continue };
            let place = *known.entry(std::ptr::from_ref(pack)).or_insert_with(|| {
                used.packs.push(pack.clone());
                used.packs.len() - 1
            });
            // With its own name in the list, the server finds the pack even if few of its tools have requests left.
            used.packs[place].servers.push(server.as_str().to_owned());
            used.places.insert((*server).clone(), place);
        }
        used.gather(&tools, seed);
        used
    }

    fn gather(&mut self, tools: &BTreeMap<&ServerName, HashSet<&str>>, seed: u64) {
        let mut own: HashMap<(usize, &str), Vec<ToolId>> = HashMap::new();
        for stored in
            tools.iter().flat_map(|(server, names)| names.iter().map(move |n| (server, n)))
        {
            let (server, name) = stored;
            let (Some(pack), Ok(parsed)) =
                (self.places.get(*server), toolgate_core::identity::ToolName::parse(name))
            else {
                continue;
            };
            let id = ToolId { server: (*server).clone(), name: parsed };
            own.entry((*pack, *name)).or_default().push(id);
        }
        own.values_mut().for_each(|ids| ids.sort());
        let mut all = Vec::new();
        for (place, pack) in self.packs.iter().enumerate() {
            for (number, (name, tool)) in pack.tools.iter().enumerate() {
                let Some(ids) = own.get(&(place, name.as_str())) else { continue };
                let count = tool.lines.all().len();
                let shift = (seed as usize).wrapping_add(number) % count.max(1);
                let said = tool
                    .voices
                    .iter()
                    .flat_map(|(voice, said)| said.iter().map(move |s| (voice, s)));
                all.extend(said.enumerate().map(|(at, (voice, text))| Request {
                    pack: place,
                    tool: name.clone(),
                    voice: voice.clone(),
                    text: text.clone(),
                    own: ids.clone(),
                    round: (at + shift) % count.max(1),
                }));
            }
        }
        self.all = all;
    }

    /// Returns the number of packs in use.
    #[must_use]
    pub fn packs(&self) -> usize {
        self.packs.len()
    }

    /// Returns the name of the pack at an index: its first server.
    #[must_use]
    pub fn name(&self, pack: usize) -> &str {
        self.packs[pack].servers.first().map_or("", String::as_str)
    }

    /// Returns true if the pack at an index is this one.
    #[must_use]
    pub fn is(&self, pack: usize, other: &Pack) -> bool {
        let own = &self.packs[pack];
        own.servers.starts_with(&other.servers) && own.tools.keys().eq(other.tools.keys())
    }

    /// Returns the index of the pack that an MCP server uses.
    #[must_use]
    pub fn pack_of(&self, server: &ServerName) -> Option<usize> {
        self.places.get(server).copied()
    }

    /// Returns the packs that `wanted` selects by index, with only the requests that `kept` selects.
    pub(super) fn kept(
        &self,
        wanted: impl Fn(usize) -> bool,
        kept: impl Fn(&Request) -> bool,
    ) -> Packs {
        let mut tools: BTreeMap<usize, BTreeMap<String, BTreeMap<String, Vec<String>>>> =
            BTreeMap::new();
        for request in self.all.iter().filter(|request| wanted(request.pack) && kept(request)) {
            let voices = tools.entry(request.pack).or_default().entry(request.tool.clone());
            let said = voices.or_default().entry(request.voice.clone()).or_default();
            said.push(request.text.clone());
        }
        let pack = |(place, tools): (usize, BTreeMap<String, _>)| Pack {
            servers: self.packs[place].servers.clone(),
            tools: tools.into_iter().map(|(name, voices)| (name, packed(voices))).collect(),
        };
        Packs::of(tools.into_iter().map(pack).collect())
    }
}

fn packed(voices: BTreeMap<String, Vec<String>>) -> PackedTool {
    let lines = Lines::new(voices.values().flatten().cloned());
    PackedTool { voices, not: Vec::new(), lines: Arc::new(lines) }
}
