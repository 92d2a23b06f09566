package dev.toolgate.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.util.JsonFormat;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Messages of the contract, and what else requests hold, as JSON. */
final class Wire {
    private static final JsonFormat.Printer PRINTER =
            JsonFormat.printer().preservingProtoFieldNames().omittingInsignificantWhitespace();

    private Wire() {}

    /** A message; an empty one when nothing is there. */
    static <B extends Message.Builder> B read(JsonElement json, B builder)
            throws InvalidProtocolBufferException {
        if (json != null && !json.isJsonNull()) {
            JsonFormat.parser().merge(json.toString(), builder);
        }
        return builder;
    }

    static JsonElement write(MessageOrBuilder message) throws InvalidProtocolBufferException {
        return JsonParser.parseString(PRINTER.print(message));
    }

    static JsonArray writeAll(Iterable<? extends MessageOrBuilder> messages)
            throws InvalidProtocolBufferException {
        JsonArray written = new JsonArray();
        for (MessageOrBuilder message : messages) {
            written.add(write(message));
        }
        return written;
    }

    static JsonElement get(JsonObject object, String key) {
        return object.has(key) ? object.get(key) : JsonNull.INSTANCE;
    }

    static String text(JsonObject object, String key) {
        JsonElement value = get(object, key);
        return value.isJsonNull() ? "" : value.getAsString();
    }

    static boolean flag(JsonObject object, String key) {
        JsonElement value = get(object, key);
        return !value.isJsonNull() && value.getAsBoolean();
    }

    static JsonArray list(JsonObject object, String key) {
        JsonElement value = get(object, key);
        return value.isJsonNull() ? new JsonArray() : value.getAsJsonArray();
    }

    static List<String> texts(JsonObject object, String key) {
        List<String> texts = new ArrayList<>();
        list(object, key).forEach(text -> texts.add(text.getAsString()));
        return texts;
    }

    static Duration seconds(JsonElement seconds) {
        return Duration.ofNanos((long) (seconds.getAsDouble() * 1e9));
    }

    /** Pairs of name and summary, in their order. */
    static Map<String, String> pairs(JsonObject object, String key) {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (JsonElement pair : list(object, key)) {
            pairs.put(
                    pair.getAsJsonArray().get(0).getAsString(),
                    pair.getAsJsonArray().get(1).getAsString());
        }
        return pairs;
    }

    static JsonArray pairs(Map<String, String> pairs) {
        JsonArray written = new JsonArray();
        pairs.forEach(
                (name, summary) -> {
                    JsonArray pair = new JsonArray();
                    pair.add(name);
                    pair.add(summary);
                    written.add(pair);
                });
        return written;
    }

    static JsonArray array(Iterable<String> texts) {
        JsonArray array = new JsonArray();
        texts.forEach(array::add);
        return array;
    }
}
