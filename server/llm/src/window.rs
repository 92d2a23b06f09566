//! Context windows of models. What is not known for sure is not here: a wrong window has warnings come too early or too late.
//!
//! They are those of Anthropic's "Models overview", OpenAI's "Models" and Google's "Gemini models" as two tables had them in
//! November 2026: the model profiles of langchain-anthropic 1.7.6 and langchain-openai 1.7.2, and genai-prices 0.2.3. Where
//! one has a rounded window, as genai-prices has most of Gemini's, it is the exact one here. Of GPT-5 to GPT-5.2,
//! langchain-openai has what is left beside the longest answer.

/// Context windows in tokens, by patterns of the names that the providers give their models, with `*` for the end of a
/// name. The first pattern counts.
const WINDOWS: [(u32, &[&str]); 7] = [
    // Anthropic: from Opus and Sonnet 4.6 on, and the small ones from Haiku 5.5 on.
    (
        1_000_000,
        &[
            "claude-opus-4-6*",
            "claude-opus-4-7*",
            "claude-opus-4-8*",
            "claude-opus-5*",
            "claude-sonnet-4-6*",
            "claude-sonnet-5*",
            "claude-haiku-5-5*",
            "claude-fable-5*",
        ],
    ),
    (
        200_000,
        &[
            "claude-3-*",
            "claude-opus-4-0*",
            "claude-opus-4-1*",
            "claude-opus-4-2025*",
            "claude-opus-4-5*",
            "claude-sonnet-4-0*",
            "claude-sonnet-4-2025*",
            "claude-sonnet-4-5*",
            "claude-haiku-4-5*",
            // OpenAI.
            "o1",
            "o1-20*",
            "o1-pro*",
            "o3",
            "o3-20*",
            "o3-mini*",
            "o3-pro*",
            "o4-mini*",
        ],
    ),
    (1_047_576, &["gpt-4.1*"]),
    (
        128_000,
        &[
            "gpt-4-turbo*",
            "gpt-4o",
            "gpt-4o-20*",
            "gpt-4o-mini",
            "gpt-4o-mini-20*",
            "chatgpt-4o-latest",
        ],
    ),
    (
        400_000,
        &[
            "gpt-5",
            "gpt-5-20*",
            "gpt-5-mini*",
            "gpt-5-nano*",
            "gpt-5-pro*",
            "gpt-5.1",
            "gpt-5.1-20*",
            "gpt-5.2",
            "gpt-5.2-20*",
            "gpt-5.2-pro*",
            "gpt-5.3-codex",
            "gpt-5.4-mini*",
            "gpt-5.4-nano*",
        ],
    ),
    (
        1_050_000,
        &[
            "gpt-5.4",
            "gpt-5.4-20*",
            "gpt-5.4-pro*",
            "gpt-5.5",
            "gpt-5.5-20*",
            "gpt-5.5-pro*",
            "gpt-5.6-luna*",
            "gpt-5.6-sol*",
            "gpt-5.6-terra*",
            "gpt-6-astra*",
            "gpt-6-luna*",
            "gpt-6-sol*",
            "gpt-6.1-sol*",
        ],
    ),
    (
        1_048_576,
        &[
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
            "gemini-3-pro-preview",
            "gemini-3-flash-preview",
            "gemini-3.1-pro-preview",
            "gemini-3.1-flash-lite",
            "gemini-3.5-flash",
            "gemini-3.5-flash-lite",
            "gemini-3.6-flash",
            "gemini-3.7-flash",
        ],
    ),
];

/// Returns the context window of a model in tokens; `None` if it is not known. A path before the name, such as
/// `anthropic/` or `models/`, does not count.
#[must_use]
pub fn context_window(model: &str) -> Option<u32> {
    let model = model.rsplit('/').next().unwrap_or_default().to_lowercase();
    let is_like = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(start) => model.starts_with(start),
        None => model == *pattern,
    };
    let known = WINDOWS.iter().find(|(_, patterns)| patterns.iter().any(is_like));
    known.map(|(window, _)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_go_by_the_names_of_models() {
        for (model, window) in [
            ("claude-opus-4-8", 1_000_000),
            ("anthropic/claude-sonnet-5-5", 1_000_000),
            ("claude-opus-4-5-20251101", 200_000),
            ("claude-opus-4-20250514", 200_000),
            ("claude-3-7-sonnet-latest", 200_000),
            ("Claude-Haiku-4-5", 200_000),
            ("claude-haiku-5-5", 1_000_000),
            ("gpt-4o-2024-08-06", 128_000),
            ("gpt-4.1-nano", 1_047_576),
            ("gpt-5", 400_000),
            ("gpt-5-mini-2025-08-07", 400_000),
            ("gpt-5.4-mini", 400_000),
            ("gpt-5.4", 1_050_000),
            ("gpt-5.5-2026-04-23", 1_050_000),
            ("o3", 200_000),
            ("o4-mini-2025-04-16", 200_000),
            ("models/gemini-2.5-pro", 1_048_576),
            ("gemini-3-pro-preview", 1_048_576),
        ] {
            assert_eq!(context_window(model), Some(window), "{model}");
        }
    }

    #[test]
    fn what_is_not_known_has_no_window() {
        for model in [
            "",
            "claude",
            "claude-opus-6",
            "claude-instant-1.2",
            "gpt-4o-transcribe",
            "gpt-5-chat-latest",
            "gpt-9",
            "o1-preview",
            "gemini-2.5-flash-preview-tts",
            "gemini-3-pro-image-preview",
            "my-claude-opus-4-8",
            "llama",
        ] {
            assert_eq!(context_window(model), None, "{model}");
        }
    }
}
