package dev.toolgate.render;

import static dev.toolgate.render.Schemas.listAt;
import static dev.toolgate.render.Schemas.pointer;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import java.util.Map;
import java.util.Set;

/** Merges what a schema refers to, and the branches of its {@code allOf}, into it. */
final class Merging {
    static final Set<String> ANNOTATIONS = Set.of("title", "description", "default", "examples");

    private static final int MAX_MERGES = 16;
    private static final String TWICE = "dropped: another schema says it already";

    private final JsonObject root;
    private final Losses losses;

    /** A schema, and where it stands. */
    record Placed(JsonObject schema, Place place) {}

    Merging(JsonObject root, Losses losses) {
        this.root = root;
        this.losses = losses;
    }

    /** The schema without references and {@code allOf}, as far as there are not too many. */
    Placed merged(JsonObject schema, Place place) {
        Placed merged = new Placed(Schemas.copy(schema), place);
        for (int merges = 0; merges < MAX_MERGES; merges++) {
            if (merged.schema().has("$ref")) {
                merged = follow(merged);
            } else if (merged.schema().has("allOf")) {
                merged = allOf(merged);
            } else {
                break;
            }
        }
        return merged;
    }

    /** The schema with what it refers to merged in; it stands there then. */
    private Placed follow(Placed placed) {
        JsonObject schema = placed.schema();
        Place place = placed.place();
        JsonElement reference = schema.remove("$ref");
        JsonObject target = Schemas.resolve(root, reference);
        if (target == null) {
            losses.add(place.at(), "$ref", "dropped: it names nothing in this schema");
            return placed;
        }
        String named = reference.getAsString();
        if (place.followed().contains(named)) {
            losses.add(place.at(), "$ref", "a schema within itself: any object");
            JsonObject any = new JsonObject();
            any.addProperty("type", "object");
            return new Placed(any, place);
        }
        JsonObject merged = Schemas.copy(target);
        schema.entrySet().forEach(field -> merged.add(field.getKey(), field.getValue()));
        return new Placed(merged, place.following(named));
    }

    /** The schema with the branches of its {@code allOf} merged in. */
    private Placed allOf(Placed placed) {
        JsonObject schema = placed.schema();
        Place place = placed.place();
        int index = 0;
        for (JsonElement branch : Json.items(schema.remove("allOf"))) {
            Placed read =
                    new Placed(Schemas.copy(Schemas.orEmpty(branch)), place.down("allOf", index++));
            if (read.schema().has("$ref")) {
                read = follow(read);
                place = place.ledAs(read.place());
            }
            for (Map.Entry<String, JsonElement> field : read.schema().entrySet()) {
                merge(schema, field.getKey(), field.getValue(), read.place().at());
            }
        }
        return new Placed(schema, place);
    }

    private void merge(JsonObject merged, String key, JsonElement value, String at) {
        switch (key) {
            case "properties" -> mergeProperties(merged, value, at);
            case "required", "allOf" -> mergeList(merged, key, value);
            default -> {
                if (!merged.has(key)) {
                    merged.add(key, value);
                } else if (!merged.get(key).equals(value) && !ANNOTATIONS.contains(key)) {
                    losses.add(pointer(at, key), key, TWICE);
                }
            }
        }
    }

    private static void mergeList(JsonObject merged, String key, JsonElement more) {
        JsonArray held = new JsonArray();
        listAt(merged, key).forEach(held::add);
        for (JsonElement item : Json.items(more)) {
            if (!held.contains(item)) {
                held.add(item);
            }
        }
        merged.add(key, held);
    }

    private void mergeProperties(JsonObject merged, JsonElement more, String at) {
        JsonObject held = Schemas.copy(Schemas.objectAt(merged, "properties"));
        for (Map.Entry<String, JsonElement> property : Schemas.orEmpty(more).entrySet()) {
            String name = property.getKey();
            if (!held.has(name)) {
                held.add(name, property.getValue());
            } else if (!held.get(name).equals(property.getValue())) {
                losses.add(pointer(pointer(at, "properties"), name), "properties", TWICE);
            }
        }
        merged.add("properties", held);
    }
}
