package dev.toolgate.history;

import static dev.toolgate.internal.Json.field;
import static dev.toolgate.internal.Json.items;
import static dev.toolgate.internal.Json.text;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.history.Removed.Reason;
import dev.toolgate.internal.Json;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * Takes references out of one history. A function that changes a value gives null for one that
 * goes.
 */
final class Stripper {
    private static final String NOTHING_LEFT =
            "The tools that were found here are no longer available.";
    private static final Set<String> SEARCH_TOOLS =
            Set.of("tool_search_tool_regex", "tool_search_tool_bm25");

    private final List<Removed> removed = new ArrayList<>();
    private final Set<String> available;
    private final boolean references;
    private int message;

    /** An entry that stays, and its place in the history that was given. */
    private record Kept(int index, JsonElement entry) {}

    Stripper(Set<String> available, boolean references) {
        this.available = available;
        this.references = references;
    }

    Stripped strip(Iterable<? extends JsonElement> messages) {
        List<Kept> kept = new ArrayList<>();
        int index = 0;
        for (JsonElement entry : messages) {
            message = index;
            JsonElement left = Snapshots.isSnapshot(entry) ? null : entry(entry);
            if (left != null) {
                kept.add(new Kept(index, left));
            }
            index++;
        }
        JsonArray left = withoutLoneReasoning(kept);
        removed.sort(Comparator.comparingInt(Removed::message));
        return new Stripped(left, List.copyOf(removed));
    }

    /** What is left of an entry. */
    private JsonElement entry(JsonElement entry) {
        return switch (text(entry, "type")) {
            case "tool_search_call" ->
                    references ? withContent(entry) : unsupported("tool_search_call", "");
            case "tool_search_output" -> loadedTools("tool_search_output", entry);
            case "additional_tools" -> additionalTools(entry);
            default -> withContent(entry);
        };
    }

    private JsonElement additionalTools(JsonElement entry) {
        int before = removed.size();
        JsonElement left = loadedTools("additional_tools", entry);
        boolean isEmptied =
                left != null && before < removed.size() && items(field(left, "tools")).isEmpty();
        return isEmptied ? null : left;
    }

    /** OpenAI refuses a reasoning item without the item that it led to. */
    private JsonArray withoutLoneReasoning(List<Kept> kept) {
        Set<Integer> gone = new HashSet<>();
        removed.forEach(taken -> gone.add(taken.message()));
        kept.forEach(left -> gone.remove(left.index()));
        JsonArray messages = new JsonArray();
        for (int place = 0; place < kept.size(); place++) {
            Kept left = kept.get(place);
            boolean isLed = place + 1 < kept.size() && isLedTo(kept.get(place + 1).entry());
            if (gone.contains(left.index() + 1)
                    && text(left.entry(), "type").equals("reasoning")
                    && !isLed) {
                message = left.index();
                unsupported("reasoning", "");
            } else {
                messages.add(left.entry());
            }
        }
        return messages;
    }

    /** Whether an item of the Responses API is one that reasoning leads to. */
    private static boolean isLedTo(JsonElement entry) {
        return text(entry, "type").endsWith("_call") || text(entry, "role").equals("assistant");
    }

    private JsonElement loadedTools(String kind, JsonElement entry) {
        if (!references) {
            return unsupported(kind, "");
        }
        int before = removed.size();
        JsonArray tools = keep(field(entry, "tools"), this::loadedTool);
        return changedSince(before, entry, "tools", tools);
    }

    private JsonElement loadedTool(JsonElement tool) {
        return switch (text(tool, "type")) {
            case "namespace" -> {
                JsonArray inner = keep(field(tool, "tools"), this::loadedTool);
                yield inner.isEmpty() ? null : with(tool, "tools", inner);
            }
            case "function", "custom" -> has("tool", field(tool, "name")) ? tool : null;
            default -> tool;
        };
    }

    private JsonElement withContent(JsonElement entry) {
        int before = removed.size();
        JsonArray kept = orNothingLeft(keep(field(entry, "content"), this::block));
        return changedSince(before, entry, "content", kept);
    }

    private JsonElement block(JsonElement block) {
        String called = text(block, "name");
        return switch (text(block, "type")) {
            case "tool_result", "mcp_tool_result" -> {
                int before = removed.size();
                JsonArray kept = orNothingLeft(keep(field(block, "content"), this::reference));
                yield changedSince(before, block, "content", kept);
            }
            case "tool_search_tool_result" -> searchResult(block);
            case "server_tool_use" ->
                    references || !SEARCH_TOOLS.contains(called)
                            ? block
                            : unsupported("server_tool_use", called);
            case "tool_use" ->
                    references || !block.getAsJsonObject().has("caller")
                            ? block
                            : withoutCaller(block);
            default -> block;
        };
    }

    private JsonElement withoutCaller(JsonElement block) {
        unsupported("caller", Reading.name(field(block, "name")));
        JsonObject left = copy(block);
        left.remove("caller");
        return left;
    }

    private JsonElement searchResult(JsonElement block) {
        if (!references) {
            return unsupported("tool_search_tool_result", "");
        }
        JsonElement found = field(block, "content");
        int before = removed.size();
        JsonArray kept = keep(field(found, "tool_references"), this::reference);
        return before == removed.size()
                ? block
                : with(block, "content", with(found, "tool_references", kept));
    }

    private JsonElement reference(JsonElement item) {
        boolean stays =
                !text(item, "type").equals("tool_reference")
                        || has("tool_reference", field(item, "tool_name"));
        return stays ? item : null;
    }

    /** Whether a reference may stay; notes it when not. */
    private boolean has(String kind, JsonElement tool) {
        String called = Reading.name(tool);
        boolean stays = references && available.contains(called);
        if (!stays) {
            note(kind, called, references ? Reason.VANISHED : Reason.UNSUPPORTED);
        }
        return stays;
    }

    private JsonElement unsupported(String kind, String called) {
        note(kind, called, Reason.UNSUPPORTED);
        return null;
    }

    private void note(String kind, String called, Reason reason) {
        removed.add(new Removed(message, kind, called, reason));
    }

    private static JsonArray keep(JsonElement list, UnaryOperator<JsonElement> change) {
        JsonArray kept = new JsonArray();
        for (JsonElement value : items(list)) {
            JsonElement left = change.apply(value);
            if (left != null) {
                kept.add(left);
            }
        }
        return kept;
    }

    private static JsonArray orNothingLeft(JsonArray kept) {
        if (kept.isEmpty()) {
            kept.add(Json.object("type", "text", "text", NOTHING_LEFT));
        }
        return kept;
    }

    /** The object with another list, if anything was taken out since. */
    private JsonElement changedSince(int before, JsonElement object, String key, JsonArray list) {
        return before == removed.size() ? object : with(object, key, list);
    }

    private static JsonObject with(JsonElement object, String key, JsonElement value) {
        JsonObject changed = copy(object);
        changed.add(key, value);
        return changed;
    }

    private static JsonObject copy(JsonElement object) {
        JsonObject copy = new JsonObject();
        object.getAsJsonObject()
                .entrySet()
                .forEach(field -> copy.add(field.getKey(), field.getValue()));
        return copy;
    }
}
