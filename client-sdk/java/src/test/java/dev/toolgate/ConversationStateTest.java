package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.gson.JsonArray;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.AgentState;
import dev.toolgate.v1.Intent;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouteResponse;
import dev.toolgate.v1.SearchToolsRequest;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

class ConversationStateTest {
    private static final String SNAPSHOT =
            "{\"type\": \"toolgate_snapshot\", \"version\": 1, \"calls\": []}";

    @Test
    void theSnapshotStandsBeforeTheMessages() {
        String messages = "{\"role\":\"user\",\"n\":1.50},{\"b\":\"<\\ud800>\",\"a\":null}";
        JsonArray list = Json.parse("[" + messages + "]").getAsJsonArray();
        assertEquals("[" + messages + "]", ConversationState.of(list).getMessagesJson());
        assertEquals(
                "[" + SNAPSHOT + "," + messages + "]",
                ConversationState.of(list, SNAPSHOT).getMessagesJson());
    }

    @Test
    void aSnapshotIsEnoughAlone() {
        assertEquals(
                "[" + SNAPSHOT + "]", ConversationState.ofSnapshot(SNAPSHOT).getMessagesJson());
        assertEquals(AgentState.getDefaultInstance(), ConversationState.ofSnapshot("").build());
    }

    @Test
    void aConversationThatHasNotBegunIsAnEmptyList() {
        assertEquals("[]", ConversationState.of(List.of()).getMessagesJson());
    }

    @Test
    void aSnapshotThatIsNoJsonIsRefused() {
        assertThrows(
                IllegalArgumentException.class, () -> ConversationState.ofSnapshot("{\"type\":"));
    }

    @Test
    void theSnapshotOfARouteGoesIntoTheNextCall() throws IOException {
        try (FakeServer server = new FakeServer();
                ToolgateClient client = server.client()) {
            server.answer(
                    RouteResponse.newBuilder()
                            .setConversationSnapshot(SNAPSHOT)
                            .addServers("slack")
                            .build());
            RouteResponse turn =
                    client.route(
                            RouteRequest.newBuilder()
                                    .addIntents(Intent.newBuilder().setText("x"))
                                    .setState(ConversationState.of(List.of()))
                                    .build());
            client.searchTools(
                    SearchToolsRequest.newBuilder()
                            .setQuery("x")
                            .setState(
                                    ConversationState.ofSnapshot(turn.getConversationSnapshot())
                                            .addScopes("a"))
                            .build());
            SearchToolsRequest sent = (SearchToolsRequest) server.requests.get(1);
            assertEquals(
                    AgentState.newBuilder()
                            .setMessagesJson("[" + SNAPSHOT + "]")
                            .addScopes("a")
                            .build(),
                    sent.getState());
            assertEquals(List.of("slack"), turn.getServersList());
        }
    }
}
