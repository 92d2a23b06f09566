package dev.toolgate.history;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonPrimitive;
import dev.toolgate.SearchTool;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.AgentState;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Histories that are long, or not as anybody should send them. */
class HistoryTest {
    @Test
    void aLongHistoryFitsTheState() {
        JsonArray messages = new JsonArray();
        for (int turn = 0; turn < 10_000; turn++) {
            messages.add(call("call_" + turn, "tool_" + turn));
            messages.add(answer("call_" + turn, "ok"));
        }
        History history = History.scan(messages);
        assertEquals(10_000, history.turns());
        assertEquals("tool_9999", history.discovered().get(history.discovered().size() - 1));
        AgentState state = history.state().build();
        int size = state.getSerializedSize();
        assertTrue(size > 30 * 1024 && size < 56 * 1024, size + " bytes");
    }

    @Test
    void aLongAnswerToASearchIsReadWithinABound() {
        assertEquals(100, found(tools(100)));
        assertEquals(0, found(tools(220)));
        assertEquals(0, found("{\"tools\": " + "[".repeat(100_000)));
    }

    private static int found(String answer) {
        return History.scan(List.of(call("s", SearchTool.NAME), answer("s", answer)))
                .discovered()
                .size();
    }

    private static String tools(int count) {
        StringBuilder tools = new StringBuilder("{\"tools\": [");
        for (int n = 0; n < count; n++) {
            tools.append(n == 0 ? "" : ",")
                    .append(
                            "{\"name\":\"tool_"
                                    + n
                                    + "\",\"input_schema\":{\"title\":\""
                                    + "x".repeat(5_000)
                                    + "\"}}");
        }
        return tools + "]}";
    }

    @Test
    void whatIsNoMessageIsPassedOver() {
        List<JsonElement> odd =
                List.of(
                        JsonNull.INSTANCE,
                        new JsonPrimitive(1),
                        new JsonArray(),
                        call("\ud800", "\ud800"));
        History history = History.scan(odd, new JsonPrimitive("x"));
        assertEquals(List.of(), history.calls());
        assertEquals(4, Stripped.of(odd, List.of(), false).messages().size());
    }

    private static JsonElement call(String id, String tool) {
        return Json.parse(
                "{\"type\":\"function_call\",\"call_id\":"
                        + Json.quoted(id)
                        + ",\"name\":"
                        + Json.quoted(tool)
                        + "}");
    }

    private static JsonElement answer(String id, String output) {
        return Json.parse(
                "{\"type\":\"function_call_output\",\"call_id\":"
                        + Json.quoted(id)
                        + ",\"output\":"
                        + Json.quoted(output)
                        + "}");
    }
}
