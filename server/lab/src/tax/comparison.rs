//! Main results: all methods on the same tasks, with the paper's figures next to ours and the reasons for the
//! differences.

use super::bed::{Bed, Rule};
use super::methods::{CliLazy, Fixed, Routed};
use super::paper::{self, CODE_PRINTS, MAIN, PRUNED_TO};
use super::report::{Cell, Figure, Table, grouped};
use super::script::Script;
use super::tally::Measured;
use crate::conversations::{Defaults, Provider};
use toolgate_core::error::Error;

/// Names of the rows that the paper does not have.
const OURS: [&str; 3] = [AS_SENT, "Toolgate with the summary pool", KEPT];

/// Name of the row of what a user gets.
pub(super) const AS_SENT: &str = "Toolgate, as sent by default";

/// Name of the row whose sets are kept.
const KEPT: &str = "Toolgate with the summary pool, set kept";

/// Catalog as the methods take it.
pub(super) struct Beds<'e> {
    pub(super) bed: Bed<'e>,
    /// Same catalog with whole definitions embedded.
    pub(super) definitions: Bed<'e>,
    pub(super) defaults: Defaults<'e>,
}

/// Figures of the methods, starting with the paper's five in its order.
pub(super) struct Comparison {
    pub(super) rows: Vec<(&'static str, Measured)>,
    mean_definition: f64,
    /// Price of a turn without any tools.
    without_tools: f64,
}

impl Comparison {
    /// Runs every method.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective, or if a definition can't be rendered.
    pub(super) fn play(beds: &Beds<'_>, script: &Script<'_>) -> Result<Self, Error> {
        let Beds { bed, definitions, defaults } = beds;
        let top_10 = Rule::paper(-1.0, 10);
        let rows = [
            script.play(&mut Fixed::full(bed))?,
            script.play(&mut Fixed::pruned(bed, script.tasks))?,
            script.play(&mut Routed::new(definitions, top_10).without_pool())?,
            script.play(&mut CliLazy::new(bed))?,
            script.play(&mut Routed::new(bed, Rule::paper(0.28, 10)))?,
            script.play_defaults(defaults)?,
            script.play(&mut Routed::new(bed, Rule::product()))?,
            script.play(&mut Routed::new(bed, Rule::product()).with_handle())?,
        ];
        let without_tools = script.play(&mut Fixed::none(bed))?.price;
        let names = MAIN.iter().map(|row| row.name).chain(OURS);
        let all = bed.all();
        let mean_definition = bed.schema_tokens(&all) as f64 / all.len().max(1) as f64;
        Ok(Self { rows: names.zip(rows).collect(), mean_definition, without_tools })
    }

    /// Returns the table of the testbed.
    pub(super) fn testbed_table(&self, title: String) -> Table {
        let columns = [
            "method",
            "standing",
            "on demand",
            "tokens a turn",
            "paper",
            "saved",
            "paper",
            "rho",
            "paper",
            "price",
            "tools",
            "found",
        ];
        let says = format!("{SAYS} {}", self.price_says());
        let mut table = Table::new("methods", title, &columns).saying(says);
        let paper = MAIN.iter().map(Some).chain(std::iter::repeat(None));
        for ((name, measured), paper) in self.rows.iter().zip(paper) {
            let saved = |tokens: u64| 1.0 - tokens as f64 / MAIN[0].tokens as f64;
            let published = paper.map_or([Cell::NONE; 3], |row| {
                let tokens = Figure::count(row.tokens);
                let saved = Figure::Percent(saved(row.tokens));
                [tokens, saved, Figure::Share(row.rho)].map(Figure::published)
            });
            let [tokens, percent, rho] = published;
            let [standing, on_demand, sum, ours, price, tools, found] = self.cells(name, measured);
            let cells = [standing, on_demand, sum, tokens, ours, percent];
            let others = [Figure::Share(measured.rho).fitted(), rho, price, tools, found];
            table.push(*name, cells.into_iter().chain(others));
        }
        self.reasons(&mut table);
        table
    }

    /// Returns the table of a catalog that is not in the paper, with conversations of one turn.
    pub(super) fn catalog_table(&self, title: String, says: &str, tfidf: Measured) -> Table {
        let columns = [
            "method",
            "standing",
            "on demand",
            "tokens a turn",
            "saved",
            "rho",
            "price",
            "tools",
            "found",
        ];
        let says = format!(
            "{says} Each price is that of a first turn, which finds nothing in the cache; without any tool it would be {}.",
            grouped(self.without_tools)
        );
        let mut table = Table::new("catalog", title, &columns).saying(says);
        let mut rows: Vec<_> = self.rows.iter().filter(|(name, _)| *name != KEPT).collect();
        let tfidf = ("Tool Attention by TF-IDF", tfidf);
        rows.insert(MAIN.len(), &tfidf);
        for (name, measured) in rows {
            let [standing, on_demand, sum, saved, price, tools, found] = self.cells(name, measured);
            let rho = Figure::Share(measured.rho).fitted();
            table.push(*name, [standing, on_demand, sum, saved, rho, price, tools, found]);
        }
        table
    }

    /// Returns the standing tokens, the on-demand tokens, their sum, the share saved, the price, the tools and the found
    /// share.
    fn cells(&self, name: &str, measured: &Measured) -> [Cell; 7] {
        let full = self.rows[0].1.tokens;
        // The tool that the model looks up is an assumption, so this method has no found share.
        let found = match name {
            _ if name == MAIN[3].name => Cell::NONE,
            _ => Figure::Share(measured.found).measured(),
        };
        [
            Figure::Count(measured.standing).measured(),
            Figure::Count(measured.on_demand).measured(),
            Figure::Count(measured.tokens).measured(),
            Figure::Percent(1.0 - measured.tokens / full).measured(),
            Figure::Count(measured.price).priced(),
            Figure::Mean(measured.tools).measured(),
            found,
        ]
    }

