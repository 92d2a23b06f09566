package dev.toolgate.render;

import static dev.toolgate.render.Schemas.is;
import static dev.toolgate.render.Schemas.listAt;
import static dev.toolgate.render.Schemas.pointer;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Rewrites one JSON Schema of one type, without references and combinators, for Gemini. */
final class GeminiType {
    private static final Set<String> TYPES =
            Set.of("string", "number", "integer", "boolean", "array", "object");
    private static final Map<String, List<String>> COUNTS =
            Map.of(
                    "STRING", List.of("minLength", "maxLength"),
                    "ARRAY", List.of("minItems", "maxItems"),
                    "OBJECT", List.of("minProperties", "maxProperties"));
    private static final Map<String, Set<String>> FORMATS =
            Map.of(
                    "STRING", Set.of("date-time"),
                    "NUMBER", Set.of("float", "double"),
                    "INTEGER", Set.of("int32", "int64"));

    /** Keywords that are rewritten or kept, or have no meaning of their own. */
    private static final Set<String> SEEN_TO =
            Set.of(
                    "type",
                    "format",
                    "enum",
                    "const",
                    "nullable",
                    "default",
                    "title",
                    "description",
                    "properties",
                    "required",
                    "additionalProperties",
                    "minProperties",
                    "maxProperties",
                    "items",
                    "prefixItems",
                    "minItems",
                    "maxItems",
                    "anyOf",
                    "oneOf",
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "minLength",
                    "maxLength",
                    "pattern",
                    "$schema",
                    "$id",
                    "$comment",
                    "$anchor",
                    "$defs",
                    "definitions");

    /** By which keywords a schema that does not name its type shows it. */
    private static final List<Sign> SIGNS =
            List.of(
                    new Sign(
                            "OBJECT",
                            List.of(
                                    "properties",
                                    "required",
                                    "additionalProperties",
                                    "patternProperties")),
                    new Sign("ARRAY", List.of("items", "prefixItems", "minItems", "maxItems")),
                    new Sign("STRING", List.of("minLength", "maxLength", "pattern", "format")),
                    new Sign(
                            "NUMBER",
                            List.of(
                                    "minimum",
                                    "maximum",
                                    "exclusiveMinimum",
                                    "exclusiveMaximum",
                                    "multipleOf")));

    private final GeminiSchema schemas;
    private final Losses losses;
    private final JsonObject schema;
    private final Place place;
    private final JsonObject converted = new JsonObject();

    private record Sign(String kind, List<String> keywords) {}

    GeminiType(GeminiSchema schemas, Losses losses, JsonObject schema, Place place) {
        this.schemas = schemas;
        this.losses = losses;
        this.schema = schema;
        this.place = place;
    }

    JsonObject convert() {
        String kind = kind();
        converted.addProperty("type", kind);
        copyIf("title", Json::isText);
        copyIf("description", Json::isText);
        copyIf("pattern", value -> Json.isText(value) && kind.equals("STRING"));
        copyIf("default", value -> !value.isJsonNull());
        if (allowsNull(schema)) {
            converted.addProperty("nullable", true);
        }
        for (String key : COUNTS.getOrDefault(kind, List.of())) {
            JsonElement count = Json.field(schema, key);
            if (Json.isNumber(count)) {
                converted.add(key, Numbers.whole(count));
            }
        }
        format(kind);
        values(kind);
        switch (kind) {
            case "NUMBER", "INTEGER" -> bounds(kind);
            case "ARRAY" -> items();
            case "OBJECT" -> properties();
            default -> {}
        }
        for (String key : schema.keySet()) {
            if (!SEEN_TO.contains(key)) {
                lose(key, "dropped: Gemini has no such keyword");
            }
        }
        return converted;
    }

    /** Whether a schema takes null alone. */
    static boolean isNull(JsonObject schema) {
        return is(Json.field(schema, "type"), "null")
                || (schema.has("const") && schema.get("const").isJsonNull());
    }

    /** Whether a schema takes null beside other values. */
    static boolean allowsNull(JsonObject schema) {
        return Json.is(Json.field(schema, "nullable"), true)
                || isNull(schema)
                || listAt(schema, "type").stream().anyMatch(kind -> is(kind, "null"))
                || listAt(schema, "enum").stream().anyMatch(JsonElement::isJsonNull)
                || Stream.of("anyOf", "oneOf")
                        .flatMap(key -> listAt(schema, key).stream())
                        .anyMatch(branch -> isNull(Schemas.orEmpty(branch)));
    }

    private void lose(String keyword, String note) {
        losses.add(pointer(place.at(), keyword), keyword, note);
    }

    private void copyIf(String key, Predicate<JsonElement> fits) {
        JsonElement value = Json.field(schema, key);
        if (fits.test(value)) {
            converted.add(key, value);
        }
    }

