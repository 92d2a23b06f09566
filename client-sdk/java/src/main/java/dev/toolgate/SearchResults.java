package dev.toolgate;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import dev.toolgate.v1.SearchToolsResponse;

/** What SearchTools found, as the content of a tool result. */
public final class SearchResults {
    private SearchResults() {}

    /**
     * The content for Anthropic's Messages API, which expands references to the definitions that
     * were sent with {@code defer_loading}.
     *
     * @param found what was found
     * @return blocks of {@code tool_reference}
     */
    public static JsonArray toToolReferences(SearchToolsResponse found) {
        JsonArray references = new JsonArray();
        for (ActiveTool tool : found.getToolsList()) {
            references.add(Json.object("type", "tool_reference", "tool_name", tool.getModelName()));
        }
        return references;
    }

    /**
     * A JSON object for a model whose provider expands no references: {@code tools} holds what the
     * asked detail gave of each; {@code deferred_tools}, {@code message} and {@code
     * pending_servers} are there when they say something.
     *
     * @param found what was found
     * @return the object
     * @throws com.google.gson.JsonParseException when a schema is not JSON: not one that the
     *     service sent
     */
    public static JsonObject toToolResult(SearchToolsResponse found) {
        JsonArray tools = new JsonArray();
        found.getToolsList().forEach(tool -> tools.add(shown(tool)));
        JsonObject result = new JsonObject();
        result.add("tools", tools);
        if (found.getDeferredTools() != 0) {
            result.addProperty("deferred_tools", Integer.toUnsignedLong(found.getDeferredTools()));
        }
        if (!found.getMessage().isEmpty()) {
            result.addProperty("message", found.getMessage());
        }
        if (found.getPendingServersCount() > 0) {
            result.add("pending_servers", Json.array(found.getPendingServersList()));
        }
        return result;
    }

    private static JsonObject shown(ActiveTool tool) {
        JsonObject shown = new JsonObject();
        shown.addProperty("name", tool.getModelName());
        if (!tool.getInputSchemaJson().isEmpty()) {
            shown.addProperty("description", tool.getDescription());
            shown.add("input_schema", Json.parse(tool.getInputSchemaJson()));
        } else if (!tool.getSignature().isEmpty()) {
            shown.addProperty("signature", tool.getSignature());
        }
        return shown;
    }
}
