package dev.toolgate.history;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import dev.toolgate.internal.Json;
import java.util.List;
import java.util.stream.Collectors;

/** Reads what foreign messages hold; what is not of the expected type counts as absent. */
final class Reading {
    private static final int MAX_NAME = 128;
    private static final int MAX_RESULT = 64 * 1024;
    // An answer to a search may hold the schemas of 100 tools.
    private static final int MAX_ANSWER = 1024 * 1024;

    private Reading() {}

    /**
     * The first of these fields that is not null: vendors write some in snake and in camel case.
     */
    static JsonElement first(JsonElement value, String key, String otherKey) {
        JsonElement found = Json.field(value, key);
        return found.isJsonNull() ? Json.field(value, otherKey) : found;
    }

    /** The blocks of a message's content: a list of them, or a single one. A text has none. */
    static List<JsonElement> blocks(JsonElement content) {
        return content.isJsonObject() ? List.of(content) : Json.items(content);
    }

    /** A tool's name; empty for what can't be one, or can't be sent. */
    static String name(JsonElement value) {
        String found = Json.text(value);
        return isWithin(found, MAX_NAME) && Json.isSendable(found) ? found : "";
    }

    /**
     * Whether a result says that it is an error, for APIs that have no flag for it: it does when it
     * is a JSON object with a non-empty {@code error} or a true {@code isError}. A doubtful result
     * so counts as failed, which unlocks nothing.
     */
    static boolean saysError(JsonElement content) {
        JsonElement result = jsonObject(content, MAX_RESULT);
        return isTruthy(Json.field(result, "error"))
                || Json.is(first(result, "isError", "is_error"), true);
    }

    /** The tools that an answer to a search names: a JSON object with the list {@code tools}. */
    static List<String> foundTools(JsonElement content) {
        JsonElement answer = jsonObject(content, MAX_ANSWER);
        return Json.items(Json.field(answer, "tools")).stream()
                .map(tool -> name(Json.field(tool, "name")))
                .filter(name -> !name.isEmpty())
                .toList();
    }

    /** The JSON object that a result is; null's value for any other. */
    private static JsonElement jsonObject(JsonElement content, int limit) {
        String written = Json.isText(content) ? content.getAsString() : joined(content);
        if (!isWithin(written, limit) || !written.stripLeading().startsWith("{")) {
            return JsonNull.INSTANCE;
        }
        try {
            JsonElement read = Json.parse(written);
            return read instanceof JsonObject ? read : JsonNull.INSTANCE;
        } catch (JsonParseException e) {
            return JsonNull.INSTANCE;
        }
    }

    private static String joined(JsonElement content) {
        return Json.items(content).stream()
                .map(block -> Json.text(block, "text"))
                .collect(Collectors.joining());
    }

    /**
     * Whether a text has at most so many characters; one outside of the basic plane counts once.
     */
    private static boolean isWithin(String text, int characters) {
        return text.length() <= characters || text.codePointCount(0, text.length()) <= characters;
    }

    private static boolean isTruthy(JsonElement value) {
        if (value.isJsonObject()) {
            return value.getAsJsonObject().size() > 0;
        }
        if (value.isJsonArray()) {
            return !value.getAsJsonArray().isEmpty();
        }
        if (Json.isNumber(value)) {
            return value.getAsDouble() != 0;
        }
        return Json.isText(value) ? !value.getAsString().isEmpty() : Json.is(value, true);
    }
}
