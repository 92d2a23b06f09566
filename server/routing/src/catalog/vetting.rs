//! Vetting of a registration's texts: which tools are shown, and which are quarantined until approved. The rules and
//! the decision are in `safety`; this module applies them to stored content.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use tracing::warn;

use super::Catalog;
use super::plan::{Checked, Judged, Mode, text_hash};
use super::registration::Registration;
use super::share::Behind;
use crate::catalog::SafetyMetrics;
use toolgate_core::error::Error;
use toolgate_core::identity::{TenantId, ToolName};
use toolgate_core::live::Live;
use toolgate_core::mcp_server::TrustTier;
use toolgate_core::safety::decision::Before;
use toolgate_core::safety::imitation::{Neighbours, Other, Subject};
use toolgate_core::safety::marks;
use toolgate_core::safety::rename::{Moving, renamed};
use toolgate_core::safety::rules::Detector;
use toolgate_core::safety::{Beside, Finding, QuarantineReason, Scanner, Severity, Tier, finding};
use toolgate_store::{
    Comparison, ContentHash, PastTool, ServerRecord, SimilarTools, StoredServer, StoredTool,
    ToolRecord, ToolStatus,
};

/// Maximum suspicious tools of one registration that are logged one by one.
const LOGGED_MAX: usize = 20;

/// Settings for the vetting of registrations.
#[derive(Debug, Clone)]
pub struct Vetting {
    /// Scanner with the rules for texts.
    pub scanner: Arc<Live<Scanner>>,
    /// True if an MCP server is untrusted when its registration names no tier.
    pub untrusted_by_default: bool,
    /// Counters of findings and quarantined tools.
    pub metrics: SafetyMetrics,
}

/// Vetting result of one tool of the body.
#[derive(Debug, Clone, Default)]
pub struct Vetted {
    /// Status to store, which decides if the tool is shown.
    pub status: ToolStatus,
    /// Reason for the quarantine, if any.
    pub because: Option<QuarantineReason>,
    /// Findings in the tool, the most severe first.
    pub findings: Vec<Finding>,
}

/// Vetting result of a registration.
pub(super) struct VettedBody {
    /// Results of the tools, in the body's order.
    pub(super) tools: Vec<Vetted>,
    /// Comparison with other MCP servers' tools; `None` if none was needed.
    pub(super) comparison: Option<Comparison>,
}

/// Body of a registration. It is checked once, even if the commit is tried several times.
pub(super) struct Body {
    pub(super) checked: Vec<Checked>,
    /// Findings in each tool's own texts. Empty without vetting.
    pub(super) texts: Vec<Vec<Finding>>,
}

/// Context in which tools are vetted: other tools of the same MCP server, and similar ones of other servers.
#[derive(Debug)]
pub(super) struct VettingContext {
    pub(super) checked: Vec<Checked>,
    pub(super) stored: Vec<StoredTool>,
    pub(super) mode: Mode,
    pub(super) others: Vec<StoredTool>,
}

type Stored<'a> = Option<&'a (StoredServer, Vec<StoredTool>)>;

/// Returns the trust tier of a registration that names none: the tier of the stored MCP server, or else the default.
pub(super) fn tier_of_unnamed(stored: Option<TrustTier>, vetting: Option<&Vetting>) -> TrustTier {
    match (stored, vetting) {
        (Some(tier), _) if tier != TrustTier::Unspecified => tier,
        (_, Some(vetting)) if vetting.untrusted_by_default => TrustTier::Untrusted,
        _ => TrustTier::Standard,
    }
}

impl Vetting {
    /// Returns the findings in each tool's own texts, each with those in the MCP server's texts.
    pub(super) fn texts(&self, server: &ServerRecord, checked: &[Checked]) -> Vec<Vec<Finding>> {
        let scanner = self.scanner.now();
        let of_server = scanner.server(&server.description);
        let is_trusted = Tier::of(server.trust_tier) == Tier::Trusted;
        let of_tool = |(place, tool): (usize, &Checked)| {
            let Ok(tool) = tool else { return Vec::new() };
            let definition: Value = serde_json::from_str(&tool.definition).unwrap_or_default();
            let beside = Beside { summary: &tool.summary, hint: &tool.search_hint };
            let of = format!("tools[{place}]");
            let mut found = scanner.tool(&of, &definition, beside);
            found.extend(of_server.iter().cloned());
            found.extend(scanner.claim(&of, &definition).filter(|_| !is_trusted));
            found
        };
        checked.iter().enumerate().map(of_tool).collect()
    }

