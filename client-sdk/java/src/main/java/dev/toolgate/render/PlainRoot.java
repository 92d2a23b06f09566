package dev.toolgate.render;

import static dev.toolgate.render.Schemas.listAt;
import static dev.toolgate.render.Schemas.orEmpty;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A schema whose root is a plain object, for providers that take no combinators there. */
final class PlainRoot {
    private static final int MAX_BRANCHES = 256;
    private static final List<String> COMBINATORS = List.of("$ref", "allOf", "anyOf", "oneOf");

    private final JsonObject root;
    private int left = MAX_BRANCHES;

    private PlainRoot(JsonObject root) {
        this.root = root;
    }

    /**
     * The schema with {@code type: object} at its root and no combinator there. The properties of
     * all branches become properties of the root; what every branch requires is required. Nested
     * schemas stay as they are, and so does a schema that is fine already. The keywords of {@code
     * alsoRefused} are dropped.
     */
    static JsonObject of(JsonObject schema, List<String> alsoRefused, Losses losses) {
        List<String> refused = new ArrayList<>(COMBINATORS);
        refused.addAll(alsoRefused);
        refused.removeIf(key -> !schema.has(key));
        if (refused.isEmpty() && Schemas.is(Json.field(schema, "type"), "object")) {
            return schema;
        }
        Branch merged = new PlainRoot(schema).read(schema);
        JsonObject plain = Schemas.copy(schema);
        refused.forEach(plain::remove);
        plain.addProperty("type", "object");
        if (!merged.properties.isEmpty()) {
            JsonObject properties = new JsonObject();
            merged.properties.forEach(properties::add);
            plain.add("properties", properties);
        }
        if (!merged.required.isEmpty()) {
            plain.add("required", Json.array(merged.required));
        }
        for (String key : refused) {
            String note =
                    alsoRefused.contains(key)
                            ? "dropped"
                            : "its properties were merged into the root's";
            losses.add(Schemas.pointer("", key), key, "not taken at the root: " + note);
        }
        return plain;
    }

    /** Properties, and which of them are required, in the order of the schema. */
    private static final class Branch {
        private final Map<String, JsonElement> properties = new LinkedHashMap<>();
        private final Set<String> required = new LinkedHashSet<>();

        static Branch of(JsonObject schema) {
            Branch branch = new Branch();
            Schemas.objectAt(schema, "properties")
                    .entrySet()
                    .forEach(
                            property ->
                                    branch.properties.put(property.getKey(), property.getValue()));
            listAt(schema, "required").stream()
                    .filter(Json::isText)
                    .map(Json::text)
                    .forEach(branch.required::add);
            return branch;
        }

        void both(Branch other) {
            other.properties.forEach(properties::putIfAbsent);
            required.addAll(other.required);
        }

        /** One of several: a property that they define differently may be as any of them. */
        static Branch either(List<Branch> branches) {
            Branch either = new Branch();
            either.required.addAll(branches.get(0).required);
            branches.forEach(branch -> either.required.retainAll(branch.required));
            Map<String, Set<JsonElement>> definitions = new LinkedHashMap<>();
            for (Branch branch : branches) {
                branch.properties.forEach(
                        (name, schema) ->
                                definitions
                                        .computeIfAbsent(name, n -> new LinkedHashSet<>())
                                        .add(schema));
            }
            definitions.forEach((name, known) -> either.properties.put(name, anyOf(known)));
            return either;
        }

        private static JsonElement anyOf(Set<JsonElement> known) {
            if (known.size() == 1) {
                return known.iterator().next();
            }
            JsonArray choices = new JsonArray();
            known.forEach(choices::add);
            JsonObject anyOf = new JsonObject();
            anyOf.add("anyOf", choices);
            return anyOf;
        }
    }

    /** Reads a schema's branches, as many as there may reasonably be. */
    private Branch read(JsonObject schema) {
        Branch found = Branch.of(schema);
        if (left == 0) {
            return found;
        }
        left--;
        JsonObject target = Schemas.resolve(root, Json.field(schema, "$ref"));
        if (target != null) {
            found.both(read(target));
        }
        for (JsonElement branch : listAt(schema, "allOf")) {
            if (branch.isJsonObject()) {
                found.both(read(branch.getAsJsonObject()));
            }
        }
        for (String key : List.of("anyOf", "oneOf")) {
            List<Branch> branches = new ArrayList<>();
            listAt(schema, key).forEach(branch -> branches.add(read(orEmpty(branch))));
            if (!branches.isEmpty()) {
                found.both(Branch.either(branches));
            }
        }
        return found;
    }
}
