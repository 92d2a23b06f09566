package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import dev.toolgate.prompt.Announcement;
import dev.toolgate.prompt.Layout;
import dev.toolgate.v1.ActiveTool;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.SearchToolsResponse;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** What every client does alike. */
class ConformanceTest {
    @TestFactory
    Stream<DynamicTest> promptsAreLaidOutAsEveryClientLaysThemOut() {
        return Cases.each(
                "prompt",
                "layout",
                one -> {
                    List<ActiveTool> tools = Cases.wireTools(one.at("tools"));
                    Map<String, String> pool = Cases.pairs(one.at("summaries"));
                    String system = one.at("system").getAsString();
                    JsonObject laidOut = new JsonObject();
                    laidOut.add("anthropic_system", Layout.anthropicSystem(system, pool));
                    laidOut.add("openai_system", Layout.openAiSystem(system, pool));
                    laidOut.add("user_message", Layout.userMessage(one.at("content"), tools));
                    laidOut.add("responses_input", Layout.responsesInput(one.at("content"), tools));
                    assertJson(one.expect(), laidOut);
                });
    }

    @TestFactory
    Stream<DynamicTest> announcementsAreWhatEveryClientAnnounces() {
        return Cases.each(
                "prompt",
                "announce",
                one -> {
                    JsonElement announced = one.at("announced");
                    Announcement said =
                            Announcement.of(
                                    Cases.pairs(one.at("searchable")),
                                    Cases.texts(one.at("loaded")),
                                    announced.isJsonNull() ? null : Cases.texts(announced));
                    JsonArray added = new JsonArray();
                    said.added()
                            .forEach(
                                    (name, summary) ->
                                            added.add(Json.array(List.of(name, summary))));
                    JsonObject told = new JsonObject();
                    told.addProperty("full", said.full());
                    told.add("added", added);
                    told.add("removed", Json.array(said.removed()));
                    told.add("announced", Json.array(said.announced()));
                    told.addProperty("text", said.text());
                    assertJson(one.expect(), told);
                });
    }

    @TestFactory
    Stream<DynamicTest> theSearchIsDefinedAsEveryClientDefinesIt() {
        return Cases.each(
                "search",
                "tool",
                one -> {
                    ActiveTool tool = SearchTool.TOOL;
                    JsonObject defined =
                            Json.object("name", tool.getName(), "model_name", tool.getModelName());
                    defined.addProperty("description", tool.getDescription());
                    defined.add("input_schema", Json.parse(tool.getInputSchemaJson()));
                    defined.add("annotations", Json.parse(tool.getAnnotationsJson()));
                    defined.addProperty("signature", tool.getSignature());
                    defined.addProperty("signature_lossy", tool.getSignatureLossy());
                    defined.addProperty("schema_tokens", tool.getSchemaTokens());
                    assertJson(one.expect(), defined);
                });
    }

    @TestFactory
    Stream<DynamicTest> searchesAreAnsweredAsEveryClientAnswersThem() {
        return Cases.each(
                "search",
                "answer",
                one -> {
                    SearchAnswer answer =
                            SearchAnswer.ofFound(
                                    SearchToolsResponse.newBuilder()
                                            .addAllTools(
                                                    Cases.wireTools(
                                                            Json.field(one.at("found"), "tools")))
                                            .setMessage(Json.text(one.at("found"), "message"))
                                            .setDeferredTools(
                                                    Cases.count(
                                                            Json.field(
                                                                    one.at("found"),
                                                                    "deferred_tools")))
                                            .addAllPendingServers(
                                                    Cases.texts(
                                                            Json.field(
                                                                    one.at("found"),
                                                                    "pending_servers")))
                                            .build());
                    assertJson(one.expect(), Json.parse(answer.text()));
                    assertFalse(answer.failed());
                });
    }

    @TestFactory
    Stream<DynamicTest> aMistakenSearchIsToldAsEveryClientTellsIt() {
        return Cases.each(
                "search",
                "mistake",
                one -> {
                    JsonElement arguments = one.at("arguments");
                    String written =
                            Json.isText(arguments)
                                    ? arguments.getAsString()
                                    : Json.write(arguments);
                    RequestedCall call = Calls.of(SearchTool.NAME, written);
                    SearchToolsRequest rest =
                            SearchToolsRequest.newBuilder().setActiveSetHandle("h").build();
                    // Nothing is sent.
                    try (ToolgateClient client = ToolgateClient.create("127.0.0.1:1")) {
                        for (SearchAnswer answer :
                                List.of(
                                        client.answerSearch(call, rest),
                                        client.async().answerSearch(call, rest).join())) {
                            assertJson(one.expect(), Json.parse(answer.text()));
                            assertTrue(
                                    answer.failed()
                                            && answer.found().isEmpty()
                                            && answer.tools().isEmpty());
                            assertEquals("h", answer.handle());
                        }
                    }
                });
    }

    private static void assertJson(JsonElement expected, JsonElement actual) {
        assertEquals(Cases.canonical(expected), Cases.canonical(actual));
    }
}
