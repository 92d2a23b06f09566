//! Additional MCP servers for catalogs larger than the paper's testbed. Each has 20 tools of the testbed's mean size.

use super::domains::Domain;
use super::verbs::{CREATE, DELETE, GET, SEARCH, UPDATE, Verb};

/// Mean number of tokens per tool in the testbed: 48,600 over 120 tools.
const TOKENS: u32 = 405;

const VERBS: &[&Verb] = &[&SEARCH, &GET, &CREATE, &UPDATE, &DELETE];

const fn of(
    server: &'static str,
    of: &'static str,
    places: &'static [&'static str],
    objects: &'static [&'static str],
) -> Domain {
    Domain { server, title: server, tokens: TOKENS, of, places, objects, verbs: VERBS }
}

/// Additional servers, in the order in which they are added.
pub(crate) const WIDER: [Domain; 42] = [
    of(
        "calendar",
        "of a team calendar",
        &["the team calendar"],
        &["event", "meeting room", "reminder", "invitation"],
    ),
    of("mail", "of a mailbox", &["my mailbox"], &["email", "mail folder", "mail label", "draft"]),
    of("crm", "of a sales CRM", &["the CRM"], &["deal", "lead", "contact", "sales pipeline"]),
    of(
        "payments",
        "of a payment provider",
        &["the payments account"],
        &["payment", "refund", "payout", "subscription"],
    ),
    of(
        "cloud",
        "of a cloud account",
        &["the production account"],
        &["virtual machine", "disk", "load balancer", "firewall rule"],
    ),
    of(
        "cluster",
        "of a container cluster",
        &["the staging cluster"],
        &["pod", "deployment", "service endpoint", "secret"],
    ),
    of(
        "storage",
        "of an object store",
        &["the backup bucket"],
        &["bucket", "stored object", "lifecycle rule", "access key"],
    ),
    of(
        "monitoring",
        "of a monitoring system",
        &["our monitoring"],
        &["alert", "dashboard", "metric", "silence"],
    ),
    of(
        "logs",
        "of a log archive",
        &["the log archive"],
        &["log stream", "saved search", "log index", "retention rule"],
    ),
    of(
        "wiki",
        "of a company wiki",
        &["the wiki"],
        &["wiki page", "wiki space", "attachment", "inline comment"],
    ),
    of(
        "docs",
        "of an online office",
        &["the shared drive"],
        &["document", "spreadsheet", "slide deck", "folder"],
    ),
    of(
        "design",
        "of a design tool",
        &["the design workspace"],
        &["mockup", "design component", "colour style", "prototype"],
    ),
    of(
        "analytics",
        "of a web analytics account",
        &["the analytics account"],
        &["report", "audience", "conversion goal", "traffic source"],
    ),
    of(
        "ads",
        "of an advertising account",
        &["the ads account"],
        &["campaign", "ad group", "keyword", "budget"],
    ),
    of(
        "hr",
        "of a personnel system",
        &["the personnel system"],
        &["employee", "absence", "job opening", "applicant"],
    ),
    of(
        "payroll",
        "of a payroll system",
        &["this month's payroll"],
        &["salary slip", "bonus", "tax form", "expense claim"],
    ),
    of(
        "support",
        "of a help desk",
        &["the help desk"],
        &["support case", "macro", "knowledge article", "satisfaction survey"],
    ),
    of(
        "shop",
        "of an online shop",
        &["the web shop"],
        &["shopping cart", "discount code", "shipping label", "return"],
    ),
    of(
        "inventory",
        "of a warehouse",
        &["the Hamburg warehouse"],
        &["stock item", "supplier", "purchase order", "storage bin"],
    ),
    of(
        "travel",
        "of a travel agency",
        &["the travel account"],
        &["flight", "hotel booking", "rental car", "itinerary"],
    ),
    of(
        "maps",
        "of a map service",
        &["the map service"],
        &["route", "place", "travel zone", "map layer"],
    ),
    of(
        "weather",
        "of a weather service",
        &["the Berlin office"],
        &["forecast", "weather warning", "weather station", "tide table"],
    ),
    of(
        "music",
        "of a music library",
        &["my music library"],
        &["song", "playlist", "album", "podcast"],
    ),
    of(
        "video",
        "of a video platform",
        &["our video channel"],
        &["video", "caption track", "live stream", "viewer comment"],
    ),
    of(
        "news",
        "of a news archive",
        &["the press archive"],
        &["article", "headline", "newsletter", "press release"],
    ),
    of(
        "translation",
        "of a translation project",
        &["the German translation"],
        &["translated string", "glossary entry", "translation memory", "locale"],
    ),
    of(
        "legal",
        "of a contract archive",
        &["the contract archive"],
        &["contract", "clause", "signature request", "legal matter"],
    ),
    of(
        "accounting",
        "of a ledger",
        &["the general ledger"],
        &["journal entry", "ledger account", "bank statement", "fiscal period"],
    ),
    of(
        "banking",
        "of a bank account",
        &["the business account"],
        &["bank transfer", "standing order", "direct debit", "beneficiary"],
    ),
    of(
        "identity",
        "of an identity provider",
        &["the identity provider"],
        &["user account", "user group", "login session", "access policy"],
    ),
    of(
        "passwords",
        "of a password vault",
        &["the team vault"],
        &["password", "vault", "sharing link", "recovery code"],
    ),
    of(
        "security",
        "of a vulnerability scanner",
        &["the last scan"],
        &["vulnerability", "scan", "exception", "asset"],
    ),
    of(
        "builds",
        "of a build server",
        &["the build server"],
        &["build", "build agent", "artifact", "build cache"],
    ),
    of(
        "packages",
        "of a package registry",
        &["the package registry"],
        &["package", "package version", "download token", "licence note"],
    ),
    of(
        "flags",
        "of a feature-flag service",
        &["the flag service"],
        &["feature flag", "user segment", "experiment", "rollout"],
    ),
    of(
        "queues",
        "of a message broker",
        &["the order broker"],
        &["queue", "topic", "consumer group", "dead letter"],
    ),
    of(
        "models",
        "of a machine-learning platform",
        &["the model platform"],
        &["training run", "model version", "dataset", "prediction endpoint"],
    ),
    of(
        "notebooks",
        "of a notebook server",
        &["the notebook server"],
        &["notebook", "kernel", "notebook cell", "environment"],
    ),
    of(
        "surveys",
        "of a survey tool",
        &["the spring survey"],
        &["survey", "question", "respondent", "answer sheet"],
    ),
    of(
        "courses",
        "of a learning platform",
        &["the onboarding course"],
        &["course", "lesson", "quiz", "certificate"],
    ),
    of(
        "devices",
        "of a device fleet",
        &["the factory's devices"],
        &["device", "firmware image", "sensor", "telemetry channel"],
    ),
    of(
        "social",
        "of a social network",
        &["our company profile"],
        &["post", "follower", "direct message", "hashtag"],
    ),
];