    /// Returns the findings that come from comparing tools with others, each with the tool's index in the body.
    pub(super) fn beside(&self, scene: &VettingContext) -> Vec<(usize, Finding)> {
        let parsed = parsed(&scene.checked);
        let subjects: Vec<Subject<'_>> = parsed
            .iter()
            .map(|(place, tool, definition)| Subject {
                place: *place,
                name: tool.name.as_str(),
                definition,
            })
            .collect();
        let others = &scene.others;
        let described = others.iter().map(|tool| marks::description(&tool.record.definition));
        let descriptions: Vec<String> = described.collect();
        let others: Vec<Other<'_>> =
            others.iter().zip(&descriptions).map(|(tool, text)| other(tool, text)).collect();
        let own = scene.stored.iter().map(|tool| tool.record.name.as_str());
        let neighbours = Neighbours::new(&subjects, own, &others);
        let found = neighbours.findings(self.scanner.now().rules());
        let mut found: Vec<_> =
            found.into_iter().map(|(at, finding)| (subjects[at].place, finding)).collect();
        found.extend(self.renames(scene, &parsed));
        found
    }

    fn renames(
        &self,
        scene: &VettingContext,
        parsed: &[(usize, &ToolRecord, Value)],
    ) -> Vec<(usize, Finding)> {
        if scene.mode == Mode::Merge || scene.stored.is_empty() {
            return Vec::new();
        }
        let names: HashSet<&ToolName> = parsed.iter().map(|(_, tool, _)| &tool.name).collect();
        let known: HashSet<&ToolName> = scene.stored.iter().map(|tool| &tool.record.name).collect();
        let gone = scene.stored.iter().filter(|tool| !names.contains(&tool.record.name));
        let gone: Vec<(&str, Value)> =
            gone.map(|tool| (tool.record.name.as_str(), parse(&tool.record.definition))).collect();
        let went: Vec<_> = gone.iter().map(|(name, tool)| Moving::new(name, tool)).collect();
        let new: Vec<_> =
            parsed.iter().filter(|(_, tool, _)| !known.contains(&tool.name)).collect();
        let came: Vec<_> =
            new.iter().map(|(_, tool, value)| Moving::new(tool.name.as_str(), value)).collect();
        let scanner = self.scanner.now();
        let finding = |(at, was): (usize, &str)| {
            let place = new[at].0;
            let was = finding::excerpt(was, 0, was.len());
            Some((
                place,
                scanner.rules().detected(Detector::Renamed, format!("tools[{place}].name"), was)?,
            ))
        };
        renamed(&came, &went).into_iter().filter_map(finding).collect()
    }
}

impl Catalog {
    /// Vets each tool of the body against the content that is stored now.
    pub(super) async fn vet(
        &self,
        tenant: &TenantId,
        registration: &Registration,
        body: &Body,
        stored: Stored<'_>,
    ) -> Result<VettedBody, Error> {
        let server = &registration.server.name;
        // A tool's stored record says more than the record of its removal, so the latter is read only for new tools.
        let past = match brings_new(&body.checked, stored) {
            true => self.store.past_tools(tenant, server).await?,
            false => Vec::new(),
        };
        let known = PreviousState { stored, past: &past };
        let Some(vetting) = &self.vetting else {
            let tools = verdicts(None, &body.checked, &known, Vec::new());
            return Ok(VettedBody { tools, comparison: None });
        };
        let tier = Tier::of(registration.server.trust_tier);
        let mut findings = body.texts.clone();
        let mut comparison = None;
        if needs_scene(&body.checked, stored) {
            let checked = body.checked.clone();
            let mark = move || (marks_of(&checked), checked);
            let (marks, checked) = self.share.run(tenant, Behind::Embedding, mark).await?;
            let similar = self.store.similar_tools(tenant, server, &marks).await?;
            let SimilarTools { revision, tools: others } = similar;
            comparison = Some(Comparison { revision, marks });
            let stored = stored.map_or_else(Vec::new, |(_, tools)| tools.clone());
            let scene = VettingContext { checked, stored, mode: registration.mode, others };
            let vetting = vetting.clone();
            let look = move || vetting.beside(&scene);
            let beside = self.share.run(tenant, Behind::Embedding, look).await?;
            beside.into_iter().for_each(|(place, finding)| findings[place].push(finding));
        }
        let tools = verdicts(Some(tier), &body.checked, &known, findings);
        Ok(VettedBody { tools, comparison })
    }

