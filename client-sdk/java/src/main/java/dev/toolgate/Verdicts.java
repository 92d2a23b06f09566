package dev.toolgate;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ArgumentViolation;
import dev.toolgate.v1.GateVerdict;
import dev.toolgate.v1.RefusalCode;
import java.util.Locale;

/** What to do with Gate's verdicts. */
public final class Verdicts {
    private static final String CODE = "REFUSAL_CODE_";

    private Verdicts() {}

    /**
     * The tool result to hand to the model in place of the call's own: {@code error} is the refusal
     * code in lower case; the other keys are there when they say something.
     *
     * @param verdict a refusal
     * @return a JSON object
     * @throws IllegalArgumentException when the call was allowed
     * @throws com.google.gson.JsonParseException when the schema is not JSON: not one that the
     *     service sent
     */
    public static JsonObject toToolError(GateVerdict verdict) {
        if (verdict.getAllowed()) {
            throw new IllegalArgumentException("an allowed call has no error");
        }
        JsonObject result = Json.object("error", code(verdict), "message", verdict.getMessage());
        if (verdict.getAvailableToolsCount() > 0 || namesAlternatives(verdict.getCode())) {
            result.add("available", Json.array(verdict.getAvailableToolsList()));
        }
        if (!verdict.getSearchQuery().isEmpty()) {
            result.addProperty("search", verdict.getSearchQuery());
        }
        if (verdict.getViolationsCount() > 0) {
            JsonArray violations = new JsonArray();
            for (ArgumentViolation violation : verdict.getViolationsList()) {
                violations.add(
                        Json.object(
                                "pointer",
                                violation.getPointer(),
                                "message",
                                violation.getMessage()));
            }
            result.add("violations", violations);
        }
        if (!verdict.getInputSchemaJson().isEmpty()) {
            result.add("input_schema", Json.parse(verdict.getInputSchemaJson()));
        }
        if (verdict.getUnlockCount() > 0) {
            result.add("unlock", Json.array(verdict.getUnlockList()));
        }
        return result;
    }

    private static boolean namesAlternatives(RefusalCode code) {
        return code == RefusalCode.REFUSAL_CODE_TOOL_NOT_AVAILABLE
                || code == RefusalCode.REFUSAL_CODE_UNKNOWN_TOOL;
    }

    /** A code that this version does not know has no name, and is told by its number. */
    private static String code(GateVerdict verdict) {
        RefusalCode code = verdict.getCode();
        if (code == RefusalCode.UNRECOGNIZED) {
            return "refused_" + verdict.getCodeValue();
        }
        return code.name().substring(CODE.length()).toLowerCase(Locale.ROOT);
    }
}
