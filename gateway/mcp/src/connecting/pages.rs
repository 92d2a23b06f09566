//! HTML of the pages: without scripts, for no frame, and with nothing in it that is not escaped.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use url::Url;

use super::{Connecting, Link, Person};

/// Rules for browsers. Forms lead to the gateway alone.
const POLICY: &str =
    "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Request for tokens as a page says it.
pub(super) struct Asked<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) scopes: &'a [String],
    pub(super) nonce: &'a str,
    /// True if the person has a credential already.
    pub(super) is_connected: bool,
}

/// Returns a page. `body` is HTML.
fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        // A browser names the origin of a form with this one; other origins learn of no link.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let title = escaped(title);
    let body = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n\
         <h1>{title}</h1>\n{body}\n</html>\n"
    );
    (status, headers, body).into_response()
}

/// Returns a page that only says something.
pub(super) fn message(status: StatusCode, title: &str, text: &str) -> Response {
    page(status, title, &format!("<p>{}</p>", escaped(text)))
}

/// Returns a response that gives the browser a cookie as well.
pub(super) fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Returns the page that asks who the person is.
pub(super) fn sign_in(site: &Connecting, link: &Link, known: Option<&Person>) -> Response {
    let Link { person: Person { tenant, principal }, server, .. } = link;
    let mut body = format!(
        "<p>This link connects <b>{}</b> of tenant <b>{}</b> to the server <b>{}</b>. Say first that this is you.</p>\n",
        escaped(principal),
        escaped(tenant),
        escaped(server)
    );
    if let Some(known) = known {
        body.push_str(&format!(
            "<p>You are <b>{}</b> of tenant <b>{}</b> here. The link is for somebody else: whoever sent it would act in your name.</p>\n",
            escaped(&known.principal),
            escaped(&known.tenant)
        ));
    }
    if let Some(issuer) = site.issuer.as_ref().and_then(|client| client.issuer.as_deref()) {
        let label = format!("Log in at {issuer}");
        body.push_str(&form(site, link, "sign-in", "", &label));
    }
    if site.takes_keys {
        let field = "<label>API key <input type=\"password\" name=\"key\" autocomplete=\"off\" required></label> ";
        body.push_str(&form(site, link, "key", field, "Go on"));
    }
    let status = if known.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
    page(status, "Who are you?", &body)
}

/// Returns the page that asks whether the server is to be connected.
pub(super) fn consent(site: &Connecting, link: &Link, url: &Url, asked: &Asked<'_>) -> Response {
    let Link { person: Person { tenant, principal }, server, host, .. } = link;
    let scopes = match asked.scopes {
        [] => "<i>none named</i>".to_owned(),
        scopes => escaped(&scopes.join(", ")),
    };
    let rows = [
        ("You", format!("<b>{}</b> of tenant <b>{}</b>", escaped(principal), escaped(tenant))),
        ("Server", format!("<b>{}</b>, {}", escaped(server), escaped(&shown(url)))),
        ("Asked for by", asked_by(host)),
        (
            "Client",
            format!(
                "the Toolgate gateway at {}, known there as {}",
                escaped(&site.base),
                escaped(asked.client_id)
            ),
        ),
        ("Authorization server", escaped(asked.issuer)),
        ("Scopes", scopes),
    ];
    let rows: Vec<String> =
        rows.iter().map(|(name, html)| format!("<dt>{name}<dd>{html}")).collect();
    let mut body = format!(
        "<p>Whatever calls this gateway as you will call the server with your login there. Go on only if you asked for it.</p>\n<dl>{}</dl>\n",
        rows.join("\n")
    );
    let nonce =
        format!("<input type=\"hidden\" name=\"nonce\" value=\"{}\">", escaped(asked.nonce));
    body.push_str(&form(site, link, "connect", &nonce, "Connect"));
    if asked.is_connected {
        body.push_str(
            "<p>You are connected already; connecting again takes the place of it.</p>\n",
        );
        body.push_str(&form(site, link, "disconnect", "", "Disconnect"));
    }
    body.push_str(&form(site, link, "leave", "", "This is not me"));
    page(StatusCode::OK, &format!("Connect to {server}?"), &body)
}

/// Returns the page that leads to an authorization server. No redirect: browsers hold one of a form to the form's own rules.
pub(super) fn onward(url: &Url) -> Response {
    let to = escaped(url.as_str());
    let host = escaped(&url.origin().ascii_serialization());
    let body = format!(
        "<meta http-equiv=\"refresh\" content=\"0; url={to}\"><p><a href=\"{to}\">Go on to {host}</a></p>"
    );
    page(StatusCode::OK, "On the way", &body)
}

fn form(site: &Connecting, link: &Link, action: &str, fields: &str, label: &str) -> String {
    let path = escaped(&format!("{}{}", site.base, link.path()));
    let label = escaped(label);
    format!(
        "<form method=\"post\" action=\"{path}\"><input type=\"hidden\" name=\"action\" value=\"{action}\">{fields}<button>{label}</button></form>\n"
    )
}

/// Returns the host that asked, whose name only it vouches for.
fn asked_by(host: &str) -> String {
    if host.is_empty() {
        return "a host without a name".to_owned();
    }
    format!("a host that calls itself {}", escaped(host))
}

/// Returns a URL without a query, which could hold anything.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Returns a text as it stands in HTML, in quotes too.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_in_a_page_is_markup_that_came_from_elsewhere() {
        let response = message(StatusCode::OK, "<b>", "</p><script>x('\"&')</script>");
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("text");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        let body = axum::body::to_bytes(response.into_body(), 4_096).await.expect("a body");
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains("&lt;script&gt;x(&#39;&quot;&amp;&#39;)"), "{body}");
        assert!(!body.contains("<script") && !body.contains("<b>"), "{body}");
    }
}