    /// Returns a finding, with the tool's index, for every newly embedded tool that is near to most requests. Such a
    /// finding never quarantines a tool: that is decided before anything is embedded.
    pub(super) fn near_everything(
        &self,
        checked: &[Checked],
        embedded: &HashMap<ContentHash, Vec<f32>>,
    ) -> Vec<(usize, Finding)> {
        let (Some(vetting), Some(hubs)) = (&self.vetting, &self.hubs) else { return Vec::new() };
        let scanner = vetting.scanner.now();
        let finding = |(place, tool): (usize, &Checked)| {
            let tool = tool.as_ref().ok()?;
            let summary = embedded.get(&text_hash(&tool.summary))?;
            let field = format!("tools[{place}].summary");
            let told = || scanner.rules().detected(Detector::NearEverything, field, String::new());
            Some((place, hubs.is_one(summary).then(told)??))
        };
        checked.iter().enumerate().filter_map(finding).collect()
    }

    /// Counts and logs the findings in the tools that were written, and those of them that are quarantined.
    pub(super) fn report(
        &self,
        tenant: &TenantId,
        server: &StoredServer,
        written: &HashSet<ToolName>,
        (checked, vetted): Judged<'_>,
    ) {
        let Some(vetting) = &self.vetting else { return };
        let tools = checked.iter().zip(vetted);
        let tools = tools.filter_map(|(tool, vetted)| Some((&tool.as_ref().ok()?.name, vetted)));
        let mut waiting = 0;
        let mut logged = 0;
        for (name, vetted) in tools.filter(|(name, _)| written.contains(*name)) {
            for finding in &vetted.findings {
                vetting.metrics.found(finding.severity.as_str());
            }
            if let Some(because) = vetted.because {
                vetting.metrics.quarantined(because.as_str());
                waiting += 1;
            }
            let is_grave = vetted.findings.first().is_some_and(|f| f.severity > Severity::Low);
            if (is_grave || vetted.because.is_some()) && logged < LOGGED_MAX {
                logged += 1;
                let rules: Vec<&str> = vetted.findings.iter().map(|f| &*f.rule).collect();
                warn!(
                    tenant = tenant.as_str(),
                    server = server.record.name.as_str(),
                    tool = name.as_str(),
                    quarantined = vetted.because.map_or("no", QuarantineReason::as_str),
                    rules = rules.join(","),
                    "a registered tool {}",
                    if is_grave { "has suspicious texts" } else { "waits for approval" }
                );
            }
        }
        if waiting > 0 {
            let tenant = tenant.as_str();
            let server = server.record.name.as_str();
            warn!(tenant, server, tools = waiting, "tools wait for approval");
        }
    }
}

/// Returns true if tools must be compared with others again. Not needed if every tool is unchanged and shown: each was
/// compared when it was registered.
pub(super) fn needs_scene(checked: &[Checked], stored: Stored<'_>) -> bool {
    let known = by_name(stored);
    let is_settled = |tool: &ToolRecord| {
        let old = known.get(&tool.name);
        old.is_some_and(|old| says_the_same(old, tool) && old.status.is_shown())
    };
    checked.iter().flatten().any(|tool| !is_settled(tool))
}

/// Returns true if a tool of the body is not stored.
fn brings_new(checked: &[Checked], stored: Stored<'_>) -> bool {
    let known = by_name(stored);
    checked.iter().flatten().any(|tool| !known.contains_key(&tool.name))
}

/// Earlier state of the MCP server.
pub(super) struct PreviousState<'a> {
    /// MCP server and its stored tools.
    pub(super) stored: Stored<'a>,
    /// Removed tools of the server. Empty if every tool of the body is stored.
    pub(super) past: &'a [PastTool],
}

