package dev.toolgate.conformance;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.stream.JsonReader;
import dev.toolgate.ToolgateException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;

/** Reads a request a line, and writes an answer a line. */
public final class Driver {
    private static final int MAX_NESTING = 10_000;

    private Driver() {}

    /**
     * Runs until the input ends.
     *
     * @param arguments none
     * @throws Exception when the streams break
     */
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Clients clients = new Clients();
                WatchOperations watches = new WatchOperations(clients)) {
            Operations operations = new Operations(clients, watches);
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(ascii(answer(operations, line).toString()));
                out.flush();
            }
        }
    }

    private static JsonObject answer(Operations operations, String line) {
        JsonObject answer = new JsonObject();
        try {
            answer.add("ok", operations.run(parse(line).getAsJsonObject()));
        } catch (ToolgateException e) {
            answer.add("error", Failures.ofCall(e));
        } catch (Operations.UnknownOperationException e) {
            answer.add("error", Failures.of("driver", e.getMessage()));
        } catch (IllegalArgumentException e) {
            answer.add("error", Failures.of("usage", e.getMessage()));
        } catch (Exception | StackOverflowError e) {
            answer.add("error", Failures.ofCrash(e));
        }
        return answer;
    }

    private static JsonElement parse(String line) throws IOException {
        try (JsonReader reader = new JsonReader(new StringReader(line))) {
            reader.setNestingLimit(MAX_NESTING);
            return JsonParser.parseReader(reader);
        }
    }

    /** JSON with all but ASCII escaped: a lone surrogate outlives the pipe so. */
    private static String ascii(String json) {
        StringBuilder text = new StringBuilder(json.length());
        for (int at = 0; at < json.length(); at++) {
            char character = json.charAt(at);
            if (character < 0x7f) {
                text.append(character);
            } else {
                text.append(String.format("\\u%04x", (int) character));
            }
        }
        return text.toString();
    }
}