    private String kind() {
        JsonElement named = Json.field(schema, "type");
        for (JsonElement kind : named.isJsonArray() ? Json.items(named) : List.of(named)) {
            if (TYPES.contains(Json.text(kind))) {
                return kind.getAsString().toUpperCase(Locale.ROOT);
            }
        }
        for (Sign sign : SIGNS) {
            if (sign.keywords().stream().anyMatch(schema::has)) {
                return sign.kind();
            }
        }
        List<JsonElement> values = listedValues();
        if (!values.isEmpty()) {
            if (values.stream().allMatch(Json::isWhole)) {
                return "INTEGER";
            }
            if (values.stream().allMatch(Json::isNumber)) {
                return "NUMBER";
            }
            if (values.stream().allMatch(value -> Json.is(value, true) || Json.is(value, false))) {
                return "BOOLEAN";
            }
        }
        if (values.isEmpty() || !values.stream().allMatch(Json::isText)) {
            losses.add(place.at(), "type", "any value: only texts are asked for");
        }
        return "STRING";
    }

    private List<JsonElement> listedValues() {
        List<JsonElement> listed =
                schema.has("const") ? List.of(schema.get("const")) : listAt(schema, "enum");
        return listed.stream().filter(value -> !value.isJsonNull()).toList();
    }

    private void format(String kind) {
        JsonElement named = Json.field(schema, "format");
        if (named.isJsonNull()) {
            return;
        }
        if (Json.isText(named)
                && FORMATS.getOrDefault(kind, Set.of()).contains(named.getAsString())) {
            converted.add("format", named);
        } else {
            lose("format", "dropped: " + Json.write(named));
        }
    }

    /** Gemini lists texts only; other values are named in the description. */
    private void values(String kind) {
        List<JsonElement> values = listedValues();
        if (values.isEmpty()) {
            return;
        }
        if (kind.equals("STRING")
                && values.stream().noneMatch(value -> Json.text(value).isEmpty())) {
            JsonArray listed = new JsonArray();
            values.forEach(listed::add);
            converted.add("enum", listed);
            return;
        }
        String told =
                values.stream().map(Json::write).collect(Collectors.joining(", ", "One of: ", "."));
        String before = Json.text(converted, "description");
        converted.addProperty("description", before.isEmpty() ? told : before + " " + told);
        lose(schema.has("const") ? "const" : "enum", "named in the description only");
    }

    private void bounds(String kind) {
        bound("minimum", "exclusiveMinimum", kind.equals("INTEGER"));
        bound("maximum", "exclusiveMaximum", kind.equals("INTEGER"));
    }

    private void bound(String inclusive, String exclusive, boolean isInteger) {
        boolean isMinimum = inclusive.equals("minimum");
        JsonElement held = Json.field(schema, inclusive);
        JsonElement limit = Json.field(schema, exclusive);
        if (Json.is(limit, true)) {
            // As JSON Schema had it until draft 4.
            limit = held;
        }
        if (Json.isNumber(limit)) {
            JsonElement nearest = limit;
            if (isInteger) {
                nearest = Numbers.beyond(limit, isMinimum);
            } else {
                lose(exclusive, "the bound itself is let in");
            }
            if (!Json.isNumber(held) || Numbers.isTighter(nearest, held, isMinimum)) {
                held = nearest;
            }
        }
        if (Json.isNumber(held)) {
            converted.add(inclusive, held);
        }
    }

    private void items() {
        List<JsonElement> prefix = listAt(schema, "prefixItems");
        List<JsonElement> places = prefix.isEmpty() ? listAt(schema, "items") : prefix;
        if (!places.isEmpty()) {
            lose(
                    schema.has("prefixItems") ? "prefixItems" : "items",
                    "which place takes which is lost");
        }
        List<JsonElement> unique = places.stream().distinct().toList();
        JsonElement items = Json.field(schema, "items");
        if (unique.size() == 1) {
            items = unique.get(0);
        } else if (!unique.isEmpty()) {
            JsonArray choices = new JsonArray();
            unique.forEach(choices::add);
            JsonObject anyOf = new JsonObject();
            anyOf.add("anyOf", choices);
            items = anyOf;
        }
        converted.add("items", schemas.convert(Schemas.orEmpty(items), place.down("items")));
    }

    private void properties() {
        JsonObject properties = new JsonObject();
        for (Map.Entry<String, JsonElement> property :
                Schemas.objectAt(schema, "properties").entrySet()) {
            String name = property.getKey();
            Place stands = place.down("properties", name);
            if (Schemas.beginsAsIdentifier(name) && Schemas.isName(name, 64, "_")) {
                properties.add(name, schemas.convert(Schemas.orEmpty(property.getValue()), stands));
            } else {
                losses.add(stands.at(), "properties", "dropped: not taken as a name");
            }
        }
        JsonArray required = new JsonArray();
        listAt(schema, "required").stream()
                .filter(name -> Json.isText(name) && properties.has(name.getAsString()))
                .forEach(required::add);
        if (!properties.isEmpty()) {
            converted.add("properties", properties);
        }
        if (!required.isEmpty()) {
            converted.add("required", required);
        }
        JsonElement more = Json.field(schema, "additionalProperties");
        boolean saysNothing =
                more.isJsonNull()
                        || Json.is(more, true)
                        || (more.isJsonObject() && more.getAsJsonObject().isEmpty());
        if (!saysNothing) {
            lose("additionalProperties", "dropped: not taken");
        }
    }
}
