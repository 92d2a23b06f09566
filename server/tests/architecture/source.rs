//! Rust sources as text: which files count as product, which lines are code, what they name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A product source without its tests: test modules, their files, comments.
pub struct Source {
    /// Relative to the folder that was read.
    pub path: PathBuf,
    /// The lines of the file that are not tests.
    pub lines: Vec<String>,
}

/// The sources below `folder`, without test files.
pub fn read(folder: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let texts: Vec<_> = files
        .into_iter()
        .map(|file| {
            (
                file.strip_prefix(folder).unwrap().to_path_buf(),
                std::fs::read_to_string(file).unwrap(),
            )
        })
        .collect();
    let tests: BTreeSet<PathBuf> =
        texts.iter().flat_map(|(path, text)| test_files(path, text)).collect();
    let is_test =
        |path: &Path| path.ancestors().any(|part| tests.contains(&part.with_extension("")));
    let product = texts.into_iter().filter(|(path, _)| !is_test(path));
    product.map(|(path, text)| Source { path, lines: without_tests(&text) }).collect()
}

impl Source {
    /// The lines without comments.
    pub fn code(&self) -> String {
        let code = self.lines.iter().map(|line| line.split("//").next().unwrap_or_default());
        code.collect::<Vec<_>>().join("\n")
    }

    /// The path of modules that the file is, such as `["router", "rank"]`.
    pub fn module(&self) -> Vec<String> {
        let path = self.path.with_extension("");
        let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
        parts.filter(|part| part != "lib" && part != "main").collect()
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The files, without their ending, of modules that `text` declares for tests only.
fn test_files(path: &Path, text: &str) -> Vec<PathBuf> {
    let stem = path.with_extension("");
    let is_root = stem == Path::new("lib") || stem == Path::new("main");
    let folder = if is_root { PathBuf::new() } else { stem };
    let lines: Vec<&str> = text.lines().collect();
    let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    let names = declared.filter_map(|pair| pair[1].strip_suffix(';')?.split("mod ").nth(1));
    names.map(|name| folder.join(name)).collect()
}

/// Leaves out what follows `#[cfg(test)]`: the item up to its closing brace or semicolon.
fn without_tests(text: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push(line.to_owned());
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let closes = |line: &str| line.ends_with(';') || line.ends_with('}');
        let at_indent = |line: &str| line.len() - line.trim_start().len() == indent;
        let _ = lines.find(|line| at_indent(line) && closes(line));
    }
    kept
}

/// Top-level modules that code in `module` names, through `crate::` and through `super::`.
pub fn imports(code: &str, module: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (start, _) in code.match_indices("crate::") {
        let before = code[..start].chars().next_back();
        if before.is_none_or(|c| !is_word(c)) && !code[..start].ends_with("$") {
            found.extend(first_names(&code[start + "crate::".len()..]));
        }
    }
    let up = "super::".repeat(module.len());
    if !module.is_empty() {
        for (start, _) in code.match_indices(&up) {
            if !code[..start].ends_with("super::") {
                found.extend(first_names(&code[start + up.len()..]));
            }
        }
    }
    found
}

/// `a` of `a::b`, and `a` and `c` of `{a::b, c}`.
fn first_names(path: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| is_word(*c)).collect::<String>();
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let (mut depth, mut names) = (0, vec![word(group.trim_start())]);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(word(group[i + 1..].trim_start())),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn imports_are_found() {
    let code =
        "use crate::a::B;\nuse crate::{b::{C, D}, c};\nfn f() { crate::d::g() }\nmy_crate::e::f();";
    let names = |module: &[&str], code: &str| {
        let module: Vec<_> = module.iter().map(|part| (*part).to_owned()).collect();
        imports(code, &module).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(names(&["x"], code), ["a", "b", "c", "d"]);
    assert_eq!(names(&["x"], "use super::y::Z;"), ["y"]);
    assert_eq!(names(&["x", "w"], "use super::y::Z;"), Vec::<String>::new());
    assert_eq!(names(&["x", "w"], "use super::super::y::Z;"), ["y"]);
}

#[test]
fn tests_are_left_out() {
    let text = "a\n#[cfg(test)]\nmod tests {\n    b\n}\nc\n#[cfg(test)]\nmod d;\ne";
    assert_eq!(without_tests(text), ["a", "c", "e"]);
    assert_eq!(test_files(Path::new("x.rs"), text), [Path::new("x/d")]);
    assert_eq!(test_files(Path::new("lib.rs"), text), [Path::new("d")]);
}
