package dev.toolgate.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.toolgate.ModelRequest;
import dev.toolgate.ProviderTools;
import dev.toolgate.SearchAnswer;
import dev.toolgate.SearchResults;
import dev.toolgate.SearchTool;
import dev.toolgate.ToolgateClient;
import dev.toolgate.prompt.Announcement;
import dev.toolgate.prompt.Layout;
import dev.toolgate.v1.ActiveTool;
import dev.toolgate.v1.AgentState;
import dev.toolgate.v1.Detail;
import dev.toolgate.v1.RenderLoss;
import dev.toolgate.v1.RenderedTools;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouteResponse;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.SearchToolsResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** What a model is shown: rendered tools, the prompt's parts, and the search. */
final class PromptOperations {
    private PromptOperations() {}

    static void addTo(Map<String, Operations.Operation> operations, Clients clients) {
        operations.put("rendered", (client, arguments) -> rendered(clients.of(client), arguments));
        operations.put(
                "model_request",
                (client, arguments) -> modelRequest(clients.of(client), arguments));
        operations.put("layout", (client, arguments) -> layout(arguments));
        operations.put("announce", (client, arguments) -> announce(arguments));
        operations.put("search_tool", (client, arguments) -> searchTool());
        operations.put("search_answer", (client, arguments) -> searchAnswer(arguments));
        operations.put("search_references", (client, arguments) -> searchReferences(arguments));
        operations.put(
                "answer_search",
                (client, arguments) -> {
                    SearchAnswer answer =
                            clients.of(client).answerSearch(call(arguments), rest(arguments));
                    JsonArray tools = new JsonArray();
                    answer.tools().forEach(tool -> tools.add(tool.getModelName()));
                    JsonObject told = told(answer);
                    told.addProperty("handle", answer.handle());
                    told.add("tools", tools);
                    return told;
                });
    }

    /** Routes, and gives the rendered tools of the answer. */
    private static JsonObject rendered(ToolgateClient client, JsonObject arguments)
            throws Exception {
        RenderedTools rendered = route(client, arguments).getRendered();
        JsonArray losses = new JsonArray();
        rendered.getLossesList().forEach(loss -> losses.add(write(loss)));
        JsonObject answer = new JsonObject();
        answer.add("tools", ProviderTools.of(rendered));
        answer.add("losses", losses);
        return answer;
    }

    /** Routes, and gives what to send to the model. */
    private static JsonObject modelRequest(ToolgateClient client, JsonObject arguments)
            throws Exception {
        RouteResponse turn = route(client, arguments);
        ModelRequest request = ModelRequest.of(turn.getRendered());
        JsonArray betas = new JsonArray();
        request.betas().forEach(betas::add);
        JsonObject answer = new JsonObject();
        answer.add("tools", request.tools());
        answer.add("messages", request.messages());
        answer.add("betas", betas);
        answer.addProperty("ledger", request.ledger());
        String strategy = request.strategy().name().replace("PROMPT_STRATEGY_", "");
        answer.addProperty("strategy", strategy);
        answer.addProperty("reason", request.reason().name().replace("STRATEGY_REASON_", ""));
        answer.addProperty("reason_message", request.reasonMessage());
        answer.addProperty("handle", turn.getActiveSetHandle());
        return answer;
    }

    private static RouteResponse route(ToolgateClient client, JsonObject arguments)
            throws Exception {
        JsonObject request = Wire.get(arguments, "request").getAsJsonObject();
        return client.route(Wire.read(request, RouteRequest.newBuilder()).build());
    }

    private static JsonObject write(RenderLoss loss) {
        JsonObject written = new JsonObject();
        written.addProperty("tool", loss.getModelName());
        written.addProperty("pointer", loss.getPointer());
        written.addProperty("keyword", loss.getKeyword());
        written.addProperty("note", loss.getMessage());
        return written;
    }

    private static List<ActiveTool> tools(JsonArray tools) throws Exception {
        List<ActiveTool> read = new ArrayList<>();
        for (JsonElement tool : tools) {
            read.add(Wire.read(tool.getAsJsonObject(), ActiveTool.newBuilder()).build());
        }
        return read;
    }

