package dev.toolgate.render;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import java.util.List;
import java.util.Map;

/** Function tools for OpenAI's Chat Completions and Responses APIs. */
final class OpenAi {
    private static final List<String> REFUSED_AT_ROOT = List.of("enum", "not");

    /** Tools that a request takes. */
    private static final int MOST = 128;

    private OpenAi() {}

    static Rendered chat(List<ActiveTool> tools) {
        return Schemas.each(
                tools,
                MOST,
                OpenAi::canName,
                (tool, losses) -> {
                    JsonObject definition = new JsonObject();
                    definition.addProperty("type", "function");
                    definition.add("function", function(new JsonObject(), tool, losses));
                    return definition;
                });
    }

    static Rendered responses(List<ActiveTool> tools) {
        return Schemas.each(
                tools,
                MOST,
                OpenAi::canName,
                (tool, losses) -> {
                    JsonObject definition = new JsonObject();
                    definition.addProperty("type", "function");
                    function(definition, tool, losses).addProperty("strict", false);
                    return definition;
                });
    }

    private static boolean canName(String name) {
        return Schemas.isName(name, 64, "_-");
    }

    private static JsonObject function(JsonObject function, ActiveTool tool, Losses losses) {
        JsonObject schema = PlainRoot.of(Schemas.input(tool), REFUSED_AT_ROOT, losses);
        function.addProperty("name", tool.getModelName());
        Schemas.addDescription(tool, function);
        function.add("parameters", complete(schema, 0));
        return function;
    }

    /**
     * The schema with {@code items} in every array and {@code properties} in every object. OpenAI
     * refuses those without; an empty one says the same.
     */
    private static JsonObject complete(JsonObject schema, int nesting) {
        if (nesting > Schemas.MAX_NESTING) {
            return schema;
        }
        JsonObject changed = new JsonObject();
        for (Map.Entry<String, JsonElement> field : schema.entrySet()) {
            changed.add(
                    field.getKey(), completeWithin(field.getKey(), field.getValue(), nesting + 1));
        }
        completeKind(changed, "array", "items");
        completeKind(changed, "object", "properties");
        return changed;
    }

    private static void completeKind(JsonObject schema, String kind, String key) {
        JsonElement named = Json.field(schema, "type");
        boolean isKind =
                Schemas.is(named, kind)
                        || Json.items(named).stream().anyMatch(one -> Schemas.is(one, kind));
        if (isKind && !schema.has(key)) {
            schema.add(key, new JsonObject());
        }
    }

    private static JsonElement completeWithin(String key, JsonElement value, int nesting) {
        return switch (key) {
            case "items", "additionalProperties", "contains", "not", "if", "then", "else" ->
                    one(value, nesting);
            case "anyOf", "oneOf", "allOf", "prefixItems" -> each(value, nesting);
            case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas" ->
                    eachNamed(value, nesting);
            default -> value;
        };
    }

    private static JsonElement one(JsonElement value, int nesting) {
        return value.isJsonObject() ? complete(value.getAsJsonObject(), nesting) : value;
    }

    private static JsonElement each(JsonElement value, int nesting) {
        if (!value.isJsonArray()) {
            return value;
        }
        JsonArray schemas = new JsonArray();
        value.getAsJsonArray().forEach(schema -> schemas.add(one(schema, nesting)));
        return schemas;
    }

    private static JsonElement eachNamed(JsonElement value, int nesting) {
        if (!value.isJsonObject()) {
            return value;
        }
        JsonObject schemas = new JsonObject();
        value.getAsJsonObject()
                .entrySet()
                .forEach(field -> schemas.add(field.getKey(), one(field.getValue(), nesting)));
        return schemas;
    }
}
