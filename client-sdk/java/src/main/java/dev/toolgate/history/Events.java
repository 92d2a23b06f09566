package dev.toolgate.history;

import static dev.toolgate.internal.Json.field;
import static dev.toolgate.internal.Json.items;
import static dev.toolgate.internal.Json.text;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import dev.toolgate.internal.Json;
import java.util.ArrayList;
import java.util.List;

/** What one entry of a history says, whichever API it belongs to. */
final class Events {
    private final List<Event> events = new ArrayList<>();

    private Events() {}

    /** The events of one message, Responses item or JSON-RPC message; none for anything else. */
    static List<Event> read(JsonElement entry) {
        Events read = new Events();
        if (entry.isJsonObject()) {
            read.entry(entry);
        }
        return read.events;
    }

    private void entry(JsonElement entry) {
        String kind = text(entry, "type");
        if (responsesItem(kind, entry)) {
            return;
        }
        if (!text(entry, "role").isEmpty()) {
            message(entry);
        } else if (entry.getAsJsonObject().has("method")
                || entry.getAsJsonObject().has("jsonrpc")) {
            jsonRpc(entry);
        } else if (kind.isEmpty() && field(entry, "content").isJsonArray()) {
            mcpResult("", entry);
        }
    }

    private boolean responsesItem(String kind, JsonElement item) {
        switch (kind) {
            case "function_call", "custom_tool_call" -> {
                spoke(true);
                called(text(item, "call_id"), field(item, "name"));
            }
            case "function_call_output", "custom_tool_call_output" -> {
                spoke(false);
                JsonElement output = field(item, "output");
                answered(text(item, "call_id"), Reading.saysError(output), output);
            }
            case "mcp_call" -> hostedMcpCall(item);
            case "tool_search_call", "reasoning" -> spoke(true);
            // These stand among the model's items or among ours; they belong to neither's turn.
            case "tool_search_output", "additional_tools" -> loadedTools(item);
            default -> {
                return false;
            }
        }
        return true;
    }

    private void hostedMcpCall(JsonElement item) {
        spoke(true);
        called(text(item, "id"), field(item, "name"));
        boolean failed =
                !field(item, "error").isJsonNull() || text(item, "status").equals("failed");
        JsonElement output = field(item, "output");
        if (failed || !output.isJsonNull()) {
            answered(text(item, "id"), failed, output);
        }
    }

    private void loadedTools(JsonElement item) {
        for (JsonElement tool : items(field(item, "tools"))) {
            if (text(tool, "type").equals("namespace")) {
                items(field(tool, "tools")).forEach(inner -> found(field(inner, "name")));
            } else {
                found(field(tool, "name"));
            }
        }
    }

    private void message(JsonElement entry) {
        String role = text(entry, "role");
        JsonElement content = field(entry, "content");
        spoke(role.equals("assistant") || role.equals("model"));
        Reading.blocks(content).forEach(this::block);
        for (JsonElement call : items(field(entry, "tool_calls"))) {
            JsonElement function = Reading.first(call, "function", "custom");
            called(text(call, "id"), field(function, "name"));
        }
        if (role.equals("tool")) {
            boolean failed = text(entry, "status").equals("error") || Reading.saysError(content);
            answered(text(entry, "tool_call_id"), failed, content);
        }
    }

    private void block(JsonElement block) {
        switch (text(block, "type")) {
            case "tool_use", "mcp_tool_use" -> called(text(block, "id"), field(block, "name"));
            case "tool_result", "mcp_tool_result" -> toolResult(block);
            case "tool_search_tool_result" ->
                    items(field(field(block, "content"), "tool_references"))
                            .forEach(reference -> found(field(reference, "tool_name")));
            default -> {}
        }
    }

    private void toolResult(JsonElement block) {
        JsonElement content = field(block, "content");
        for (JsonElement item : items(content)) {
            if (text(item, "type").equals("tool_reference")) {
                found(field(item, "tool_name"));
            }
        }
        JsonElement flag = Reading.first(block, "is_error", "isError");
        boolean failed = flag.isJsonNull() ? Reading.saysError(content) : !Json.is(flag, false);
        answered(text(Reading.first(block, "tool_use_id", "toolUseId")), failed, content);
    }

    private void jsonRpc(JsonElement entry) {
        JsonElement id = field(entry, "id");
        String key = Json.isText(id) || Json.isWhole(id) ? "json-rpc:" + id.getAsString() : "";
        if (text(entry, "method").equals("tools/call")) {
            spoke(true);
            called(key, field(field(entry, "params"), "name"));
        } else if (!field(entry, "error").isJsonNull()) {
            spoke(false);
            answered(key, true, JsonNull.INSTANCE);
        } else if (entry.getAsJsonObject().has("result")) {
            mcpResult(key, field(entry, "result"));
        }
    }

    private void mcpResult(String key, JsonElement result) {
        spoke(false);
        JsonElement flag = Reading.first(result, "isError", "is_error");
        answered(key, !flag.isJsonNull() && !Json.is(flag, false), field(result, "content"));
    }

    private void spoke(boolean model) {
        events.add(new Event.Spoke(model));
    }

    private void called(String key, JsonElement tool) {
        String name = Reading.name(tool);
        if (!name.isEmpty()) {
            events.add(new Event.Called(key, name));
        }
    }

    private void found(JsonElement tool) {
        String name = Reading.name(tool);
        if (!name.isEmpty()) {
            events.add(new Event.Found(name));
        }
    }

    private void answered(String key, boolean failed, JsonElement content) {
        events.add(new Event.Answered(key, failed, content));
    }
}
