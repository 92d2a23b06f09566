package dev.toolgate;

import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import dev.toolgate.v1.SearchToolsResponse;
import java.util.List;
import java.util.Optional;

/**
 * The answer to a model's call of {@link SearchTool}.
 *
 * @param text the content of the tool result: a JSON object
 * @param failed true when the call was mistaken; the text says how
 * @param handle the handle to carry on with: what was found may be called with it, and the next
 *     route keeps it
 * @param found what was found; empty when the call was mistaken
 */
public record SearchAnswer(
        String text, boolean failed, String handle, Optional<SearchToolsResponse> found) {
    /**
     * The answer with what was found. The service reads it again in the conversation.
     *
     * @param found what SearchTools answered
     * @return the answer
     */
    public static SearchAnswer ofFound(SearchToolsResponse found) {
        String text = Json.write(SearchResults.toToolResult(found));
        return new SearchAnswer(text, false, found.getActiveSetHandle(), Optional.of(found));
    }

    static SearchAnswer mistaken(String message, String handle) {
        String text = Json.write(Json.object("error", "arguments_invalid", "message", message));
        return new SearchAnswer(text, true, handle, Optional.empty());
    }

    /**
     * The tools found.
     *
     * @return the tools; none when the call was mistaken
     */
    public List<ActiveTool> tools() {
        return found.map(SearchToolsResponse::getToolsList).orElse(List.of());
    }
}
