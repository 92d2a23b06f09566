//! References in values of hosts' files, each host's in its own syntax, and the same in the gateway's.

use std::path::Path;

use crate::Host;

/// Part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A variable, and what stands for it where it is not set.
    Variable(String, Option<String>),
    /// Path of a file whose text it is.
    File(String),
    /// Something that the host alone knows, such as an answer of its user: its name.
    Asked(String),
}

/// Place of a value: its host and folders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) host: Host,
    pub(crate) home: &'a Path,
    /// Folder that the host works in.
    pub(crate) project: &'a Path,
    /// Folder of the host's file.
    pub(crate) folder: &'a Path,
}

/// Value in the gateway's syntax.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Translated {
    pub(crate) text: String,
    /// Things that the host alone knows: the name in its file, and the variable in its place.
    pub(crate) asked: Vec<(String, String)>,
}

impl Writer<'_> {
    /// Returns a value of `env` or `headers`. `variable` names the variable in the place of what the host alone knows, where it
    /// is the whole value.
    pub(crate) fn value(&self, server: &str, text: &str, variable: &str) -> Translated {
        let pieces = self.pieces(text);
        if let [Piece::File(path)] = &pieces[..] {
            return Translated { text: format!("file:{path}"), asked: Vec::new() };
        }
        let whole = (pieces.len() == 1).then_some(variable);
        let Translated { text, asked } = written(server, pieces, whole);
        let is_misread = ["env:", "file:", "text:"].iter().any(|start| text.starts_with(start));
        let text = if is_misread { format!("text:{text}") } else { text };
        Translated { text, asked }
    }

    /// Returns a word of a command, or a URL.
    pub(crate) fn word(&self, server: &str, text: &str) -> Translated {
        written(server, self.pieces(text), None)
    }

    /// Returns the path of a file. One that is not absolute is within the project.
    pub(crate) fn path(&self, server: &str, text: &str) -> Translated {
        let mut pieces = self.pieces(text);
        if let Some(Piece::Text(start)) = pieces.first_mut() {
            let path = match start.strip_prefix("~/") {
                Some(rest) => self.home.join(rest),
                None => self.project.join(&*start),
            };
            *start = path.display().to_string();
        }
        written(server, pieces, None)
    }

    fn pieces(&self, text: &str) -> Vec<Piece> {
        let pieces = match self.host {
            Host::ClaudeCode => split(text, "${", |inner| Some(shell(inner))),
            Host::Cursor | Host::Vscode => split(text, "${", |inner| Some(self.editor(inner))),
            Host::GeminiCli => split(&braced(text), "${", |inner| Some(shell(inner))),
            Host::Opencode => split(text, "{", |inner| self.opencode(inner)),
            // They hand values over as they are written.
            Host::ClaudeDesktop | Host::Codex | Host::Zed => vec![Piece::Text(text.to_owned())],
        };
        joined(pieces)
    }

    /// Returns what `${...}` is in Cursor and VS Code.
    fn editor(&self, inner: &str) -> Piece {
        let text = |path: &Path| Piece::Text(path.display().to_string());
        match inner {
            "userHome" => return text(self.home),
            "workspaceFolder" | "workspaceRoot" => return text(self.project),
            "workspaceFolderBasename" => {
                let name = self.project.file_name().unwrap_or_default();
                return Piece::Text(name.to_string_lossy().into_owned());
            }
            "pathSeparator" | "/" => return Piece::Text(std::path::MAIN_SEPARATOR_STR.to_owned()),
            _ => {}
        }
        match inner.strip_prefix("env:") {
            Some(name) => variable(name),
            None if is_name(inner) => Piece::Variable(inner.to_owned(), None),
            None => Piece::Asked(inner.to_owned()),
        }
    }

    /// Returns what `{...}` is in opencode; `None` for a text.
    fn opencode(&self, inner: &str) -> Option<Piece> {
        if let Some(name) = inner.strip_prefix("env:") {
            return Some(Piece::Variable(name.trim().to_owned(), None));
        }
        let path = inner.strip_prefix("file:")?.trim();
        let path = match path.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.folder.join(path),
        };
        Some(Piece::File(path.display().to_string()))
    }
}

