package dev.toolgate.render;

import dev.toolgate.v1.ActiveTool;
import java.util.List;

/**
 * How to render for Anthropic.
 *
 * @param deferred tools that the model sees once a search or a {@code tool_reference} has loaded
 *     them
 * @param model the model that will see them; empty when it is not known, which can defer
 * @param search which search to send with deferred tools
 * @param unsupported parts of the names of models that can't defer
 * @param cacheBreakpoint whether the last loaded tool ends a cached prefix; deferred tools are
 *     outside of it
 */
public record AnthropicOptions(
        List<ActiveTool> deferred,
        String model,
        Search search,
        List<String> unsupported,
        boolean cacheBreakpoint) {
    /** No deferred tools, an unknown model, the BM25 search, no cache breakpoint. */
    public static final AnthropicOptions DEFAULT =
            new AnthropicOptions(List.of(), "", Search.BM25, Render.UNSUPPORTED_MODELS, false);

    /** Anthropic's own searches. */
    public enum Search {
        /** By words. */
        BM25,
        /** By pattern. */
        REGEX,
        /** None: the caller has one of its own. */
        NONE
    }

    /**
     * These options with deferred tools.
     *
     * @param deferred the tools
     * @return the options
     */
    public AnthropicOptions withDeferred(List<ActiveTool> deferred) {
        return new AnthropicOptions(
                List.copyOf(deferred), model, search, unsupported, cacheBreakpoint);
    }

    /**
     * These options for a model.
     *
     * @param model its name
     * @return the options
     */
    public AnthropicOptions withModel(String model) {
        return new AnthropicOptions(deferred, model, search, unsupported, cacheBreakpoint);
    }

    /**
     * These options with another search.
     *
     * @param search the search
     * @return the options
     */
    public AnthropicOptions withSearch(Search search) {
        return new AnthropicOptions(deferred, model, search, unsupported, cacheBreakpoint);
    }

    /**
     * These options with another list of models that can't defer.
     *
     * @param unsupported parts of their names
     * @return the options
     */
    public AnthropicOptions withUnsupported(List<String> unsupported) {
        return new AnthropicOptions(
                deferred, model, search, List.copyOf(unsupported), cacheBreakpoint);
    }

    /**
     * These options with or without a cache breakpoint.
     *
     * @param cacheBreakpoint whether there is one
     * @return the options
     */
    public AnthropicOptions withCacheBreakpoint(boolean cacheBreakpoint) {
        return new AnthropicOptions(deferred, model, search, unsupported, cacheBreakpoint);
    }
}