    fn price_says(&self) -> String {
        let Provider { model, .. } = Provider::PRICED;
        let rates = Provider::PRICED.rates();
        format!(
            "*Price* is that of a turn's requests, messages included, in tokens of uncached input by the rules of `{model}`: a \
             token that is written to the cache counts {}, one that is read {}, of prompts from {} tokens on. Each call with its \
             result, and each answer, is taken as about 200 and 100 tokens; without any tool a turn costs {}. Definitions stand \
             before all messages, in phase 2 directly before the turn's message. A tool that is not there is priced as if it \
             were called all the same; only what is sent by default has a search, which is counted where it is needed.",
            rates.write,
            rates.read,
            grouped(f64::from(rates.least)),
            grouped(self.without_tools)
        )
    }

    fn reasons(&self, table: &mut Table) {
        let of = |place: usize| &self.rows[place].1;
        let reasons = [
            full_reason(of(0)),
            pruned_reason(),
            retrieval_reason(of(2), self.mean_definition),
            CLI_REASON.to_owned(),
            attention_reason(of(4), self.mean_definition),
        ];
        for (row, reason) in MAIN.iter().zip(reasons) {
            table.because(row.name, reason);
        }
        table.because("rho", rho_reason(of(4).rho_on_demand));
    }
}

const SAYS: &str = "\
The paper's 120 tools of six MCP servers, each definition exactly as long as the paper's table says. *Standing* tokens \
are in every prompt (for Tool Attention and Toolgate the summary pool, phase 1), *on demand* ones are there for what was \
said (phase 2). *rho* is the task's share of the prompt at turn 30. *tools* is how many definitions (for the CLI: helps) a \
prompt has, *found* in what share of the turns that take a tool its definition was there. Tool Attention is the \
product's code with the paper's rule (overlap alone, .28 for each tool, k = 10); Toolgate ranks by overlap and \
words and cuts at a share of the best. *As sent by default* is what a user of the integrations gets: `auto` chooses the strategy, \
the search's description lists names within 400 tokens (standing, with all else in `tools`), and the definitions of earlier \
turns stay amid the messages and can be called (on demand). Its tokens are those of Anthropic's requests. *With the summary pool* is the paper's layout, which no integration sends. *Set \
kept* passes the handle on, so that tools stay from turn to turn, within the bound of a set.";

fn full_reason(ours: &Measured) -> String {
    let [code, ..] = CODE_PRINTS;
    format!(
        "the paper's own six sizes add up to {}, which is what is sent here; its published code prints {}, since it fills \
         definitions up by characters.",
        grouped(ours.tokens),
        grouped(code as f64)
    )
}

fn pruned_reason() -> String {
    format!(
        "the paper does not say which {PRUNED_TO} tools its curator keeps; its figure is {PRUNED_TO} times its mean. Ours \
         are the {PRUNED_TO} that these very tasks take most often, the best that a curator could do."
    )
}

fn retrieval_reason(ours: &Measured, mean_definition: f64) -> String {
    let [_, code, ..] = CODE_PRINTS;
    format!(
        "ten definitions in both. Those of the tools that are found have {} tokens in the mean, those of the testbed {}. The \
         published code prints {}.",
        grouped(ours.on_demand / ours.tools.max(1.0)),
        grouped(mean_definition),
        grouped(code as f64)
    )
}

const CLI_REASON: &str = "\
the paper counts the prompt that explains the command; here the lists and helps that the model has to read count as well, and \
stay in the history. The model is taken to look up the right tool at once, so that \"found\" would be an assumption.";

fn attention_reason(ours: &Measured, mean_definition: f64) -> String {
    let [.., pool, promoted] = CODE_PRINTS;
    format!(
        "the paper's figure leaves phase 1 out (its ablation has it in a row of its own) and is what {:.1} tools of the mean \
         size cost; with its threshold and k, {:.1} tools are sent a turn here. The published code prints {} for phase 2 and \
         {} for phase 1, whose summaries have seven tokens each; ours are the product's own, with the tool's name.",
        MAIN[4].tokens as f64 / mean_definition,
        ours.tools,
        grouped(promoted as f64),
        grouped(pool as f64)
    )
}

/// Compares the paper's values of rho with each other.
fn rho_reason(on_demand: f64) -> String {
    // rho = task / (task + tools), solved for the task.
    let task = |row: &paper::Row| row.rho * row.tokens as f64 / (1.0 - row.rho);
    format!(
        "the paper publishes neither the task's tokens at turn 30 nor the system prompt's. {} and {} come nearest to its \
         five values, but no pair explains all of them: {} beside {} tokens takes a task of {}, {} beside {} one of {}. \
         Its formula multiplies the tools by the number of turns, its table does not. With phase 2 alone, as the paper \
         counts, Tool Attention's rho is {on_demand:.2} here.",
        grouped(paper::TASK_TOKENS),
        grouped(paper::SYSTEM_TOKENS),
        MAIN[0].rho,
        grouped(MAIN[0].tokens as f64),
        grouped(task(&MAIN[0])),
        MAIN[4].rho,
        grouped(MAIN[4].tokens as f64),
        grouped(task(&MAIN[4])),
    )
}
