package dev.toolgate;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.function.ThrowingConsumer;

/** The cases of client-sdk/conformance, which every client runs. A missing folder is a failure. */
final class Cases {
    private static final Path FOLDER = Path.of("..", "conformance");

    private Cases() {}

    /** One case, and the name of its file. */
    record Case(String file, JsonObject json) {
        JsonElement at(String key) {
            return Json.field(json, key);
        }

        JsonElement expect() {
            return json.get("expect");
        }
    }

    static List<Case> read(String folder, String prefix) {
        List<Case> cases = new ArrayList<>();
        try (Stream<Path> files = Files.list(FOLDER.resolve(folder)).sorted()) {
            for (Path path : files.toList()) {
                String name = path.getFileName().toString().replace(".json", "");
                if (name.startsWith(prefix)) {
                    JsonElement file = Json.parse(Files.readString(path));
                    items(Json.field(file, "cases"))
                            .forEach(one -> cases.add(new Case(name, one.getAsJsonObject())));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        if (cases.isEmpty()) {
            throw new AssertionError("no cases in " + FOLDER.resolve(folder));
        }
        return cases;
    }

    static Stream<DynamicTest> each(String folder, String prefix, ThrowingConsumer<Case> test) {
        return read(folder, prefix).stream()
                .map(
                        one ->
                                DynamicTest.dynamicTest(
                                        one.file + ": " + Json.text(one.json, "name"),
                                        () -> test.accept(one)));
    }

    /** A value whose text is the same for equal values, whatever the order of keys. */
    static String canonical(JsonElement value) {
        if (value.isJsonObject()) {
            List<String> fields = new ArrayList<>();
            value.getAsJsonObject()
                    .entrySet()
                    .forEach(
                            f ->
                                    fields.add(
                                            Json.quoted(f.getKey())
                                                    + ": "
                                                    + canonical(f.getValue())));
            fields.sort(null);
            return "{\n" + String.join(",\n", fields) + "}";
        }
        if (value.isJsonArray()) {
            return "["
                    + String.join(", ", items(value).stream().map(Cases::canonical).toList())
                    + "]";
        }
        if (value instanceof JsonPrimitive number && number.isNumber()) {
            BigDecimal exact = new BigDecimal(number.getAsString());
            return exact.signum() == 0 ? "0" : exact.stripTrailingZeros().toString();
        }
        return Json.write(value);
    }

    /** The items of a list; none of anything else. */
    static List<JsonElement> items(JsonElement value) {
        return value.isJsonArray() ? value.getAsJsonArray().asList() : List.of();
    }

    /** A count; 0 for anything else than a number. */
    static int count(JsonElement value) {
        return Json.isNumber(value) ? value.getAsInt() : 0;
    }

    static List<String> texts(JsonElement list) {
        return items(list).stream().map(JsonElement::getAsString).toList();
    }

    static Map<String, String> pairs(JsonElement pairs) {
        Map<String, String> read = new LinkedHashMap<>();
        items(pairs)
                .forEach(
                        pair ->
                                read.put(
                                        pair.getAsJsonArray().get(0).getAsString(),
                                        pair.getAsJsonArray().get(1).getAsString()));
        return read;
    }

    /** Tools as on the wire. */
    static List<ActiveTool> wireTools(JsonElement tools) {
        return items(tools).stream()
                .map(
                        tool ->
                                ActiveTool.newBuilder()
                                        .setName(Json.text(tool, "name"))
                                        .setModelName(Json.text(tool, "model_name"))
                                        .setDescription(Json.text(tool, "description"))
                                        .setInputSchemaJson(Json.text(tool, "input_schema_json"))
                                        .setSignature(Json.text(tool, "signature"))
                                        .build())
                .toList();
    }
}
