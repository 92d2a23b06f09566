package dev.toolgate.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import dev.toolgate.ToolgateException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;

/** Failures as the protocol tells them. */
final class Failures {
    private Failures() {}

    static JsonObject of(String kind, String message) {
        JsonObject error = new JsonObject();
        error.addProperty("kind", kind);
        error.addProperty("message", message);
        return error;
    }

    static JsonObject ofCrash(Throwable failure) {
        StringWriter stack = new StringWriter();
        failure.printStackTrace(new PrintWriter(stack));
        return of("crash", stack.toString());
    }

    static JsonObject ofCall(ToolgateException failure) {
        JsonObject error = of("call", failure.serviceMessage());
        error.addProperty("code", failure.code().name());
        error.addProperty("reason", failure.reasonName());
        JsonObject metadata = new JsonObject();
        failure.metadata().forEach(metadata::addProperty);
        error.add("metadata", metadata);
        JsonArray violations = new JsonArray();
        for (ToolgateException.FieldViolation violation : failure.violations()) {
            JsonObject told = new JsonObject();
            told.addProperty("field", violation.field());
            told.addProperty("description", violation.description());
            violations.add(told);
        }
        error.add("field_violations", violations);
        error.add("retry_after", JsonNull.INSTANCE);
        failure.retryAfter().ifPresent(delay -> error.addProperty("retry_after", seconds(delay)));
        return error;
    }

    private static double seconds(Duration duration) {
        return duration.toNanos() / 1e9;
    }
}