impl PreviousState<'_> {
    /// Returns the earlier state of each tool of the body, in the body's order.
    fn before(&self, checked: &[Checked]) -> Vec<Before> {
        let stored = by_name(self.stored);
        let past: HashMap<&ToolName, &PastTool> =
            self.past.iter().map(|tool| (&tool.name, tool)).collect();
        let is_empty = |(server, tools): &(StoredServer, Vec<StoredTool>)| {
            server.record.pending && tools.is_empty()
        };
        let is_first = past.is_empty() && self.stored.is_none_or(is_empty);
        let before = |tool: &ToolRecord| match (stored.get(&tool.name), past.get(&tool.name)) {
            (Some(old), _) => status_before(says_the_same(old, tool), old.status),
            (None, Some(past)) => status_before(said_the_same(past, tool), past.status),
            (None, None) if is_first => Before::NoServer,
            (None, None) => Before::NoTool,
        };
        let before = |tool: &Checked| tool.as_ref().map_or(Before::NoTool, before);
        checked.iter().map(before).collect()
    }
}

/// Decides on each tool of the body. Without vetting, no new tool is quarantined, and quarantined tools stay
/// quarantined.
pub(super) fn verdicts(
    tier: Option<Tier>,
    checked: &[Checked],
    known: &PreviousState<'_>,
    findings: Vec<Vec<Finding>>,
) -> Vec<Vetted> {
    let mut findings = findings.into_iter();
    let verdict = |(tool, before): (&Checked, Before)| {
        let mut findings = findings.next().unwrap_or_default();
        finding::sort(&mut findings);
        if tool.is_err() {
            return Vetted::default();
        }
        let because = match tier {
            Some(tier) => tier.quarantine(before, &findings),
            None => (before == Before::Quarantined).then_some(QuarantineReason::Waiting),
        };
        let status = match (because, before) {
            (Some(_), _) => ToolStatus::Quarantined,
            (None, Before::Approved) => ToolStatus::Approved,
            (None, _) => ToolStatus::Active,
        };
        Vetted { status, because, findings }
    };
    checked.iter().zip(known.before(checked)).map(verdict).collect()
}

fn by_name<'a>(stored: Stored<'a>) -> HashMap<&'a ToolName, &'a ToolRecord> {
    let tools = stored.map_or(&[][..], |(_, tools)| tools);
    tools.iter().map(|tool| (&tool.record.name, &tool.record)).collect()
}

fn status_before(is_same: bool, status: ToolStatus) -> Before {
    match status {
        _ if !is_same => Before::Otherwise,
        ToolStatus::Active => Before::Shown,
        ToolStatus::Quarantined => Before::Quarantined,
        ToolStatus::Approved => Before::Approved,
    }
}

/// Returns true if the removed tool had the same texts as `new`.
fn said_the_same(past: &PastTool, new: &ToolRecord) -> bool {
    past.hash == new.hash
        && past.summary_hash == text_hash(&new.summary)
        && past.search_hint == new.search_hint
}

/// Returns true if two versions of a tool have the same texts. Other settings may differ.
fn says_the_same(old: &ToolRecord, new: &ToolRecord) -> bool {
    old.hash == new.hash && old.summary == new.summary && old.search_hint == new.search_hint
}

/// Returns the accepted tools of the body, each with its index and its definition.
fn parsed(checked: &[Checked]) -> Vec<(usize, &ToolRecord, Value)> {
    let accepted =
        checked.iter().enumerate().filter_map(|(place, tool)| Some((place, tool.as_ref().ok()?)));
    accepted.map(|(place, tool)| (place, tool, parse(&tool.definition))).collect()
}

/// Returns the keys of the marks of all tools of the body.
fn marks_of(checked: &[Checked]) -> Vec<i64> {
    let mut keys = BTreeSet::new();
    for (place, tool, definition) in parsed(checked) {
        let name = tool.name.as_str();
        keys.extend(marks::of_subject(&Subject { place, name, definition: &definition }));
    }
    keys.into_iter().collect()
}

fn parse(definition: &str) -> Value {
    serde_json::from_str(definition).unwrap_or_default()
}

fn other<'a>(tool: &'a StoredTool, description: &'a str) -> Other<'a> {
    Other {
        server: tool.record.server.as_str(),
        name: tool.record.name.as_str(),
        model_name: &tool.record.model_name,
        description,
    }
}
