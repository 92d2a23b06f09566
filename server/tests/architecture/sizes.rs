//! Files and functions stay short enough to be read at once.

use crate::plan::root;
use crate::source::{Source, read};

const FOLDERS: [&str; 4] =
    ["server/src", "serving/src", "encoder-worker/src", "client-sdk/rust/src"];

/// Lines of a file without its tests, and of a function from its signature to its closing brace.
const FILE_MAX: usize = 450;
const FUNCTION_MAX: usize = 80;

/// What half of the files stay below.
const FILE_MEDIAN_MAX: usize = 150;

#[test]
fn files_and_functions_are_short() {
    let (mut files, mut functions, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for folder in FOLDERS {
        for source in read(&root().join(folder)) {
            let path = format!("{folder}/{}", source.path.display());
            files.push(source.lines.len());
            if source.lines.len() > FILE_MAX {
                wrong.push(format!("{path} has {} lines", source.lines.len()));
            }
            for (name, lines) in functions_of(&source) {
                functions.push(lines);
                if lines > FUNCTION_MAX {
                    wrong.push(format!("{path}: {name} has {lines} lines"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (file, file_95) = middle_and_95th(&mut files);
    let (function, function_95) = middle_and_95th(&mut functions);
    println!("{} files: median {file} lines, p95 {file_95}", files.len());
    println!("{} functions: median {function} lines, p95 {function_95}", functions.len());
    assert!(file <= FILE_MEDIAN_MAX, "the median file has {file} lines");
}

/// Functions with their lines. Layout is rustfmt's: a body ends at the brace below its `fn`.
fn functions_of(source: &Source) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (start, line) in source.lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let body = source.lines[start..].iter();
        let lines =
            body.take_while(|line| **line != end && !declares_only(line, indent)).count() + 1;
        let one_line = line.ends_with('}') || line.ends_with(';');
        found.push((name, if one_line { 1 } else { lines }));
    }
    found
}

/// A trait's method without a body.
fn declares_only(line: &str, indent: &str) -> bool {
    line.ends_with(';') && line.starts_with(indent) && !line[indent.len()..].starts_with(' ')
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start();
    for prefix in ["pub(crate) ", "pub(super) ", "pub ", "default ", "const ", "async ", "unsafe "]
    {
        words = words.strip_prefix(prefix).unwrap_or(words);
    }
    let name: String =
        words.strip_prefix("fn ")?.chars().take_while(|c| *c != '(' && *c != '<').collect();
    Some(name)
}

fn middle_and_95th(lengths: &mut [usize]) -> (usize, usize) {
    lengths.sort_unstable();
    let at = |share: usize| lengths[(lengths.len() * share / 100).min(lengths.len() - 1)];
    (at(50), at(95))
}

#[test]
fn functions_are_measured() {
    let text = "impl A {\n    pub async fn a(\n        b: C,\n    ) -> D {\n        e;\n    }\n\n    fn f() {}\n}\n\nfn g() {\n}";
    let lines = text.lines().map(str::to_owned).collect();
    let source = Source { path: "x.rs".into(), lines };
    let found = functions_of(&source);
    assert_eq!(found, [("a".to_owned(), 5), ("f".to_owned(), 1), ("g".to_owned(), 2)]);
}
