package dev.toolgate.history;

import static dev.toolgate.internal.Json.field;
import static dev.toolgate.internal.Json.items;
import static dev.toolgate.internal.Json.text;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.CallStatus;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The snapshot: what a history said, as a JSON object that outlives its compaction. It is an entry
 * of its own kind, never text: a message that writes one down does not forge it.
 */
final class Snapshots {
    private static final String KIND = "toolgate_snapshot";
    private static final int VERSION = 1;
    private static final String STATUS = "CALL_STATUS_";
    // Well below what the wire carries, so that turns can be counted on from here.
    private static final BigInteger MAX_TURNS = BigInteger.valueOf(Integer.MAX_VALUE);

    private Snapshots() {}

    /** Whether an entry of a history is a snapshot, of whichever version. */
    static boolean isSnapshot(JsonElement entry) {
        return text(entry, "type").equals(KIND);
    }

    static JsonObject write(History history) {
        JsonObject snapshot = new JsonObject();
        snapshot.addProperty("type", KIND);
        snapshot.addProperty("version", VERSION);
        snapshot.addProperty("turns", history.turns());
        snapshot.add("discovered", Json.array(history.discovered()));
        JsonArray calls = new JsonArray();
        history.calls().forEach(call -> calls.add(write(call)));
        snapshot.add("calls", calls);
        return snapshot;
    }

    /** Reads what can be read; a later version's snapshot is read as far as it is the same. */
    static History read(JsonElement snapshot) {
        List<String> discovered =
                items(field(snapshot, "discovered")).stream()
                        .map(Reading::name)
                        .filter(name -> !name.isEmpty())
                        .toList();
        List<SeenCall> calls = new ArrayList<>();
        for (JsonElement call : items(field(snapshot, "calls"))) {
            String tool = Reading.name(field(call, "tool"));
            if (!tool.isEmpty()) {
                calls.add(
                        new SeenCall(
                                tool, status(call), count(field(call, "turn")), text(call, "id")));
            }
        }
        return new History(discovered, List.copyOf(calls), count(field(snapshot, "turns")));
    }

    private static JsonObject write(SeenCall call) {
        String status = call.status().name().substring(STATUS.length()).toLowerCase(Locale.ROOT);
        JsonObject written = Json.object("tool", call.tool(), "status", status);
        written.addProperty("turn", call.turn());
        written.addProperty("id", call.id());
        return written;
    }

    private static CallStatus status(JsonElement call) {
        return switch (text(call, "status")) {
            case "succeeded" -> CallStatus.CALL_STATUS_SUCCEEDED;
            case "failed" -> CallStatus.CALL_STATUS_FAILED;
            default -> CallStatus.CALL_STATUS_UNSPECIFIED;
        };
    }

    private static long count(JsonElement value) {
        if (!Json.isWhole(value)) {
            return 0;
        }
        return value.getAsBigInteger().max(BigInteger.ZERO).min(MAX_TURNS).longValue();
    }
}
