package dev.toolgate.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.Calls;
import dev.toolgate.Preconditions;
import dev.toolgate.SummaryPool;
import dev.toolgate.Verdicts;
import dev.toolgate.history.History;
import dev.toolgate.history.Removed;
import dev.toolgate.history.Stripped;
import dev.toolgate.v1.GateVerdict;
import dev.toolgate.v1.Precondition;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.SummaryPoolDelta;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Histories, calls, verdicts, pools and preconditions: nothing here calls the service. */
final class HelperOperations {
    private HelperOperations() {}

    static void addTo(Map<String, Operations.Operation> operations) {
        operations.put("scan", (client, arguments) -> scan(arguments));
        operations.put("compacted", (client, arguments) -> compacted(arguments));
        operations.put("strip", (client, arguments) -> strip(arguments));
        operations.put(
                "tool_error",
                (client, arguments) ->
                        Verdicts.toToolError(
                                Wire.read(arguments.get("verdict"), GateVerdict.newBuilder())
                                        .build()));
        operations.put("read_call", (client, arguments) -> Wire.write(call(arguments)));
        operations.put("apply_pool", (client, arguments) -> applyPool(arguments));
        operations.put(
                "precondition",
                (client, arguments) -> Wire.write(precondition(arguments.getAsJsonObject("expr"))));
    }

    private static JsonObject scan(JsonObject arguments) throws Exception {
        History history = History.scan(Wire.list(arguments, "messages"), snapshot(arguments));
        JsonObject snapshot = history.snapshot();
        snapshot.remove("type");
        snapshot.remove("version");
        JsonObject answer = new JsonObject();
        answer.add("snapshot", snapshot);
        answer.add("state", Wire.write(history.state()));
        return answer;
    }

    private static JsonObject compacted(JsonObject arguments) {
        JsonArray messages = Wire.list(arguments, "messages");
        return answer(
                "messages",
                History.compacted(messages, Wire.list(arguments, "kept"), snapshot(arguments)));
    }

    private static JsonElement snapshot(JsonObject arguments) {
        JsonElement snapshot = Wire.get(arguments, "snapshot");
        return snapshot.isJsonNull() ? null : snapshot;
    }

    private static JsonObject strip(JsonObject arguments) {
        Stripped stripped =
                Stripped.of(
                        Wire.list(arguments, "messages"),
                        Wire.texts(arguments, "available"),
                        Wire.flag(arguments, "references"));
        JsonArray removed = new JsonArray();
        for (Removed one : stripped.removed()) {
            JsonObject told = new JsonObject();
            told.addProperty("message", one.message());
            told.addProperty("kind", one.kind());
            told.addProperty("name", one.name());
            told.addProperty("reason", one.reason().name().toLowerCase(Locale.ROOT));
            removed.add(told);
        }
        JsonObject answer = answer("messages", stripped.messages());
        answer.add("removed", removed);
        return answer;
    }

    private static RequestedCall call(JsonObject arguments) {
        JsonObject call = arguments.getAsJsonObject("call");
        String provider = Wire.text(arguments, "provider");
        return switch (provider) {
            case "anthropic" -> Calls.fromAnthropic(call);
            case "openai" -> Calls.fromOpenAi(call);
            case "openai_responses" -> Calls.fromOpenAiResponses(call);
            case "gemini" -> Calls.fromGemini(call);
            default -> throw new NullPointerException("no provider " + provider);
        };
    }

    private static JsonObject applyPool(JsonObject arguments) throws Exception {
        SummaryPoolDelta pool =
                Wire.read(arguments.get("pool"), SummaryPoolDelta.newBuilder()).build();
        return answer("held", Wire.pairs(SummaryPool.applyTo(pool, Wire.pairs(arguments, "held"))));
    }

    private static Precondition precondition(JsonObject expression) {
        Map.Entry<String, JsonElement> only = expression.entrySet().iterator().next();
        JsonElement operand = only.getValue();
        return switch (only.getKey()) {
            case "is_authenticated" -> Preconditions.isAuthenticated(operand.getAsString());
            case "has_prior_tool_output" -> Preconditions.hasPriorToolOutput(operand.getAsString());
            case "milestone_reached" -> Preconditions.milestoneReached(operand.getAsString());
            case "cel" -> Preconditions.cel(operand.getAsString());
            case "all_of" -> Preconditions.allOf(operands(operand));
            case "any_of" -> Preconditions.anyOf(operands(operand));
            case "not" -> Preconditions.not(precondition(operand.getAsJsonObject()));
            default -> throw new NullPointerException("no precondition " + only.getKey());
        };
    }

    private static Precondition[] operands(JsonElement list) {
        List<Precondition> operands = new ArrayList<>();
        list.getAsJsonArray().forEach(one -> operands.add(precondition(one.getAsJsonObject())));
        return operands.toArray(Precondition[]::new);
    }

    private static JsonObject answer(String key, JsonElement value) {
        JsonObject answer = new JsonObject();
        answer.add(key, value);
        return answer;
    }
}
