//! Tokens and rho by catalog size. Smaller catalogs have a part of the testbed's servers, and larger ones have
//! additional servers.

use super::bed::{Bed, Rule};
use super::methods::{Fixed, Routed};
use super::paper::{RHO_SCALED, SYSTEM_TOKENS, TASK_TOKENS};
use super::report::{Figure, Table};
use super::script::Script;
use super::tasks::Task;
use crate::conversations::Defaults;
use toolgate_core::error::Error;

/// Number of tools in each catalog.
pub(super) const SIZES: [usize; 6] = [30, 60, 120, 240, 480, 960];

/// Catalog of one size, and its tasks.
pub(super) struct Sized<'a> {
    pub(super) bed: Bed<'a>,
    pub(super) defaults: Defaults<'a>,
    pub(super) tasks: &'a [Task],
}

/// Returns the table, with a row for each catalog.
///
/// # Errors
/// Returns an internal error if the index is defective.
pub(super) fn table(catalogs: &[Sized<'_>]) -> Result<Table, Error> {
    let columns = [
        "tools",
        "full",
        "rho",
        "Tool Attention",
        "rho",
        "rho, phase 2 alone",
        "paper",
        "found",
        "Toolgate, as sent by default",
        "rho",
        "found",
    ];
    let mut table = Table::new("scaling", "Scaling", &columns).saying(SAYS);
    for Sized { bed, defaults, tasks } in catalogs {
        let script = Script::of(tasks);
        let full = script.play(&mut Fixed::full(bed))?;
        let paper = script.play(&mut Routed::new(bed, Rule::paper(0.28, 10)))?;
        let ours = script.play_defaults(defaults)?;
        let cells = [
            Figure::Count(full.tokens).measured(),
            Figure::Share(full.rho).fitted(),
            Figure::Count(paper.tokens).measured(),
            Figure::Share(paper.rho).fitted(),
            Figure::Share(paper.rho_on_demand).fitted(),
            Figure::Text(format!("at least {RHO_SCALED}")).published(),
            Figure::Share(paper.found).measured(),
            Figure::Count(ours.tokens).measured(),
            Figure::Share(ours.rho).fitted(),
            Figure::Share(ours.found).measured(),
        ];
        table.push(bed.snapshot.tools.len().to_string(), cells);
    }
    reasons(&mut table);
    Ok(table)
}

fn reasons(table: &mut Table) {
    table.because(
        "rho",
        "the paper holds at least .87 up to 1,000 tools, \"degrading only logarithmically due to Phase-1 growth\". The pool \
         grows by one summary a tool, so that with phase 1 counted rho falls as 1/(1 + cN); only phase 2 is \
         bounded. By default Toolgate sends no pool: the search lists names within 400 tokens, whatever the size of the catalog.",
    );
    // rho = task / (task + 400 N + system), solved for N.
    let fracture = (TASK_TOKENS / 0.3 - TASK_TOKENS - SYSTEM_TOKENS) / 400.0;
    table.because(
        "full",
        format!(
            "the paper's formula is 1/(1 + 400N/C), and it sees full schemas fall below .3 at about 50 tools; with the task \
             that its own table implies, 400 tokens a tool reach that at {fracture:.0}."
        ),
    );
}

const SAYS: &str = "\
Catalogs of 30 and 60 tools have a share of each of the testbed's servers; beyond 120, further servers of 20 tools with 405 \
tokens each come beside them (mail, calendar, payments and so on), and tasks are about all of them. A fifth of the tasks \
of the main results.";
