package dev.toolgate.internal;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonPrimitive;
import com.google.gson.JsonSyntaxException;
import com.google.gson.Strictness;
import com.google.gson.TypeAdapter;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.util.Iterator;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * Reads and writes JSON, and reads foreign JSON: what is not of the expected type counts as absent.
 */
public final class Json {
    private static final String HEX = "0123456789abcdef";
    private static final TypeAdapter<JsonElement> ELEMENTS =
            new Gson().getAdapter(JsonElement.class);
    private static final Pattern SURROGATE =
            Pattern.compile("[\\ud800-\\udfff]|\\\\u[dD][89a-fA-F]");

    private Json() {}

    /**
     * Parses JSON text as RFC 8259 has it, lone surrogates included. Numbers keep their digits,
     * objects the order of their keys.
     *
     * @param text the text
     * @return the value
     * @throws JsonParseException when it is not JSON, or nested more than 255 deep
     */
    public static JsonElement parse(String text) {
        try {
            return parse(text, Strictness.STRICT);
        } catch (JsonParseException e) {
            // Gson's strict reading refuses lone surrogates, and other readings refuse less than
            // JSON has.
            if (SURROGATE.matcher(text).find()) {
                return parse(text, Strictness.LEGACY_STRICT);
            }
            throw e;
        }
    }

    private static JsonElement parse(String text, Strictness strictness) {
        JsonReader reader = new JsonReader(new StringReader(text));
        reader.setStrictness(strictness);
        try {
            JsonElement value = ELEMENTS.read(reader);
            if (reader.peek() != JsonToken.END_DOCUMENT) {
                throw new JsonSyntaxException("more text after the value at " + reader.getPath());
            }
            return value;
        } catch (IOException | NumberFormatException e) {
            throw new JsonSyntaxException(e);
        }
    }

    /**
     * Writes a value without white space. A lone surrogate, which UTF-8 can't carry, is written as
     * an escape.
     *
     * @param value the value
     * @return its text
     */
    public static String write(JsonElement value) {
        StringBuilder text = new StringBuilder();
        write(value, text);
        return text.toString();
    }

    /**
     * Writes a text as a JSON string.
     *
     * @param text the text
     * @return it in quotes
     */
    public static String quoted(String text) {
        StringBuilder quoted = new StringBuilder(text.length() + 2);
        quote(text, quoted);
        return quoted.toString();
    }

    /**
     * The field of an object.
     *
     * @param value any value
     * @param key the field's name
     * @return its value; null's when there is none
     */
    public static JsonElement field(JsonElement value, String key) {
        JsonElement found = value.isJsonObject() ? value.getAsJsonObject().get(key) : null;
        return found == null ? JsonNull.INSTANCE : found;
    }

    /**
     * The text that a value is.
     *
     * @param value any value
     * @return the text, or an empty one
     */
    public static String text(JsonElement value) {
        return isText(value) ? value.getAsString() : "";
    }

    /**
     * The text that a field holds.
     *
     * @param value any value
     * @param key the field's name
     * @return the text, or an empty one
     */
    public static String text(JsonElement value, String key) {
        return text(field(value, key));
    }

    /**
     * Whether a value is a text.
     *
     * @param value any value
     * @return whether it is
     */
    public static boolean isText(JsonElement value) {
        return value instanceof JsonPrimitive primitive && primitive.isString();
    }

    /**
     * Whether a value is a number.
     *
     * @param value any value
     * @return whether it is
     */
    public static boolean isNumber(JsonElement value) {
        return value instanceof JsonPrimitive primitive && primitive.isNumber();
    }

    /**
     * Whether a number was written as a whole one, without fraction and exponent.
     *
     * @param value any value
     * @return whether it was
     */
    public static boolean isWhole(JsonElement value) {
        return isNumber(value)
                && value.getAsString().chars().allMatch(c -> c == '-' || Character.isDigit(c));
    }

    /**
     * Whether the wire can carry a text: UTF-8 has no lone surrogates, JSON has.
     *
     * @param text the text
     * @return whether it can
     */
    public static boolean isSendable(String text) {
        return text.codePoints()
                .noneMatch(c -> c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE);
    }

    /**
     * An object of one text field and another.
     *
     * @param name the first field
     * @param value its text
     * @param otherName the second field
     * @param otherValue its text
     * @return the object
     */
    public static JsonObject object(
            String name, String value, String otherName, String otherValue) {
        JsonObject object = new JsonObject();
        object.addProperty(name, value);
        object.addProperty(otherName, otherValue);
        return object;
    }

    /**
     * A list of texts.
     *
     * @param texts the texts
     * @return the list
     */
    public static JsonArray array(Iterable<String> texts) {
        JsonArray array = new JsonArray();
        texts.forEach(array::add);
        return array;
    }

    private static void write(JsonElement value, StringBuilder text) {
        if (value.isJsonObject()) {
            writeObject(value.getAsJsonObject(), text);
        } else if (value.isJsonArray()) {
            writeArray(value.getAsJsonArray(), text);
        } else if (isText(value)) {
            quote(value.getAsString(), text);
        } else {
            text.append(value.isJsonNull() ? "null" : value.getAsString());
        }
    }

    private static void writeObject(JsonObject object, StringBuilder text) {
        text.append('{');
        for (Iterator<Map.Entry<String, JsonElement>> fields = object.entrySet().iterator();
                fields.hasNext(); ) {
            Map.Entry<String, JsonElement> field = fields.next();
            quote(field.getKey(), text);
            text.append(':');
            write(field.getValue(), text);
            text.append(fields.hasNext() ? "," : "");
        }
        text.append('}');
    }

    private static void writeArray(JsonArray array, StringBuilder text) {
        text.append('[');
        for (Iterator<JsonElement> items = array.iterator(); items.hasNext(); ) {
            write(items.next(), text);
            text.append(items.hasNext() ? "," : "");
        }
        text.append(']');
    }

    private static void quote(String said, StringBuilder text) {
        text.append('"');
        for (int at = 0; at < said.length(); ) {
            int character = said.codePointAt(at);
            at += Character.charCount(character);
            switch (character) {
                case '"' -> text.append("\\\"");
                case '\\' -> text.append("\\\\");
                case '\n' -> text.append("\\n");
                case '\r' -> text.append("\\r");
                case '\t' -> text.append("\\t");
                case '\b' -> text.append("\\b");
                case '\f' -> text.append("\\f");
                default -> {
                    if (character < ' ' || isLoneSurrogate(character)) {
                        escape(character, text);
                    } else {
                        text.appendCodePoint(character);
                    }
                }
            }
        }
        text.append('"');
    }

    private static boolean isLoneSurrogate(int character) {
        return character >= Character.MIN_SURROGATE && character <= Character.MAX_SURROGATE;
    }

    private static void escape(int character, StringBuilder text) {
        text.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) {
            text.append(HEX.charAt(character >> shift & 0xf));
        }
    }
}