    private static JsonObject layout(JsonObject arguments) throws Exception {
        String system = Wire.text(arguments, "system");
        Map<String, String> summaries = Wire.pairs(arguments, "summaries");
        List<ActiveTool> tools = tools(Wire.list(arguments, "tools"));
        JsonElement content = Wire.get(arguments, "content");
        JsonObject laidOut = new JsonObject();
        laidOut.add("anthropic_system", Layout.anthropicSystem(system, summaries));
        laidOut.add("openai_system", Layout.openAiSystem(system, summaries));
        laidOut.add("user_message", Layout.userMessage(content, tools));
        laidOut.add("responses_input", Layout.responsesInput(content, tools));
        return laidOut;
    }

    private static JsonObject announce(JsonObject arguments) {
        boolean isFirst = Wire.get(arguments, "announced").isJsonNull();
        Announcement said =
                Announcement.of(
                        Wire.pairs(arguments, "searchable"),
                        Wire.texts(arguments, "loaded"),
                        isFirst ? null : Wire.texts(arguments, "announced"));
        JsonObject told = new JsonObject();
        told.addProperty("full", said.full());
        told.add("added", Wire.pairs(said.added()));
        told.add("removed", Wire.array(said.removed()));
        told.add("announced", Wire.array(said.announced()));
        told.addProperty("text", said.text());
        return told;
    }

    private static JsonObject searchTool() {
        ActiveTool tool = SearchTool.TOOL;
        JsonObject defined = new JsonObject();
        defined.addProperty("name", tool.getName());
        defined.addProperty("model_name", tool.getModelName());
        defined.addProperty("description", tool.getDescription());
        defined.add("input_schema", JsonParser.parseString(tool.getInputSchemaJson()));
        defined.add("annotations", JsonParser.parseString(tool.getAnnotationsJson()));
        defined.addProperty("signature", tool.getSignature());
        defined.addProperty("signature_lossy", tool.getSignatureLossy());
        defined.addProperty("schema_tokens", tool.getSchemaTokens());
        return defined;
    }

    private static JsonObject searchAnswer(JsonObject arguments) throws Exception {
        return told(SearchAnswer.ofFound(found(arguments)));
    }

    private static JsonObject searchReferences(JsonObject arguments) throws Exception {
        JsonObject answer = new JsonObject();
        answer.add("content", SearchResults.toToolReferences(found(arguments)));
        return answer;
    }

    private static SearchToolsResponse found(JsonObject arguments) throws Exception {
        return Wire.read(arguments.get("found"), SearchToolsResponse.newBuilder()).build();
    }

    private static JsonObject told(SearchAnswer answer) {
        JsonObject told = new JsonObject();
        told.addProperty("text", answer.text());
        told.addProperty("failed", answer.failed());
        return told;
    }

    private static RequestedCall call(JsonObject arguments) {
        JsonObject call = arguments.getAsJsonObject("call");
        JsonElement given = Wire.get(call, "arguments");
        boolean isText = given.isJsonPrimitive() && given.getAsJsonPrimitive().isString();
        return RequestedCall.newBuilder()
                .setTool(Wire.text(call, "tool"))
                .setArgumentsJson(isText ? given.getAsString() : given.toString())
                .setCallId(Wire.text(call, "call_id"))
                .build();
    }

    private static SearchToolsRequest rest(JsonObject arguments) throws Exception {
        SearchToolsRequest.Builder rest =
                SearchToolsRequest.newBuilder()
                        .setActiveSetHandle(Wire.text(arguments, "handle"))
                        .setState(Wire.read(arguments.get("state"), AgentState.newBuilder()));
        String detail = Wire.text(arguments, "detail").toUpperCase(Locale.ROOT);
        if (!detail.isEmpty()) {
            rest.setDetail(
                    Detail.valueOf(detail.startsWith("DETAIL_") ? detail : "DETAIL_" + detail));
        }
        return rest.build();
    }
}
