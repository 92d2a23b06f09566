//! Forms of tool names in which one name can be taken for another.

use unicode_normalization::UnicodeNormalization;

use super::characters::latin_look_alike;

/// Minimum length of a name in letters. Shorter names are near each other by chance.
const NEAR_MIN: usize = 12;

/// Returns the words of a name, in lower case.
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(|c: char| !c.is_alphanumeric()) {
        let mut word = String::new();
        let mut was_lower = false;
        for c in part.chars() {
            if c.is_uppercase() && was_lower {
                words.push(std::mem::take(&mut word));
            }
            was_lower = c.is_lowercase();
            word.extend(c.to_lowercase());
        }
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

/// Returns the name without case and separators. Names that differ only in these give the same text.
#[must_use]
pub fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns a form of the name that is the same for names that look alike, even with digits and letters of other
/// scripts.
#[must_use]
pub fn looks(name: &str) -> String {
    let plain = name.nfkc().map(|c| latin_look_alike(c).unwrap_or(c));
    let bare = plain.filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    let one = |c| match c {
        '0' => 'o',
        '1' | 'i' => 'l',
        '5' => 's',
        c => c,
    };
    bare.map(one).collect()
}

/// Returns the words of a name in alphabetical order.
#[must_use]
pub fn sorted_words(name: &str) -> String {
    let mut words = words(name);
    words.sort();
    words.join(" ")
}

/// Returns the name, and the name without each one of its letters. Two names share one of these forms if one letter was
/// added, left out or replaced. Short names have none.
pub fn nearly(bare: &str) -> impl Iterator<Item = String> {
    let is_long = bare.chars().count() >= NEAR_MIN;
    let without = move |at: usize| {
        let kept = bare.chars().enumerate().filter(move |(place, _)| *place != at);
        kept.map(|(_, c)| c).collect::<String>()
    };
    let letters = if is_long { bare.chars().count() } else { 0 };
    let whole = is_long.then(|| bare.to_owned());
    whole.into_iter().chain((0..letters).map(without))
}

/// Returns true if a text with this word means the tool of that name, and not a word of the language.
#[must_use]
pub fn is_distinctive(name: &str) -> bool {
    name.len() >= 6 && words(name).len() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(words("getHTTP_url-now"), ["get", "http", "url", "now"]);
        assert_eq!(words("createPullRequest"), ["create", "pull", "request"]);
        assert_eq!(
            (bare("List-Issues"), bare("list_issues")),
            ("listissues".into(), "listissues".into())
        );
        assert_eq!(looks("lіst_1ssue5"), looks("list_issues"));
        assert_eq!(sorted_words("issues_list"), sorted_words("listIssues"));
        assert!(is_distinctive("read_file") && !is_distinctive("search") && !is_distinctive("a_b"));
    }

    #[test]
    fn near_names_share_a_form() {
        let share = |a: &str, b: &str| {
            let forms: Vec<_> = nearly(a).collect();
            nearly(b).any(|form| forms.contains(&form))
        };
        assert!(share("listpullrequests", "listpullrequest"));
        assert!(share("listpullrequests", "lisxpullrequests"));
        assert!(share("listpullrequests", "listpullrequests"));
        assert!(!share("listpullrequests", "listallbranches"));
        assert!(!share("gitcommit", "getcommit"), "too short");
    }
}
