//! Packs that come with the product, in `server/routing/packs`.

use tracing::warn;

use super::document::Pack;

/// File with the means of their requests' embeddings by the default encoder (`make packs`).
pub(super) const SHIPPED_MEANS: &[u8] = include_bytes!("../../packs/means.safetensors");

/// Names and texts of the pack files.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("airbnb", include_str!("../../packs/airbnb.yaml")),
    ("argocd", include_str!("../../packs/argocd.yaml")),
    ("atlassian", include_str!("../../packs/atlassian.yaml")),
    ("azure", include_str!("../../packs/azure.yaml")),
    ("bitbucket", include_str!("../../packs/bitbucket.yaml")),
    ("brave-search", include_str!("../../packs/brave-search.yaml")),
    ("chrome-devtools", include_str!("../../packs/chrome-devtools.yaml")),
    ("context7", include_str!("../../packs/context7.yaml")),
    ("datadog", include_str!("../../packs/datadog.yaml")),
    ("discord", include_str!("../../packs/discord.yaml")),
    ("elasticsearch", include_str!("../../packs/elasticsearch.yaml")),
    ("everything", include_str!("../../packs/everything.yaml")),
    ("exa", include_str!("../../packs/exa.yaml")),
    ("fetch", include_str!("../../packs/fetch.yaml")),
    ("figma", include_str!("../../packs/figma.yaml")),
    ("filesystem", include_str!("../../packs/filesystem.yaml")),
    ("firecrawl", include_str!("../../packs/firecrawl.yaml")),
    ("git", include_str!("../../packs/git.yaml")),
    ("github", include_str!("../../packs/github.yaml")),
    ("gitlab", include_str!("../../packs/gitlab.yaml")),
    ("google-calendar", include_str!("../../packs/google-calendar.yaml")),
    ("google-maps", include_str!("../../packs/google-maps.yaml")),
    ("hubspot", include_str!("../../packs/hubspot.yaml")),
    ("ios-simulator", include_str!("../../packs/ios-simulator.yaml")),
    ("kubernetes", include_str!("../../packs/kubernetes.yaml")),
    ("launchdarkly", include_str!("../../packs/launchdarkly.yaml")),
    ("linear", include_str!("../../packs/linear.yaml")),
    ("mapbox", include_str!("../../packs/mapbox.yaml")),
    ("memory", include_str!("../../packs/memory.yaml")),
    ("mobile", include_str!("../../packs/mobile.yaml")),
    ("mongodb", include_str!("../../packs/mongodb.yaml")),
    ("n8n", include_str!("../../packs/n8n.yaml")),
    ("notion", include_str!("../../packs/notion.yaml")),
    ("pinecone", include_str!("../../packs/pinecone.yaml")),
    ("playwright", include_str!("../../packs/playwright.yaml")),
    ("postgres", include_str!("../../packs/postgres.yaml")),
    ("prometheus", include_str!("../../packs/prometheus.yaml")),
    ("puppeteer", include_str!("../../packs/puppeteer.yaml")),
    ("reddit", include_str!("../../packs/reddit.yaml")),
    ("sequential-thinking", include_str!("../../packs/sequential-thinking.yaml")),
    ("shopify", include_str!("../../packs/shopify.yaml")),
    ("shortcut", include_str!("../../packs/shortcut.yaml")),
    ("slack", include_str!("../../packs/slack.yaml")),
    ("supabase", include_str!("../../packs/supabase.yaml")),
    ("tavily", include_str!("../../packs/tavily.yaml")),
    ("terraform", include_str!("../../packs/terraform.yaml")),
    ("time", include_str!("../../packs/time.yaml")),
    ("trello", include_str!("../../packs/trello.yaml")),
    ("vercel", include_str!("../../packs/vercel.yaml")),
    ("youtube", include_str!("../../packs/youtube.yaml")),
];

/// Parses the shipped packs. One that can't be parsed is logged and left out, which never happens in a release.
pub(super) fn packs() -> Vec<Pack> {
    let parsed = SHIPPED.iter().filter_map(|(name, text)| match Pack::parse(text) {
        Ok(pack) => Some(pack),
        Err(mistakes) => {
            let problem = mistakes.first().map(ToString::to_string);
            warn!(pack = name, problem, "a shipped pack can't be read");
            None
        }
    });
    parsed.collect()
}
