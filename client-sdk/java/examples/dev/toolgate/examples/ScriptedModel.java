package dev.toolgate.examples;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;

/**
 * Stands in for a model: it makes these calls one after another, whatever it is told, and keeps
 * what it was sent.
 */
public final class ScriptedModel implements Conversation.Model {
    private final List<JsonObject> requests = new ArrayList<>();
    private final List<String> script =
            List.of(
                    // The text is missing: refused.
                    call("c1", "mcp__slack__slack_post_message", "{\"channel_id\": \"C1\"}"),
                    call(
                            "c2",
                            "mcp__slack__slack_post_message",
                            "{\"channel_id\": \"C1\", \"text\": \"10 min late\"}"),
                    call(
                            "c3",
                            "toolgate_search_tools",
                            "{\"query\": \"select:mcp__slack__slack_add_reaction\"}"),
                    call(
                            "c4",
                            "mcp__slack__slack_add_reaction",
                            "{\"channel_id\": \"C1\", \"timestamp\": \"1.2\", \"reaction\": \"wave\"}"),
                    "{\"type\": \"text\", \"text\": \"They know.\"}",
                    "{\"type\": \"text\", \"text\": \"You're welcome.\"}");

    @Override
    public JsonObject create(JsonObject request) {
        requests.add(request.deepCopy());
        String block = script.get(requests.size() - 1);
        return JsonParser.parseString("{\"role\": \"assistant\", \"content\": [" + block + "]}")
                .getAsJsonObject();
    }

    /** What it was sent. */
    public List<JsonObject> requests() {
        return List.copyOf(requests);
    }

    /** The names of the tools that a request defined. */
    public List<String> defined(int request) {
        List<String> names = new ArrayList<>();
        for (JsonElement tool : requests.get(request).getAsJsonArray("tools")) {
            names.add(tool.getAsJsonObject().get("name").getAsString());
        }
        return names;
    }

    private static String call(String id, String name, String input) {
        return "{\"type\": \"tool_use\", \"id\": \""
                + id
                + "\", \"name\": \""
                + name
                + "\", \"input\": "
                + input
                + "}";
    }
}
