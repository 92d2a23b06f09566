package dev.toolgate.examples;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import dev.toolgate.Calls;
import dev.toolgate.ConversationState;
import dev.toolgate.ProviderTools;
import dev.toolgate.SearchAnswer;
import dev.toolgate.SearchTool;
import dev.toolgate.ToolgateClient;
import dev.toolgate.Verdicts;
import dev.toolgate.v1.AgentState;
import dev.toolgate.v1.GateRequest;
import dev.toolgate.v1.GateVerdict;
import dev.toolgate.v1.Intent;
import dev.toolgate.v1.RenderOptions;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouteResponse;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.ToolFormat;

/** An agent's loop over Anthropic's Messages API. */
public final class Conversation {
    // The few tools with schemas, and the search that makes any other of them callable.
    private static final RenderOptions RENDER =
            RenderOptions.newBuilder()
                    .setFormat(ToolFormat.TOOL_FORMAT_ANTHROPIC)
                    .setSearchTool(true)
                    .build();

    private final ToolgateClient client;
    private final Model model;
    private final Tools tools;
    private JsonArray messages = new JsonArray();
    // What was called and discovered, up to the last route.
    private String snapshot = "";
    private String handle = "";

    /** The provider's API: the body of a request in, the answer's out. */
    public interface Model {
        JsonObject create(JsonObject request);
    }

    /** Runs a tool of an MCP server. */
    public interface Tools {
        String run(String server, String name, String argumentsJson);
    }

    public Conversation(ToolgateClient client, Model model, Tools tools) {
        this.client = client;
        this.model = model;
        this.tools = tools;
    }

    /** Takes what the user says, and gives the model's words once it calls no more tools. */
    public String say(String text) {
        messages.add(message("user", new JsonPrimitive(text)));
        while (true) {
            // The service reads what was called and discovered, for preconditions and for the set.
            AgentState.Builder state = ConversationState.of(messages, snapshot);
            RouteResponse turn =
                    client.route(
                            RouteRequest.newBuilder()
                                    .addIntents(Intent.newBuilder().setText(text))
                                    .setState(state.addScopes("chat:write"))
                                    .setActiveSetHandle(handle)
                                    .setRender(RENDER)
                                    .build());
            handle = turn.getActiveSetHandle();
            snapshot = turn.getConversationSnapshot();
            JsonArray said = model.create(request(turn)).getAsJsonArray("content");
            messages.add(message("assistant", said));
            JsonArray results = new JsonArray();
            StringBuilder words = new StringBuilder();
            for (JsonElement element : said) {
                JsonObject block = element.getAsJsonObject();
                if (block.get("type").getAsString().equals("tool_use")) {
                    results.add(result(Calls.fromAnthropic(block)));
                } else if (block.get("type").getAsString().equals("text")) {
                    words.append(block.get("text").getAsString());
                }
            }
            if (results.isEmpty()) {
                return words.toString();
            }
            messages.add(message("user", results));
        }
    }

    /**
     * Puts a summary in place of all messages. What was called and discovered outlives them in the
     * snapshot.
     */
    public void compact(String summary) {
        messages = new JsonArray();
        messages.add(message("user", new JsonPrimitive(summary)));
    }

    /** What was called and discovered, to keep beside the messages. */
    public String snapshot() {
        return snapshot;
    }

    private JsonObject request(RouteResponse turn) {
        JsonObject request = new JsonObject();
        request.addProperty("model", "a-model");
        request.addProperty("max_tokens", 1024);
        request.addProperty("system", "Be brief.");
        request.add("tools", ProviderTools.of(turn.getRendered()));
        request.add("messages", messages);
        return request;
    }

    private JsonObject result(RequestedCall call) {
        // Within the turn the snapshot stands for all messages.
        AgentState state = ConversationState.ofSnapshot(snapshot).addScopes("chat:write").build();
        if (call.getTool().equals(SearchTool.NAME)) {
            SearchToolsRequest rest =
                    SearchToolsRequest.newBuilder()
                            .setActiveSetHandle(handle)
                            .setState(state)
                            .build();
            SearchAnswer answer = client.answerSearch(call, rest);
            // The next route keeps what was found, with its schemas.
            handle = answer.handle();
            return result(call, answer.text(), answer.failed());
        }
        GateRequest request =
                GateRequest.newBuilder()
                        .setActiveSetHandle(handle)
                        .addCalls(call)
                        .setState(state)
                        .build();
        GateVerdict verdict = client.gate(request).getVerdicts(0);
        if (!verdict.getAllowed()) {
            // The refusal says what to do instead: the model corrects itself.
            return result(call, Verdicts.toToolError(verdict).toString(), true);
        }
        // Set when the model's arguments came as a string, as null, or not at all.
        String mended = verdict.getArgumentsJson();
        String arguments = mended.isEmpty() ? call.getArgumentsJson() : mended;
        return result(call, tools.run(verdict.getServer(), verdict.getName(), arguments), false);
    }

    private static JsonObject result(RequestedCall call, String content, boolean failed) {
        JsonObject result = new JsonObject();
        result.addProperty("type", "tool_result");
        result.addProperty("tool_use_id", call.getCallId());
        result.addProperty("content", content);
        result.addProperty("is_error", failed);
        return result;
    }

    private static JsonObject message(String role, JsonElement content) {
        JsonObject message = new JsonObject();
        message.addProperty("role", role);
        message.add("content", content);
        return message;
    }
}
