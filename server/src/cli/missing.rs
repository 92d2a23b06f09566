//! Tip on a command line that lacks an argument: an example of the command.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds an example of the command to the error of a line that lacks an argument.
pub(super) fn with_example(mut error: clap::Error, grammar: &Command) -> clap::Error {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return error;
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage)
        && let Some(example) = example(grammar, &usage.to_string())
    {
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(format!("such as: {example}"))]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Returns the first example of the command of a usage line, such as `Usage: toolgate search <QUERY>...`. Examples are in the help
/// of the command, or of the one that it belongs to.
fn example<'a>(grammar: &'a Command, usage: &str) -> Option<String> {
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    // The program may have been renamed.
    let names: Vec<&str> = usage.split_whitespace().skip(2).take_while(is_name).collect();
    let beginning = format!("toolgate {} ", names.join(" "));
    let below = |command: Option<&'a Command>, name: &&str| command?.find_subcommand(name);
    let commands = (1..=names.len()).rev().map(|depth| {
        let names = &names[..depth];
        names.iter().fold(Some(grammar), below)
    });
    let helps = commands.flatten().filter_map(|command| command.get_after_help());
    let lines: Vec<String> = helps
        .flat_map(|help| help.to_string().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let found = lines.iter().map(|line| line.trim()).find(|line| line.starts_with(&beginning))?;
    // What an example does stands behind it.
    found.split("  ").next().map(|example| example.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::super::arguments::Arguments;
    use super::*;

    #[test]
    fn a_line_that_lacks_an_argument_is_told_with_an_example() {
        for (line, want) in [
            ("toolgate search", "such as: toolgate search \"is anyone waiting for my review?\"\n"),
            ("toolgate route", "such as: toolgate route \"why did the nightly build fail?\"\n"),
            ("toolgate gateway why", "such as: toolgate gateway why \"check my inbox\"\n"),
            ("renamed unregister", "such as: toolgate unregister slack\n"),
            (
                "toolgate catalog approve github",
                "such as: toolgate catalog approve github create_issue@",
            ),
        ] {
            let error =
                Arguments::try_parse_from(line.split(' ')).expect_err("it lacks an argument");
            let told = with_example(error, &Arguments::command()).to_string();
            assert!(told.contains(want), "{told}");
        }
    }

    #[test]
    fn other_mistakes_are_told_as_they_are() {
        let error = Arguments::try_parse_from(["toolgate", "serach"]).expect_err("no command");
        let before = error.to_string();
        assert_eq!(with_example(error, &Arguments::command()).to_string(), before);
    }
}