/// Returns what `${...}` is in Claude Code: a variable, with a default or without.
fn shell(inner: &str) -> Piece {
    if is_name(inner) || inner.contains(":-") {
        variable(inner)
    } else {
        Piece::Text(format!("${{{inner}}}"))
    }
}

/// Returns the variable of a name, with a default or without. One that no variable can have is its default.
fn variable(inner: &str) -> Piece {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    match default {
        Some(default) if name.is_empty() || name.contains(':') => Piece::Text(default),
        default => Piece::Variable(name.to_owned(), default),
    }
}

/// Splits a text at its references, which `read` knows between `open` and a closing brace.
fn split(text: &str, open: &str, read: impl Fn(&str) -> Option<Piece>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(open) {
        pieces.push(Piece::Text(before.to_owned()));
        let read = behind.split_once('}').and_then(|(inner, after)| Some((read(inner)?, after)));
        match read {
            Some((piece, after)) => {
                pieces.push(piece);
                rest = after;
            }
            None => {
                pieces.push(Piece::Text(open.to_owned()));
                rest = behind;
            }
        }
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces
}

/// Returns the text of Gemini CLI with `${NAME}` for `$NAME`.
fn braced(text: &str) -> String {
    let mut braced = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        braced.push_str(before);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = &behind[..behind.find(|c: char| !is_part(c)).unwrap_or(behind.len())];
        if is_name(name) {
            braced.push_str(&format!("${{{name}}}"));
        } else {
            braced.push('$');
            braced.push_str(name);
        }
        rest = &behind[name.len()..];
    }
    braced + rest
}

/// Returns the pieces with texts side by side as one, and without empty ones.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (_, Piece::Text(text)) if text.is_empty() => {}
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

/// Returns the pieces in the gateway's syntax. No text stands behind another.
fn written(server: &str, pieces: Vec<Piece>, whole: Option<&str>) -> Translated {
    let mut translated = Translated { text: String::new(), asked: Vec::new() };
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        let text = match piece {
            Piece::Text(text) => escaped(&text, pieces.peek().is_some()),
            Piece::Variable(name, None) => reference(&name),
            Piece::Variable(name, Some(default)) => reference(&format!("{name}:-{default}")),
            Piece::File(path) => format!("${{file:{path}}}"),
            Piece::Asked(name) => {
                let last = name.rsplit(':').next().unwrap_or_default();
                let variable = whole.map_or_else(|| variable_name(server, last), str::to_owned);
                let text = reference(&variable);
                translated.asked.push((name, variable));
                text
            }
        };
        translated.text.push_str(&text);
    }
    translated
}

/// Returns the reference to a variable, with a default or without.
pub(crate) fn reference(variable: &str) -> String {
    let name = variable.split_once(":-").map_or(variable, |(name, _default)| name);
    let kind = if is_name(name) { "" } else { "env:" };
    format!("${{{kind}{variable}}}")
}

/// Returns a text in which the gateway reads no reference: each `$` in front of a brace is `$$`. A reference begins with both.
fn escaped(text: &str, is_before_reference: bool) -> String {
    let dollars = |text: &str| "$".repeat(text.len() - text.trim_end_matches('$').len());
    let mut escaped = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        escaped.push_str(&format!("{before}{}$${{", dollars(before)));
        rest = behind;
    }
    escaped.push_str(rest);
    if is_before_reference {
        escaped.push_str(&dollars(rest));
    }
    escaped
}

