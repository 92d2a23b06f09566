package dev.toolgate;

import static dev.toolgate.Preconditions.allOf;
import static dev.toolgate.Preconditions.anyOf;
import static dev.toolgate.Preconditions.hasPriorToolOutput;
import static dev.toolgate.Preconditions.isAuthenticated;
import static dev.toolgate.Preconditions.milestoneReached;
import static dev.toolgate.Preconditions.not;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import dev.toolgate.v1.ArgumentViolation;
import dev.toolgate.v1.GateVerdict;
import dev.toolgate.v1.Precondition;
import dev.toolgate.v1.RefusalCode;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.SearchToolsResponse;
import dev.toolgate.v1.SummaryEntry;
import dev.toolgate.v1.SummaryPoolDelta;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Helpers that the shared cases do not reach. */
class HelpersTest {
    @Test
    void callsAreReadFromTheProvidersShapes() {
        RequestedCall expected =
                RequestedCall.newBuilder()
                        .setTool("a")
                        .setArgumentsJson("{\"x\":1.50}")
                        .setCallId("c")
                        .build();
        assertEquals(
                expected, Calls.fromAnthropic(object("{'id':'c','name':'a','input':{'x':1.50}}")));
        assertEquals(
                expected,
                Calls.fromOpenAi(
                        object(
                                "{'id':'c','function':{'name':'a','arguments':'{\\\"x\\\":1.50}'}}")));
        assertEquals(
                expected,
                Calls.fromOpenAiResponses(
                        object("{'call_id':'c','name':'a','arguments':'{\\\"x\\\":1.50}'}")));
        assertEquals(expected, Calls.fromGemini(object("{'id':'c','name':'a','args':{'x':1.50}}")));
        assertEquals(Calls.of("a", "{}"), Calls.fromGemini(object("{'name':'a'}")));
        assertEquals(
                "{",
                Calls.fromOpenAiResponses(object("{'call_id':'','name':'a','arguments':'{'}"))
                        .getArgumentsJson());
    }

    @Test
    void aCallOfAnotherShapeIsRefused() {
        assertSays(
                "name: must be a text", () -> Calls.fromAnthropic(object("{'id':'c','input':{}}")));
        assertSays("input: is missing", () -> Calls.fromAnthropic(object("{'id':'c','name':'a'}")));
        assertSays("function: must be an object", () -> Calls.fromOpenAi(object("{'id':'c'}")));
        assertSays(
                "call_id: must be a text",
                () -> Calls.fromOpenAiResponses(object("{'name':'a','arguments':''}")));
    }

    @Test
    void aLoneSurrogateInArgumentsReachesTheWireAsAnEscape() {
        RequestedCall call =
                Calls.fromGemini(
                        object("{'name':'a','args':{'x':'\\ud800','y':'\\ud83d\\ude00'}}"));
        assertEquals("{\"x\":\"\\ud800\",\"y\":\"\ud83d\ude00\"}", call.getArgumentsJson());
    }

    @Test
    void aRefusalBecomesAResultForTheModel() {
        GateVerdict verdict =
                GateVerdict.newBuilder()
                        .setCode(RefusalCode.REFUSAL_CODE_ARGUMENTS_INVALID)
                        .setMessage("no")
                        .addViolations(
                                ArgumentViolation.newBuilder().setPointer("/a").setMessage("m"))
                        .setInputSchemaJson("{\"b\": 1.50, \"a\": 1e400}")
                        .addUnlock("u")
                        .setSearchQuery("select:a")
                        .build();
        assertEquals(
                "{\"error\":\"arguments_invalid\",\"message\":\"no\",\"search\":\"select:a\",\"violations\":"
                        + "[{\"pointer\":\"/a\",\"message\":\"m\"}],\"input_schema\":{\"b\":1.50,\"a\":1e400},"
                        + "\"unlock\":[\"u\"]}",
                Json.write(Verdicts.toToolError(verdict)));
        GateVerdict unknown =
                GateVerdict.newBuilder().setCode(RefusalCode.REFUSAL_CODE_UNKNOWN_TOOL).build();
        assertEquals(
                "{\"error\":\"unknown_tool\",\"message\":\"\",\"available\":[]}",
                Json.write(Verdicts.toToolError(unknown)));
        assertEquals(
                "refused_99",
                Verdicts.toToolError(GateVerdict.newBuilder().setCodeValue(99).build())
                        .get("error")
                        .getAsString());
        assertSays(
                "an allowed call has no error",
                () -> Verdicts.toToolError(GateVerdict.newBuilder().setAllowed(true).build()));
    }

