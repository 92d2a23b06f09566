package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.history.History;
import dev.toolgate.history.Removed;
import dev.toolgate.history.Stripped;
import dev.toolgate.internal.Json;
import dev.toolgate.prompt.Announcement;
import dev.toolgate.prompt.Layout;
import dev.toolgate.v1.ActiveTool;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.SearchToolsResponse;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** What every client does alike. */
class ConformanceTest {
    @TestFactory
    Stream<DynamicTest> scanReadsWhatEveryClientReads() {
        return Cases.each("history", "scan-", one -> assertJson(one.expect(), seen(one)));
    }

    @TestFactory
    Stream<DynamicTest> scanningAgainAfterACompactionChangesNothing() {
        List<Cases.Case> covered =
                Cases.read("history", "scan-").stream()
                        .filter(ConformanceTest::hasIdentifiers)
                        .toList();
        assertTrue(covered.size() > 20, covered.size() + " cases");
        return covered.stream()
                .map(
                        one ->
                                DynamicTest.dynamicTest(
                                        one.file() + ": " + Json.text(one.json(), "name"),
                                        () -> scanTwice(one)));
    }

    private static void scanTwice(Cases.Case one) {
        JsonArray messages = one.at("messages").getAsJsonArray();
        JsonArray kept = History.compacted(messages, messages, one.json().get("snapshot"));
        JsonObject again = History.scan(kept).snapshot();
        assertJson(Json.field(one.expect(), "calls"), again.get("calls"));
        assertJson(Json.field(one.expect(), "discovered"), again.get("discovered"));
    }

    private static boolean hasIdentifiers(Cases.Case one) {
        List<String> ids =
                Json.items(Json.field(one.expect(), "calls")).stream()
                        .map(call -> Json.text(call, "id"))
                        .toList();
        return !ids.contains("") && ids.stream().distinct().count() == ids.size();
    }

    private static JsonObject seen(Cases.Case one) {
        History history =
                History.scan(one.at("messages").getAsJsonArray(), one.json().get("snapshot"));
        JsonObject snapshot = history.snapshot();
        assertEquals("toolgate_snapshot", snapshot.remove("type").getAsString());
        assertEquals(1, snapshot.remove("version").getAsInt());
        assertEquals(history.calls().size(), history.state().build().getCallsCount());
        return snapshot;
    }

    @TestFactory
    Stream<DynamicTest> stripTakesOutWhatEveryClientTakesOut() {
        return Cases.each(
                "history",
                "strip",
                one -> {
                    List<String> available = Cases.texts(one.at("available"));
                    boolean references = one.at("references").getAsBoolean();
                    JsonElement before = one.at("messages").deepCopy();
                    Stripped stripped =
                            Stripped.of(one.at("messages").getAsJsonArray(), available, references);
                    assertJson(Json.field(one.expect(), "messages"), stripped.messages());
                    assertJson(Json.field(one.expect(), "removed"), removed(stripped.removed()));
                    assertJson(before, one.at("messages"));
                    Stripped again = Stripped.of(stripped.messages(), available, references);
                    assertJson(stripped.messages(), again.messages());
                    assertEquals(List.of(), again.removed());
                });
    }

    private static JsonArray removed(List<Removed> removed) {
        JsonArray told = new JsonArray();
        for (Removed one : removed) {
            JsonObject entry = Json.object("kind", one.kind(), "name", one.name());
            entry.addProperty("message", one.message());
            entry.addProperty("reason", one.reason().name().toLowerCase(Locale.ROOT));
            told.add(entry);
        }
        return told;
    }

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

    @Test
    void everyFileOfCasesIsRun() {
        assertTrue(Cases.read("history", "scan-").size() > 30);
    }

    private static void assertJson(JsonElement expected, JsonElement actual) {
        assertEquals(Cases.canonical(expected), Cases.canonical(actual));
    }
}
