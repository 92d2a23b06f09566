package dev.toolgate.conformance;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.Calls;
import dev.toolgate.Preconditions;
import dev.toolgate.SummaryPool;
import dev.toolgate.Verdicts;
import dev.toolgate.v1.GateVerdict;
import dev.toolgate.v1.Precondition;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.SummaryPoolDelta;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Calls, verdicts, pools and preconditions: nothing here calls the service. */
final class HelperOperations {
    private HelperOperations() {}

    static void addTo(Map<String, Operations.Operation> operations) {
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
