//! Published figures of A. Sadani, "Tool Attention Is All You Need: Dynamic Tool Gating and Lazy Schema Loading for
//! Eliminating the MCP/Tools Tax in Scalable Agentic Workflows", 2026. They come from tables 2 to 5, from sections 5 to
//! 7, and from the output that its published code reports.

/// Seed of every experiment.
pub const SEED: u64 = 42;

/// Number of tools in the testbed.
pub(super) const TOOLS: usize = 120;

/// Number of tasks of the main results.
pub const TASKS: usize = 500;

/// Number of tools that static pruning keeps.
pub(super) const PRUNED_TO: usize = 30;

/// Turn for which rho is reported.
pub(super) const RHO_TURN: usize = 30;

/// Number of poisoned descriptions, and the number of them that the gate kept out.
pub(super) const POISONED: (u64, u64) = (50, 46);

/// Lower bound on rho of Tool Attention with up to 1,000 tools.
pub(super) const RHO_SCALED: f64 = 0.87;

/// Tokens of full schemas, simple retrieval, phase 1 and phase 2 by the published code (its README, seed 42).
pub(super) const CODE_PRINTS: [u64; 4] = [57_452, 5_390, 787, 4_672];

/// Row of the main results (table 3): measured figures, then projected ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Name of the method.
    pub(super) name: &'static str,
    /// Tool tokens per turn.
    pub(super) tokens: u64,
    /// Effective context utilisation at turn 30, 0 to 1.
    pub(super) rho: f64,
    /// Projected figures: task success in per cent, P50 and P95 in seconds, US dollars per task, judged quality from 1
    /// to 5.
    pub(super) projected: [f64; 5],
}

/// Main results (table 3), with the judged quality of table 4.
pub(super) const MAIN: [Row; 5] = [
    row("full schemas", 47_312, 0.24, [72.0, 4.2, 7.9, 0.21, 3.21]),
    row("static pruning to 30", 11_865, 0.56, [58.0, 3.8, 7.1, 0.09, 3.35]),
    row("simple retrieval, top 10", 4_082, 0.78, [81.0, 2.2, 4.6, 0.04, 3.89]),
    row("CLI lazy discovery", 480, 0.94, [88.0, 2.4, 5.4, 0.03, 4.02]),
    row("Tool Attention", 2_368, 0.91, [94.0, 2.0, 4.3, 0.03, 4.43]),
];

const fn row(name: &'static str, tokens: u64, rho: f64, projected: [f64; 5]) -> Row {
    Row { name, tokens, rho, projected }
}

/// Returns the effective context utilisation: the task's tokens as a share of the tokens of the task, the tools and the
/// system prompt (section 3.3).
pub(super) fn rho(task: f64, tools: f64, system: f64) -> f64 {
    task / (task + tools + system)
}

/// Tokens of the task at turn 30. The paper publishes neither these nor the tokens of the system prompt. Of all pairs
/// in multiples of 100 and 50 tokens, this pair comes nearest to its five values of rho by least squares.
pub(super) const TASK_TOKENS: f64 = 15_500.0;
/// Tokens of the system prompt. See [`TASK_TOKENS`].
pub(super) const SYSTEM_TOKENS: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rho_by_hand() {
        assert!((rho(15_000.0, 45_000.0, 0.0) - 0.25).abs() < 1e-12);
        assert!((rho(500.0, 300.0, 200.0) - 0.5).abs() < 1e-12);
        assert!((rho(1.0, 0.0, 0.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn task_and_system_are_what_the_papers_rho_imply_and_none_explains_all_five() {
        let errors =
            |task: f64, system: f64| MAIN.map(|row| rho(task, row.tokens as f64, system) - row.rho);
        let squares = |task, system| errors(task, system).map(|error| error * error).iter().sum();
        let pairs = (50..=400).flat_map(|task| (0..=80).map(move |system| (task, system)));
        let mut best = (0.0, 0.0);
        let mut least = f64::INFINITY;
        for (task, system) in pairs.map(|(t, s)| (f64::from(t) * 100.0, f64::from(s) * 50.0)) {
            let sum: f64 = squares(task, system);
            if sum < least {
                (best, least) = ((task, system), sum);
            }
        }
        assert!((best.0 - TASK_TOKENS).abs() < 1.0 && (best.1 - SYSTEM_TOKENS).abs() < 1.0);
        let worst = errors(best.0, best.1).map(f64::abs).into_iter().fold(0.0, f64::max);
        assert!(worst > 0.03, "the paper's rho follow from its tokens after all: {worst}");
    }
}
