//! Shapes of arguments within a request: what a word like `PAY-317` or `~/notes.md` stands for.

/// Minimum bytes of a word with digits to be an id. Shorter ones, such as `s3` and `oauth2`, name things.
const ID_MIN: usize = 7;

/// Longest ending of a file's name, as in `.parquet`, in bytes.
const ENDING_MAX: usize = 7;

/// Kind of thing that an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Key of an issue: `PAY-317`.
    Issue,
    /// Number of a merge request: `!482`.
    MergeRequest,
    /// Name of a channel: `#general`.
    Channel,
    /// Hash of a commit: `a1b2c3d`.
    Commit,
    /// Address on the web.
    WebPage,
    /// Address of a mailbox.
    Email,
    /// Number of a phone: `+4917212345`.
    Phone,
    /// Latitude or longitude: `48.2082`.
    Coordinates,
    /// Path or name of a file.
    File,
    /// Number, date or id, of which nothing more can be said.
    Other,
}

impl Shape {
    /// Returns the words that are embedded in the argument's place; empty if it says nothing.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::MergeRequest => "merge request",
            Self::Channel => "channel",
            Self::Commit => "commit",
            Self::WebPage => "web page",
            Self::Email => "email address",
            Self::Phone => "phone number",
            Self::Coordinates => "coordinates",
            Self::File => "file",
            Self::Other => "",
        }
    }
}

/// Returns the shape of a word, or `None` if it is a word like any other.
pub(super) fn of(word: &str) -> Option<Shape> {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    if bare.contains("://") || bare.starts_with("www.") {
        return Some(Shape::WebPage);
    }
    if bare.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.')) {
        return Some(Shape::Email);
    }
    let opened = word.trim_start_matches(['(', '[', '"', '\'']);
    if let Some(shape) = marked(opened, bare) {
        return Some(shape);
    }
    if is_file(opened, bare) {
        return Some(Shape::File);
    }
    let digits = bare.chars().filter(char::is_ascii_digit).count();
    let letters = bare.chars().filter(|c| c.is_alphabetic()).count();
    if digits == 0 {
        return None;
    }
    if is_issue(bare) {
        return Some(Shape::Issue);
    }
    if letters == 0 && is_coordinate(bare) {
        return Some(Shape::Coordinates);
    }
    if (ID_MIN..=40).contains(&bare.len()) && bare.bytes().all(is_lower_hex) && letters > 0 {
        return Some(Shape::Commit);
    }
    (letters == 0 || bare.len() >= ID_MIN).then_some(Shape::Other)
}

/// Returns the shape of what begins with a mark: `!40`, `#general`, `+49172`.
fn marked(word: &str, bare: &str) -> Option<Shape> {
    let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
    let begins = |mark: char| word.starts_with(mark) && word[mark.len_utf8()..].starts_with(bare);
    if begins('!') && is_number {
        return Some(Shape::MergeRequest);
    }
    if begins('+') && is_number && bare.len() >= ID_MIN {
        return Some(Shape::Phone);
    }
    if begins('#') && is_number {
        return Some(Shape::Issue);
    }
    (begins('#') && bare.starts_with(char::is_alphabetic)).then_some(Shape::Channel)
}

/// Returns true for `PAY-317`: capital letters, a hyphen, a number.
fn is_issue(word: &str) -> bool {
    word.split_once('-').is_some_and(|(project, number)| {
        project.len() >= 2
            && project.starts_with(|c: char| c.is_ascii_uppercase())
            && project.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns true for a number of degrees with three digits or more behind the point.
fn is_coordinate(word: &str) -> bool {
    let is_precise = word.split_once('.').is_some_and(|(_, behind)| behind.len() >= 3);
    is_precise && word.parse::<f64>().is_ok_and(|degrees| degrees.abs() <= 180.0)
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Returns true for `/data/memo.wav`, `~/x`, `./x`, `C:\x` and `notes.txt`.
fn is_file(word: &str, bare: &str) -> bool {
    let begins = ["/", "~/", "./", "../", ".\\"].iter().any(|start| word.starts_with(start));
    if begins && bare.starts_with(char::is_alphanumeric) {
        return true;
    }
    if bare.get(1..3) == Some(":\\") {
        return true;
    }
    let Some((name, ending)) = bare.rsplit_once('.') else { return false };
    let is_ending = (1..=ENDING_MAX).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_lowercase());
    is_ending && !name.is_empty() && ENDINGS.contains(&ending)
}

/// Endings of files that people name in requests. Others, as in `Node.js`, may be names of things.
const ENDINGS: [&str; 40] = [
    "c", "cfg", "conf", "cpp", "css", "csv", "doc", "docx", "env", "gif", "go", "gz", "html",
    "ini", "ipynb", "java", "jpeg", "jpg", "json", "jsonl", "log", "md", "mp3", "mp4", "parquet",
    "pdf", "png", "ppt", "pptx", "py", "rs", "sh", "sql", "svg", "toml", "txt", "wav", "xlsx",
    "yaml", "yml",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &[&str], shape: Option<Shape>) {
        for word in words {
            assert_eq!(of(word), shape, "{word}");
        }
    }

    #[test]
    fn arguments_are_known_by_their_shape() {
        check(&["PAY-317", "SEC-44?", "(API-5)", "WEB2-1,", "#123"], Some(Shape::Issue));
        check(&["!482", "!77."], Some(Shape::MergeRequest));
        check(&["#general", "#launch-party,", "(#support)"], Some(Shape::Channel));
        check(&["a1b2c3d", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"], Some(Shape::Commit));
        check(&["https://velo.example/gravel-9", "www.gov.example"], Some(Shape::WebPage));
        check(&["ana@kovac.example", "<li@mail.example>,"], Some(Shape::Email));
        check(&["+4917212345"], Some(Shape::Phone));
        check(&["48.2082,", "-16.3738"], Some(Shape::Coordinates));
        let files =
            ["~/notes", "/data/memo.wav,", "./k8s/migrate.yaml", "a.yml,", "D:\\Share", "cv.pdf"];
        check(&files, Some(Shape::File));
        check(&["4711", "2025-03-01", "5%", "web-7f9c4d-x2", "84.1.1.0/24"], Some(Shape::Other));
    }

    #[test]
    fn words_and_names_have_no_shape() {
        check(&["s3", "oauth2", "up-to-date", "and/or", "web/shop", "Node.js", "e.g.", "!"], None);
        check(&["#", "", "C#", "don't", "T-shirt", "/", "...", "größe", "日本語"], None);
    }
}
