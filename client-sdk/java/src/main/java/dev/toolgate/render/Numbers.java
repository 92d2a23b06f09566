package dev.toolgate.render;

import com.google.gson.JsonElement;
import com.google.gson.JsonPrimitive;
import dev.toolgate.internal.Json;
import java.math.BigInteger;

/**
 * Numbers of schemas. One that is not changed keeps its digits; others are as exact as a double.
 */
final class Numbers {
    private Numbers() {}

    /** A count as a whole number, also where it was written {@code 1.0}. */
    static JsonElement whole(JsonElement count) {
        return Json.isWhole(count) ? count : new JsonPrimitive((long) count.getAsDouble());
    }

    /** The nearest whole number that an exclusive bound lets in. */
    static JsonElement beyond(JsonElement limit, boolean isMinimum) {
        if (Json.isWhole(limit)) {
            BigInteger step = isMinimum ? BigInteger.ONE : BigInteger.ONE.negate();
            return new JsonPrimitive(limit.getAsBigInteger().add(step));
        }
        double bound = limit.getAsDouble();
        return new JsonPrimitive((long) (isMinimum ? Math.floor(bound) + 1 : Math.ceil(bound) - 1));
    }

    /** Whether one bound lets in less than another. */
    static boolean isTighter(JsonElement one, JsonElement other, boolean isMinimum) {
        double difference = one.getAsDouble() - other.getAsDouble();
        return isMinimum ? difference > 0 : difference < 0;
    }
}
