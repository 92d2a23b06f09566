package dev.toolgate.render;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Predicate;

/** What all renderers share: a tool's schema, and where one stands within another. */
final class Schemas {
    /** Levels of a schema that are read; the service refuses deeper ones. */
    static final int MAX_NESTING = 64;

    private static final String LEFT_OUT = " tools in a request: the tool is left out";

    private Schemas() {}

    /**
     * Renders tools one by one. One whose name the provider refuses would fail the whole request,
     * and is left out. One that came as a signature has it for a description, and takes any object.
     */
    static Rendered each(
            Iterable<ActiveTool> tools,
            Predicate<String> canName,
            BiFunction<ActiveTool, Losses, JsonObject> define) {
        return each(tools, Integer.MAX_VALUE, canName, define);
    }

    /** Renders at most so many tools, and leaves out the last ones of the active set. */
    static Rendered each(
            Iterable<ActiveTool> tools,
            int most,
            Predicate<String> canName,
            BiFunction<ActiveTool, Losses, JsonObject> define) {
        List<JsonObject> rendered = new ArrayList<>();
        List<Loss> lost = new ArrayList<>();
        for (ActiveTool tool : tools) {
            Losses losses = new Losses(tool.getModelName());
            if (!canName.test(tool.getModelName())) {
                losses.add("", "name", "the provider takes no such name: the tool is left out");
            } else if (rendered.size() == most) {
                losses.add("", "tools", "the provider takes " + most + LEFT_OUT);
            } else {
                rendered.add(define.apply(toldBySignature(tool), losses));
            }
            lost.addAll(losses.found());
        }
        return new Rendered(List.copyOf(rendered), List.copyOf(lost));
    }

    private static ActiveTool toldBySignature(ActiveTool tool) {
        if (!tool.getInputSchemaJson().isEmpty() || tool.getSignature().isEmpty()) {
            return tool;
        }
        return tool.toBuilder()
                .setDescription(tool.getSignature())
                .setInputSchemaJson("{\"type\":\"object\"}")
                .build();
    }

    /** The registered {@code inputSchema}. */
    static JsonObject input(ActiveTool tool) {
        if (tool.getInputSchemaJson().isEmpty()) {
            throw new IllegalArgumentException(
                    tool.getModelName() + " came without its schema: route with DETAIL_SCHEMAS");
        }
        JsonElement schema = parse(tool, "inputSchema", tool.getInputSchemaJson());
        return schema.isJsonObject() ? schema.getAsJsonObject() : new JsonObject();
    }

    /** A part of the definition that came as text. */
    static JsonElement parse(ActiveTool tool, String part, String json) {
        try {
            return Json.parse(json);
        } catch (JsonParseException e) {
            throw new IllegalArgumentException(
                    "the " + part + " of " + tool.getModelName() + " is not JSON", e);
        }
    }

    static void addDescription(ActiveTool tool, JsonObject definition) {
        if (!tool.getDescription().isEmpty()) {
            definition.addProperty("description", tool.getDescription());
        }
    }

    /**
     * Whether a name has 1 to {@code longest} characters: ASCII letters, digits or among {@code
     * more}.
     */
    static boolean isName(String name, int longest, String more) {
        return !name.isEmpty()
                && name.length() <= longest
                && name.chars()
                        .allMatch(
                                c -> isLetter(c) || (c >= '0' && c <= '9') || more.indexOf(c) >= 0);
    }

    /** Whether a name begins with an ASCII letter or an underscore. */
    static boolean beginsAsIdentifier(String name) {
        return !name.isEmpty() && (isLetter(name.charAt(0)) || name.charAt(0) == '_');
    }

    private static boolean isLetter(int c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    }

    /** A JSON Pointer (RFC 6901) further down. */
    static String pointer(String base, String part) {
        return base + "/" + part.replace("~", "~0").replace("/", "~1");
    }

    /** The object that a keyword holds; an empty one when it holds none. */
    static JsonObject objectAt(JsonObject schema, String key) {
        return orEmpty(Json.field(schema, key));
    }

    /** The object that a value is; an empty one for any other. */
    static JsonObject orEmpty(JsonElement value) {
        return value.isJsonObject() ? value.getAsJsonObject() : new JsonObject();
    }

    /** The list that a keyword holds. */
    static List<JsonElement> listAt(JsonObject schema, String key) {
        return Json.items(Json.field(schema, key));
    }

    /** Whether a value is this text. */
    static boolean is(JsonElement value, String text) {
        return Json.isText(value) && value.getAsString().equals(text);
    }

    /** A copy whose fields can be changed; what they hold is shared. */
    static JsonObject copy(JsonObject schema) {
        JsonObject copy = new JsonObject();
        schema.entrySet().forEach(field -> copy.add(field.getKey(), field.getValue()));
        return copy;
    }

    /** What a reference within the document names; null for any other reference. */
    static JsonObject resolve(JsonObject root, JsonElement reference) {
        String named = Json.text(reference);
        if (named.equals("#")) {
            return root;
        }
        if (!named.startsWith("#/")) {
            return null;
        }
        JsonElement found = root;
        for (String part : named.substring(2).split("/", -1)) {
            found = Json.field(found, part.replace("~1", "/").replace("~0", "~"));
        }
        return found.isJsonObject() ? found.getAsJsonObject() : null;
    }
}