    @Test
    void foundToolsBecomeReferences() {
        SearchToolsResponse found =
                SearchToolsResponse.newBuilder()
                        .addTools(ActiveTool.newBuilder().setModelName("a"))
                        .build();
        assertEquals(
                "[{\"type\":\"tool_reference\",\"tool_name\":\"a\"}]",
                Json.write(SearchResults.toToolReferences(found)));
    }

    @Test
    void aChangedSummaryMovesToTheEnd() {
        Map<String, String> held = new LinkedHashMap<>();
        held.put("a", "1");
        held.put("b", "2");
        held.put("c", "3");
        SummaryPoolDelta change =
                SummaryPoolDelta.newBuilder()
                        .addRemoved("b")
                        .addAdded(SummaryEntry.newBuilder().setModelName("a").setSummary("4"))
                        .build();
        assertEquals("{c=3, a=4}", SummaryPool.applyTo(change, held).toString());
        assertEquals(
                "{a=4}",
                SummaryPool.applyTo(change.toBuilder().setFull(true).build(), held).toString());
        assertEquals(3, held.size());
    }

    @Test
    void preconditionsCombine() {
        Precondition a = isAuthenticated("a");
        Precondition b = hasPriorToolOutput("b");
        Precondition c = milestoneReached("c");
        assertEquals(3, allOf(allOf(a, b), c).getAll().getPreconditionsCount());
        assertEquals(2, allOf(anyOf(a, b), c).getAll().getPreconditionsCount());
        assertEquals(3, anyOf(a, anyOf(b, c)).getAny().getPreconditionsCount());
        assertEquals(a, not(not(a)));
        assertEquals("x == y", Preconditions.cel("x == y").getCel());
        assertSays("at least one precondition is needed", Preconditions::allOf);
        assertSays("milestoneReached needs a text that is not empty", () -> milestoneReached(""));
    }

    @Test
    void toolsListsAreTakenAsBytesTextAndValues() {
        String list = "[{\"name\":\"\u00e9\",\"inputSchema\":{\"maximum\":1e400}}]";
        assertEquals(list, Registration.of("s", list).getToolsListJson().toStringUtf8());
        assertEquals(
                list, Registration.of("s", Json.parse(list)).getToolsListJson().toStringUtf8());
        byte[] bytes = {'[', ']'};
        assertEquals("[]", Registration.of("s", bytes).getToolsListJson().toStringUtf8());
    }

    @Test
    void jsonKeepsNumbersAndTheOrderOfKeys() {
        String text =
                "{\"b\":1.50,\"a\":[1e400,12345678901234567890,-0.0,null,true],\"\\u0001\":\"\u2028\"}";
        assertEquals(text, Json.write(Json.parse(text)));
        for (String wrong :
                new String[] {
                    "", "{", "{} {}", "{'a': 1}", "[1,]", "NaN", "\"\t\"", "[".repeat(10_000)
                }) {
            assertThrows(JsonParseException.class, () -> Json.parse(wrong), wrong);
        }
    }

    private static JsonObject object(String json) {
        return Json.parse(json.replace('\'', '"')).getAsJsonObject();
    }

    private static void assertSays(
            String message, org.junit.jupiter.api.function.Executable refused) {
        assertEquals(message, assertThrows(IllegalArgumentException.class, refused).getMessage());
    }
}
