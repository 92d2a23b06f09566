//! Browsers of persons: each has a cookie, and is known as a person once it has shown a credential of theirs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::Person;

/// Time for which a browser is known as a person.
const KNOWN: Duration = Duration::from_secs(60 * 60);

/// Most browsers that are known. The oldest give way.
const KNOWN_MAX: usize = 4_096;

/// Characters of a cookie's value: 256 bits.
const VALUE_LEN: usize = 43;

/// SHA-256 of the value of a browser's cookie.
pub(super) type BrowserId = [u8; 32];

/// Browsers that are known as persons.
pub(super) struct Browsers {
    /// Name of the cookie. Over https no other host of the domain can set one of this name.
    cookie: &'static str,
    is_secure: bool,
    known: Mutex<HashMap<BrowserId, Known>>,
}

struct Known {
    person: Person,
    since: Instant,
}

/// Browser of a request.
pub(super) struct Browser {
    pub(super) id: BrowserId,
    /// Header that gives it its cookie; `None` if it has one.
    pub(super) cookie: Option<HeaderValue>,
}

impl Browsers {
    pub(super) fn new(is_secure: bool) -> Self {
        let cookie = if is_secure { "__Host-toolgate" } else { "toolgate" };
        Self { cookie, is_secure, known: Mutex::default() }
    }

    /// Returns the browser of a request, with a new cookie if it has none. `None` if the system has no random numbers.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<Browser> {
        match self.value(headers) {
            Some(value) => Some(Browser { id: id(value), cookie: None }),
            None => self.new_browser(),
        }
    }

    /// Returns the person that a browser is known as.
    pub(super) fn person(&self, browser: &BrowserId) -> Option<Person> {
        let known = self.known.lock();
        let known = known.get(browser).filter(|known| known.since.elapsed() < KNOWN);
        known.map(|known| known.person.clone())
    }

    /// Knows a browser as a person from now on, under a cookie that nobody else can have set.
    pub(super) fn sign_in(&self, before: &BrowserId, person: Person) -> Option<Browser> {
        let browser = self.new_browser()?;
        let mut known = self.known.lock();
        known.remove(before);
        known.retain(|_, known| known.since.elapsed() < KNOWN);
        if known.len() >= KNOWN_MAX {
            let oldest = known.iter().min_by_key(|(_, known)| known.since).map(|(id, _)| *id);
            oldest.map(|oldest| known.remove(&oldest));
        }
        known.insert(browser.id, Known { person, since: Instant::now() });
        Some(browser)
    }

    /// Forgets whom a browser is known as.
    pub(super) fn sign_out(&self, browser: &BrowserId) {
        self.known.lock().remove(browser);
    }

    fn value<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
        pairs.find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie && value.len() == VALUE_LEN).then_some(value)
        })
    }

    fn new_browser(&self) -> Option<Browser> {
        let value = random()?;
        let secure = if self.is_secure { "; Secure" } else { "" };
        let seconds = KNOWN.as_secs();
        let cookie = format!(
            "{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}",
            self.cookie
        );
        Some(Browser { id: id(&value), cookie: HeaderValue::try_from(cookie).ok() })
    }
}

/// Returns 256 bits that nobody can guess; `None` if the system has no random numbers.
pub(crate) fn random() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

fn id(value: &str) -> BrowserId {
    Sha256::digest(value.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str) -> Person {
        Person { tenant: "acme".to_owned(), principal: name.to_owned() }
    }

    fn with(cookie: &str) -> HeaderMap {
        let value = HeaderValue::try_from(cookie).expect("a header");
        [(header::COOKIE, value)].into_iter().collect()
    }

    fn cookie(browser: Browser) -> String {
        let cookie = browser.cookie.expect("a cookie");
        cookie.to_str().expect("text").to_owned()
    }

    #[test]
    fn a_browser_has_a_new_cookie_once_it_is_known() {
        let browsers = Browsers::new(true);
        let first = browsers.of(&HeaderMap::new()).expect("a browser");
        let before = first.id;
        let known = browsers.sign_in(&before, person("ann")).expect("a browser");
        let known_id = known.id;
        assert_ne!(known_id, before);
        assert_eq!(browsers.person(&before), None);
        assert_eq!(browsers.person(&known_id), Some(person("ann")));
        let set = cookie(known);
        assert!(set.starts_with("__Host-toolgate="), "{set}");
        for part in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/"] {
            assert!(set.contains(part), "{set}");
        }
        let pair = set.split(';').next().expect("a pair");
        let again = browsers.of(&with(&format!("a=b; {pair}"))).expect("a browser");
        assert_eq!(again.id, known_id);
        assert!(again.cookie.is_none());
        browsers.sign_out(&known_id);
        assert_eq!(browsers.person(&known_id), None);
    }

    #[test]
    fn a_cookie_of_another_form_is_none() {
        let browsers = Browsers::new(false);
        for foreign in ["toolgate=short", "other=x", "toolgate"] {
            let browser = browsers.of(&with(foreign)).expect("a browser");
            assert!(!cookie(browser).contains("Secure"), "{foreign}");
        }
    }
}
