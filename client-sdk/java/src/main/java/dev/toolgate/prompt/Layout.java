package dev.toolgate.prompt;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import java.util.Map;

/**
 * Where phase 1 and phase 2 stand in the prompt. Phase 1, one line for each tool, ends the stable
 * prefix, at a cache breakpoint: its bytes change with the catalog only. Phase 2, the definitions
 * of the active set, stands directly before the user's message. What stays in the history is never
 * rewritten.
 *
 * <p>Summaries are given by model-facing name, in the pool's order, as {@link
 * dev.toolgate.SummaryPool} keeps them.
 */
public final class Layout {
    private static final String PHASE_1 =
            "Tools that can be made available when they are needed, one on each line:";
    private static final String PHASE_2 = "Tools that are available for the following message:";

    private Layout() {}

    /**
     * The summary pool as text; the same summaries in the same order give the same bytes.
     *
     * @param summaries the summaries by name, in their order
     * @return a heading, and a line for each
     */
    public static String phase1(Map<String, String> summaries) {
        StringBuilder text = new StringBuilder(PHASE_1);
        summaries.forEach(
                (name, summary) ->
                        text.append('\n').append(name).append(": ").append(Texts.oneLine(summary)));
        return text.toString();
    }

    /**
     * Definitions as text, one JSON object on each line; a signature where no schema was sent.
     *
     * @param tools those that are newly promoted, as the history has the others
     * @return a heading, and a line for each
     */
    public static String phase2(Iterable<ActiveTool> tools) {
        StringBuilder text = new StringBuilder(PHASE_2);
        tools.forEach(tool -> text.append('\n').append(definition(tool)));
        return text.toString();
    }

    /**
     * The {@code system} of Anthropic's Messages API: your own text, if any, then phase 1 with a
     * cache breakpoint.
     *
     * @param system your own text; empty for none
     * @param summaries the summaries by name, in their order
     * @return the blocks
     */
    public static JsonArray anthropicSystem(String system, Map<String, String> summaries) {
        JsonObject pool = textBlock(phase1(summaries));
        JsonObject breakpoint = new JsonObject();
        breakpoint.addProperty("type", "ephemeral");
        pool.add("cache_control", breakpoint);
        JsonArray blocks = new JsonArray();
        if (!system.isEmpty()) {
            blocks.add(textBlock(system));
        }
        blocks.add(pool);
        return blocks;
    }

    /**
     * The system message of OpenAI's APIs: your own text, if any, then phase 1. OpenAI caches the
     * longest prefix that it has seen and takes no breakpoints.
     *
     * @param system your own text; empty for none
     * @param summaries the summaries by name, in their order
     * @return the message
     */
    public static JsonObject openAiSystem(String system, Map<String, String> summaries) {
        String pool = phase1(summaries);
        return Json.object(
                "role", "system", "content", system.isEmpty() ? pool : system + "\n\n" + pool);
    }

    /**
     * The user's message with phase 2 directly before it, for Anthropic and Chat Completions. Keep
     * it in the history as it is.
     *
     * @param content a text, as a JSON string, or the provider's blocks
     * @param tools those that are newly promoted; with none it is the message alone
     * @return the message
     */
    public static JsonObject userMessage(JsonElement content, Iterable<ActiveTool> tools) {
        if (!tools.iterator().hasNext()) {
            return message("user", content);
        }
        JsonArray blocks = new JsonArray();
        blocks.add(textBlock(phase2(tools)));
        if (content.isJsonArray()) {
            blocks.addAll(content.getAsJsonArray());
        } else {
            blocks.add(Json.isText(content) ? textBlock(content.getAsString()) : content);
        }
        return message("user", blocks);
    }

    /**
     * The items of a turn for OpenAI's Responses API: phase 2, if there is any, then the user's
     * message.
     *
     * @param content a text, as a JSON string, or the provider's parts
     * @param tools those that are newly promoted
     * @return the items
     */
    public static JsonArray responsesInput(JsonElement content, Iterable<ActiveTool> tools) {
        JsonArray items = new JsonArray();
        if (tools.iterator().hasNext()) {
            items.add(message("developer", new JsonPrimitive(phase2(tools))));
        }
        items.add(message("user", content));
        return items;
    }

    private static JsonObject message(String role, JsonElement content) {
        JsonObject message = new JsonObject();
        message.addProperty("role", role);
        message.add("content", content);
        return message;
    }

    private static JsonObject textBlock(String text) {
        return Json.object("type", "text", "text", text);
    }

    private static String definition(ActiveTool tool) {
        if (tool.getInputSchemaJson().isEmpty()) {
            return tool.getSignature().isEmpty() ? tool.getModelName() : tool.getSignature();
        }
        return "{\"name\":"
                + Json.quoted(tool.getModelName())
                + ",\"description\":"
                + Json.quoted(tool.getDescription())
                + ",\"input_schema\":"
                + minified(tool.getInputSchemaJson())
                + "}";
    }

    /** JSON without white space between its tokens; everything else as it was. */
    private static String minified(String json) {
        StringBuilder text = new StringBuilder(json.length());
        boolean isInText = false;
        boolean isEscaped = false;
        for (int at = 0; at < json.length(); at++) {
            char character = json.charAt(at);
            if (isInText) {
                isInText = isEscaped || character != '"';
                isEscaped = !isEscaped && character == '\\';
            } else if (" \t\r\n".indexOf(character) >= 0) {
                continue;
            } else {
                isInText = character == '"';
            }
            text.append(character);
        }
        return text.toString();
    }
}