/// Returns the name of a variable for a part of a server.
pub(crate) fn variable_name(server: &str, part: &str) -> String {
    let name = format!("{server}_{part}").to_ascii_uppercase();
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Returns the parts of a value in the gateway's syntax that are no references, defaults of variables among them.
pub(crate) fn literal(value: &str) -> String {
    if value.starts_with("env:") || value.starts_with("file:") {
        return String::new();
    }
    let mut literal = String::new();
    let mut rest = value.strip_prefix("text:").unwrap_or(value);
    while let Some((before, behind)) = rest.split_once("${") {
        let dollars = before.len() - before.trim_end_matches('$').len();
        literal.push_str(&before[..before.len() - dollars / 2]);
        let is_escaped = dollars % 2 == 1;
        match behind.split_once('}').filter(|(inner, _)| !is_escaped && is_reference(inner)) {
            Some((inner, after)) => {
                literal.push_str(inner.split_once(":-").map_or("", |(_, default)| default));
                rest = after;
            }
            None => {
                literal.push_str(if is_escaped { "{" } else { "${" });
                rest = behind;
            }
        }
    }
    literal + rest
}

/// Returns true if the gateway reads `${...}` as a reference.
fn is_reference(inner: &str) -> bool {
    let name = inner.split_once(":-").map_or(inner, |(name, _default)| name);
    match name.strip_prefix("env:") {
        Some(name) => !name.is_empty() && !name.contains(':'),
        None => name.starts_with("file:") || is_name(name),
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(host: Host) -> Writer<'static> {
        let path = Path::new;
        Writer { host, home: path("/home/a"), project: path("/work/p"), folder: path("/home/a/.c") }
    }

    #[test]
    fn references_of_each_host_stay_references() {
        for (host, text, wanted) in [
            (Host::ClaudeCode, "${A} ${B:-c} $D {e}", "${A} ${B:-c} $D {e}"),
            (Host::Cursor, "Bearer ${env:A}", "Bearer ${A}"),
            (Host::Vscode, "${env:A}/${B}", "${A}/${B}"),
            (Host::Vscode, "${workspaceFolder}/x ${userHome}", "/work/p/x /home/a"),
            (Host::Cursor, "${workspaceFolderBasename}${/}a", "p/a"),
            (Host::GeminiCli, "$A-${B} $1 $", "${A}-${B} $1 $"),
            (Host::Opencode, "Bearer {env:A} {b}", "Bearer ${A} {b}"),
            (Host::Opencode, "Bearer {file:~/t}", "Bearer ${file:/home/a/t}"),
            (Host::Opencode, "{file:./t}", "file:/home/a/.c/./t"),
            (Host::Opencode, "${A}", "$${A}"),
            (Host::Codex, "${A} $B", "$${A} $B"),
            (Host::Zed, "file:./dev.db", "text:file:./dev.db"),
            (Host::ClaudeDesktop, "env:x", "text:env:x"),
            (Host::Cursor, "file:${userHome}/x", "text:file:/home/a/x"),
            (Host::ClaudeCode, "${open", "$${open"),
            (Host::ClaudeCode, "a$${TOKEN}$", "a$$${TOKEN}$"),
            (Host::ClaudeCode, "$$${A%/}", "$$$$$${A%/}"),
            (Host::ClaudeCode, "${1:-x}${a:b:-c}", "${env:1:-x}c"),
            (Host::Cursor, "$${env:A-B}", "$$${env:A-B}"),
            (Host::Opencode, "$$ ${env:A}", "$$ $$${A}"),
            (Host::Codex, "", ""),
        ] {
            let Translated { text: found, asked } = writer(host).value("s", text, "V");
            assert_eq!(found, wanted, "{host:?}: {text}");
            assert!(asked.is_empty(), "{text}");
        }
    }

    #[test]
    fn what_the_host_alone_knows_has_a_variable_of_its_own() {
        let value = |text| writer(Host::Vscode).value("my hub", text, "API_TOKEN");
        let asked = |name: &str, variable: &str| vec![(name.to_owned(), variable.to_owned())];
        let whole = value("${input:tok}");
        assert_eq!((&*whole.text, whole.asked), ("${API_TOKEN}", asked("input:tok", "API_TOKEN")));
        let part = value("Bearer ${input:my-tok}");
        assert_eq!(part.text, "Bearer ${MY_HUB_MY_TOK}");
        assert_eq!(part.asked, asked("input:my-tok", "MY_HUB_MY_TOK"));
    }

    #[test]
    fn literals_are_what_is_no_reference() {
        for (value, wanted) in [
            ("env:A", ""),
            ("file:/x", ""),
            ("Bearer ${A}", "Bearer "),
            ("ghp_1${A}", "ghp_1"),
            ("${A:-ghp_2}", "ghp_2"),
            ("$${A}", "${A}"),
            ("a$$${A}", "a$"),
            ("${A%/}${env:A-B}", "${A%/}"),
            ("text:env:x", "env:x"),
        ] {
            assert_eq!(literal(value), wanted, "{value}");
        }
    }
}
