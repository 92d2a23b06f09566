//! Packs that come with the product, in `server/routing/packs`.

use tracing::warn;

use super::document::Pack;

/// File with the means of their requests' embeddings by the default encoder (`make packs`).
pub(super) const SHIPPED_MEANS: &[u8] = include_bytes!("../../packs/means.safetensors");

/// Names and texts of the pack files.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("airbnb", include_str!("../../packs/airbnb.yaml")),
    ("airflow", include_str!("../../packs/airflow.yaml")),
    ("analytics", include_str!("../../packs/analytics.yaml")),
    ("argocd", include_str!("../../packs/argocd.yaml")),
    ("atlassian", include_str!("../../packs/atlassian.yaml")),
    ("aws-documentation", include_str!("../../packs/aws-documentation.yaml")),
    ("aws-iac", include_str!("../../packs/aws-iac.yaml")),
    ("aws-location", include_str!("../../packs/aws-location.yaml")),
    ("aws-pricing", include_str!("../../packs/aws-pricing.yaml")),
    ("azure", include_str!("../../packs/azure.yaml")),
    ("bedrock-kb", include_str!("../../packs/bedrock-kb.yaml")),
    ("bitbucket", include_str!("../../packs/bitbucket.yaml")),
    ("blender", include_str!("../../packs/blender.yaml")),
    ("brave-search", include_str!("../../packs/brave-search.yaml")),
    ("chroma", include_str!("../../packs/chroma.yaml")),
    ("chrome-devtools", include_str!("../../packs/chrome-devtools.yaml")),
    ("clickhouse", include_str!("../../packs/clickhouse.yaml")),
    ("cloudwatch", include_str!("../../packs/cloudwatch.yaml")),
    ("context7", include_str!("../../packs/context7.yaml")),
    ("datadog", include_str!("../../packs/datadog.yaml")),
    ("discord", include_str!("../../packs/discord.yaml")),
    ("duckduckgo", include_str!("../../packs/duckduckgo.yaml")),
    ("ecs", include_str!("../../packs/ecs.yaml")),
    ("eks", include_str!("../../packs/eks.yaml")),
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
    ("grafana", include_str!("../../packs/grafana.yaml")),
    ("hubspot", include_str!("../../packs/hubspot.yaml")),
    ("ios-simulator", include_str!("../../packs/ios-simulator.yaml")),
    ("kagi", include_str!("../../packs/kagi.yaml")),
    ("kubernetes", include_str!("../../packs/kubernetes.yaml")),
    ("launchdarkly", include_str!("../../packs/launchdarkly.yaml")),
    ("linear", include_str!("../../packs/linear.yaml")),
    ("mapbox", include_str!("../../packs/mapbox.yaml")),
    ("markitdown", include_str!("../../packs/markitdown.yaml")),
    ("memory", include_str!("../../packs/memory.yaml")),
    ("mobile", include_str!("../../packs/mobile.yaml")),
    ("mongodb", include_str!("../../packs/mongodb.yaml")),
    ("motherduck", include_str!("../../packs/motherduck.yaml")),
    ("mysql", include_str!("../../packs/mysql.yaml")),
    ("n8n", include_str!("../../packs/n8n.yaml")),
    ("neo4j-cypher", include_str!("../../packs/neo4j-cypher.yaml")),
    ("notion", include_str!("../../packs/notion.yaml")),
    ("opensearch", include_str!("../../packs/opensearch.yaml")),
    ("pinecone", include_str!("../../packs/pinecone.yaml")),
    ("playwright", include_str!("../../packs/playwright.yaml")),
    ("postgres", include_str!("../../packs/postgres.yaml")),
    ("powerpoint", include_str!("../../packs/powerpoint.yaml")),
    ("prometheus", include_str!("../../packs/prometheus.yaml")),
    ("puppeteer", include_str!("../../packs/puppeteer.yaml")),
    ("qdrant", include_str!("../../packs/qdrant.yaml")),
    ("reddit", include_str!("../../packs/reddit.yaml")),
    ("redshift", include_str!("../../packs/redshift.yaml")),
    ("sequential-thinking", include_str!("../../packs/sequential-thinking.yaml")),
    ("shopify", include_str!("../../packs/shopify.yaml")),
    ("shortcut", include_str!("../../packs/shortcut.yaml")),
    ("slack", include_str!("../../packs/slack.yaml")),
    ("sqlite", include_str!("../../packs/sqlite.yaml")),
    ("supabase", include_str!("../../packs/supabase.yaml")),
    ("tavily", include_str!("../../packs/tavily.yaml")),
    ("terraform", include_str!("../../packs/terraform.yaml")),
    ("time", include_str!("../../packs/time.yaml")),
    ("trello", include_str!("../../packs/trello.yaml")),
    ("vercel", include_str!("../../packs/vercel.yaml")),
    ("wikipedia", include_str!("../../packs/wikipedia.yaml")),
    ("word", include_str!("../../packs/word.yaml")),
    ("youtube", include_str!("../../packs/youtube.yaml")),
    ("youtube-transcript", include_str!("../../packs/youtube-transcript.yaml")),
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
