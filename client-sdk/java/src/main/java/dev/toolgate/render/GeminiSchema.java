package dev.toolgate.render;

import static dev.toolgate.render.Schemas.listAt;
import static dev.toolgate.render.Schemas.pointer;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import java.util.ArrayList;
import java.util.List;

/**
 * Rewrites the schemas of one tool. References and {@code allOf} are merged in, {@code oneOf} and
 * lists of types become {@code anyOf}, and what is left gets exactly one type.
 */
final class GeminiSchema {
    private static final int MAX_SCHEMAS = 4096;

    private final Merging merging;
    private final Losses losses;
    private int left = MAX_SCHEMAS;

    /** Alternatives that are not null, each with where it stands. */
    private record Choice(JsonObject schema, Place place) {}

    GeminiSchema(JsonObject root, Losses losses) {
        this.merging = new Merging(root, losses);
        this.losses = losses;
    }

    /** The schema in Gemini's subset. */
    JsonObject convert(JsonObject schema, Place place) {
        if (left == 0 || place.nesting() > Schemas.MAX_NESTING) {
            losses.add(place.at(), "", "too large a schema: any text");
            JsonObject text = new JsonObject();
            text.addProperty("type", "STRING");
            return text;
        }
        left--;
        Merging.Placed merged = merging.merged(schema, place);
        List<Choice> choices = choices(merged.schema(), merged.place());
        if (choices.isEmpty()) {
            return new GeminiType(this, losses, merged.schema(), merged.place()).convert();
        }
        List<JsonObject> converted = new ArrayList<>();
        for (Choice choice : choices) {
            converted.addAll(alternatives(convert(choice.schema(), choice.place())));
        }
        return anyOf(merged.schema(), converted, merged.place().at());
    }

    private List<Choice> choices(JsonObject schema, Place place) {
        for (String key : List.of("anyOf", "oneOf")) {
            List<JsonElement> branches = listAt(schema, key);
            if (branches.isEmpty()) {
                continue;
            }
            if (branches.stream().allMatch(GeminiSchema::onlyRequires)) {
                losses.add(pointer(place.at(), key), key, "dropped");
                continue;
            }
            List<Choice> choices = branches(schema, key, branches, place);
            if (key.equals("oneOf") && choices.size() > 1) {
                losses.add(pointer(place.at(), key), key, "as anyOf: several may hold");
            }
            return choices;
        }
        return kinds(schema, place);
    }

    /** The branches that are not null, each with what stands beside them. */
    private static List<Choice> branches(
            JsonObject schema, String key, List<JsonElement> branches, Place place) {
        JsonObject beside = withoutAnnotations(schema);
        beside.remove(key);
        beside.remove("nullable");
        if (Json.field(beside, "type").isJsonArray()) {
            beside.remove("type");
        }
        List<Choice> choices = new ArrayList<>();
        for (int index = 0; index < branches.size(); index++) {
            JsonObject branch = Schemas.orEmpty(branches.get(index));
            if (!GeminiType.isNull(branch)) {
                choices.add(
                        new Choice(
                                beside.isEmpty() ? branch : both(branch, beside),
                                place.down(key, index)));
            }
        }
        return choices;
    }

    private static JsonObject both(JsonObject branch, JsonObject beside) {
        JsonArray all = new JsonArray();
        all.add(branch);
        all.add(beside);
        JsonObject both = new JsonObject();
        both.add("allOf", all);
        return both;
    }

    /** One alternative for each of several types. */
    private static List<Choice> kinds(JsonObject schema, Place place) {
        List<JsonElement> kinds =
                listAt(schema, "type").stream().filter(kind -> !Schemas.is(kind, "null")).toList();
        if (kinds.size() < 2) {
            return List.of();
        }
        List<Choice> choices = new ArrayList<>();
        for (JsonElement kind : kinds) {
            JsonObject choice = withoutAnnotations(schema);
            choice.add("type", kind);
            choices.add(new Choice(choice, place.down("type")));
        }
        return choices;
    }

    /** Gemini takes {@code anyOf} alone: what stands beside it goes into the branches. */
    private JsonObject anyOf(JsonObject schema, List<JsonObject> converted, String at) {
        JsonElement description = Json.field(schema, "description");
        JsonElement defaultValue = Json.field(schema, "default");
        if (Json.isText(description)) {
            converted.stream()
                    .filter(one -> !one.has("description"))
                    .forEach(one -> one.add("description", description));
        }
        if (!converted.isEmpty() && GeminiType.allowsNull(schema)) {
            converted.get(0).addProperty("nullable", true);
        }
        if (converted.size() > 1) {
            if (!defaultValue.isJsonNull()) {
                losses.add(pointer(at, "default"), "default", "dropped beside anyOf");
            }
            JsonArray branches = new JsonArray();
            converted.forEach(branches::add);
            JsonObject anyOf = new JsonObject();
            anyOf.add("anyOf", branches);
            return anyOf;
        }
        JsonObject only = converted.isEmpty() ? new JsonObject() : converted.get(0);
        if (Json.isText(description)) {
            only.add("description", description);
        }
        if (!defaultValue.isJsonNull()) {
            only.add("default", defaultValue);
        }
        return only;
    }

    /** The alternatives of a converted schema, or itself. */
    private static List<JsonObject> alternatives(JsonObject converted) {
        if (!converted.has("anyOf")) {
            return List.of(converted);
        }
        return listAt(converted, "anyOf").stream().map(Schemas::orEmpty).toList();
    }

    private static boolean onlyRequires(JsonElement branch) {
        return Schemas.orEmpty(branch).keySet().stream().allMatch(key -> key.equals("required"));
    }

    private static JsonObject withoutAnnotations(JsonObject schema) {
        JsonObject kept = Schemas.copy(schema);
        Merging.ANNOTATIONS.forEach(kept::remove);
        return kept;
    }
}
