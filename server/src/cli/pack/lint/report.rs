//! Findings in packs, as text and as JSON.

use serde_json::{Value, json};

use super::{Linted, Warning};
use crate::cli::text::{counted, one_line};
use toolgate_lab::pack_trial::Limits;
use toolgate_routing::packs::document::Mistake;

/// Ranking that the requests were judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgedBy {
    Encoder,
    Words,
    /// Nothing was judged, because no pack could be read.
    Nothing,
}

pub(super) fn text(files: &[Linted]) -> String {
    files.iter().map(of_file).collect()
}

fn of_file(file: &Linted) -> String {
    let said = match &file.pack {
        Some(pack) => {
            let tools = counted(pack.tools.len(), "tool");
            format!("{tools}, {}", counted(pack.requests(), "request"))
        }
        None => "can't be read".to_owned(),
    };
    let verdict = match (file.errors.len(), file.warnings.len()) {
        (0, 0) => ", nothing is wanting".to_owned(),
        (_, 0) => String::new(),
        (_, count) => format!(", {}", counted(count, "warning")),
    };
    let errors = file.errors.iter().map(|mistake| format!("  {mistake}\n"));
    let warnings = file.warnings.iter().map(|warning| format!("  warning: {}\n", told(warning)));
    let lines: String = errors.chain(warnings).collect();
    format!("{}: {said}{verdict}\n{lines}", file.path.display())
}

fn told(warning: &Warning) -> String {
    let rank =
        warning.rank.map_or("not among the first 100".to_owned(), |rank| format!("at {rank}"));
    let request = one_line(&warning.request, 120);
    let Warning { tool, voice, first, lead, .. } = warning;
    format!("{tool} is {rank}, {first} first and {lead:.2} ahead ({voice}): \"{request}\"")
}

pub(super) fn as_json(files: &[Linted], by: JudgedBy, limits: Limits) -> Value {
    let by = match by {
        JudgedBy::Encoder => json!("encoder"),
        JudgedBy::Words => json!("words"),
        JudgedBy::Nothing => Value::Null,
    };
    let error = |mistake: &Mistake| json!({ "tool": mistake.tool, "problem": mistake.problem });
    let warning = |warning: &Warning| {
        json!({
            "tool": warning.tool, "voice": warning.voice, "request": warning.request,
            "rank": warning.rank, "first": warning.first, "lead": warning.lead,
        })
    };
    let file = |file: &Linted| {
        json!({
            "path": file.path.to_string_lossy(),
            "tools": file.pack.as_ref().map(|pack| pack.tools.len()),
            "requests": file.pack.as_ref().map(toolgate_routing::packs::Pack::requests),
            "errors": file.errors.iter().map(error).collect::<Vec<_>>(),
            "warnings": file.warnings.iter().map(warning).collect::<Vec<_>>(),
        })
    };
    json!({
        "packs": files.iter().map(file).collect::<Vec<_>>(),
        "judged_by": by,
        "within": limits.within,
        "margin": limits.margin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_routing::packs::Pack;

    #[test]
    fn errors_and_warnings_stand_below_their_file() {
        let text_of = "servers: [git]\ntools:\n  log: {terse: [what happened]}\n";
        let mistake = Mistake { tool: "log".into(), problem: "has 1 of 8".into() };
        let warning = Warning {
            tool: "log".into(),
            voice: "terse".into(),
            request: "what\nhappened".into(),
            rank: Some(3),
            first: "git/show".into(),
            lead: 0.314,
        };
        let file = |errors, warnings| Linted {
            path: "git.yaml".into(),
            pack: Pack::parse(text_of).ok(),
            errors,
            warnings,
        };
        let files = [file(vec![mistake], vec![warning]), file(vec![], vec![])];
        let wanted = "\
git.yaml: 1 tool, 1 request, 1 warning
  log: has 1 of 8
  warning: log is at 3, git/show first and 0.31 ahead (terse): \"what happened\"
git.yaml: 1 tool, 1 request, nothing is wanting
";
        assert_eq!(text(&files), wanted);
        let limits = Limits { within: 5, margin: 0.25 };
        let json = as_json(&files, JudgedBy::Words, limits);
        assert_eq!((&json["judged_by"], &json["within"]), (&json!("words"), &json!(5)));
        assert_eq!(json["packs"][0]["warnings"][0]["rank"], 3);
        assert_eq!(json["packs"][1]["errors"], json!([]));
    }
}
