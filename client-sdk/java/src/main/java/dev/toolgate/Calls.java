package dev.toolgate;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.RequestedCall;

/**
 * Reads a model's calls from the shapes of the providers' APIs. Arguments that are a text are
 * passed on as they are, mistakes included; others as their JSON.
 */
public final class Calls {
    private Calls() {}

    /**
     * A call of your own.
     *
     * @param tool the name as the model wrote it
     * @param argumentsJson the arguments as JSON text
     * @return the call
     */
    public static RequestedCall of(String tool, String argumentsJson) {
        return RequestedCall.newBuilder().setTool(tool).setArgumentsJson(argumentsJson).build();
    }

    /**
     * Reads a {@code tool_use} content block of Anthropic's Messages API.
     *
     * @param block the block
     * @return the call
     * @throws IllegalArgumentException when it has no such shape
     */
    public static RequestedCall fromAnthropic(JsonObject block) {
        return call(block, "name", "input", "id");
    }

    /**
     * Reads one of the {@code tool_calls} of OpenAI's Chat Completions API.
     *
     * @param call the call
     * @return the call
     * @throws IllegalArgumentException when it has no such shape
     */
    public static RequestedCall fromOpenAi(JsonObject call) {
        JsonElement function = Json.field(call, "function");
        if (!function.isJsonObject()) {
            throw new IllegalArgumentException("function: must be an object");
        }
        return call(function.getAsJsonObject(), "name", "arguments", null).toBuilder()
                .setCallId(required(call, "id"))
                .build();
    }

    /**
     * Reads a {@code function_call} item of OpenAI's Responses API.
     *
     * @param item the item
     * @return the call
     * @throws IllegalArgumentException when it has no such shape
     */
    public static RequestedCall fromOpenAiResponses(JsonObject item) {
        return call(item, "name", "arguments", "call_id");
    }

    /**
     * Reads a {@code functionCall} of Gemini's API; older models give it no identifier.
     *
     * @param call the call
     * @return the call
     * @throws IllegalArgumentException when it has no such shape
     */
    public static RequestedCall fromGemini(JsonObject call) {
        JsonElement arguments = Json.field(call, "args");
        return RequestedCall.newBuilder()
                .setTool(required(call, "name"))
                .setArgumentsJson(arguments.isJsonNull() ? "{}" : argumentsText(arguments))
                .setCallId(Json.text(call, "id"))
                .build();
    }

    private static RequestedCall call(JsonObject from, String name, String arguments, String id) {
        if (!from.has(arguments)) {
            throw new IllegalArgumentException(arguments + ": is missing");
        }
        RequestedCall.Builder call =
                RequestedCall.newBuilder()
                        .setTool(required(from, name))
                        .setArgumentsJson(argumentsText(from.get(arguments)));
        return id == null ? call.build() : call.setCallId(required(from, id)).build();
    }

    private static String argumentsText(JsonElement arguments) {
        return Json.isText(arguments) ? arguments.getAsString() : Json.write(arguments);
    }

    private static String required(JsonObject from, String key) {
        JsonElement value = Json.field(from, key);
        if (!Json.isText(value)) {
            throw new IllegalArgumentException(key + ": must be a text");
        }
        return value.getAsString();
    }
}
