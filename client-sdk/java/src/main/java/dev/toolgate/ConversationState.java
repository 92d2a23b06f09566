package dev.toolgate;

import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.AgentState;
import java.util.List;
import java.util.StringJoiner;

/**
 * Begins an agent's state with its conversation, from which the service reads what was called and
 * discovered. Scopes, milestones and attributes, which no conversation can say, are for the caller
 * to add.
 */
public final class ConversationState {
    private ConversationState() {}

    /**
     * Of the whole conversation.
     *
     * @param messages the provider's messages, oldest first; at most 1 MiB by default
     * @return the state, to go on with
     */
    public static AgentState.Builder of(Iterable<? extends JsonElement> messages) {
        return of(messages, "");
    }

    /**
     * Of a snapshot, and of the messages that stay after a compaction. Messages that the snapshot
     * covers may be given as well.
     *
     * @param messages the provider's messages, oldest first; at most 1 MiB by default
     * @param snapshot {@code getConversationSnapshot()} of route's last answer: it stands for all
     *     messages that were read for it; empty for none
     * @return the state, to go on with
     * @throws IllegalArgumentException when the snapshot is no JSON
     */
    public static AgentState.Builder of(Iterable<? extends JsonElement> messages, String snapshot) {
        StringJoiner entries = new StringJoiner(",", "[", "]");
        if (!snapshot.isEmpty()) {
            entries.add(checked(snapshot));
        }
        messages.forEach(message -> entries.add(Json.write(message)));
        return AgentState.newBuilder().setMessagesJson(entries.toString());
    }

    /**
     * Of a snapshot alone, which is enough for gate and searchTools within the turn. An empty one
     * says nothing of the conversation.
     *
     * @param snapshot {@code getConversationSnapshot()} of route's answer
     * @return the state, to go on with
     * @throws IllegalArgumentException when the snapshot is no JSON
     */
    public static AgentState.Builder ofSnapshot(String snapshot) {
        return snapshot.isEmpty() ? AgentState.newBuilder() : of(List.of(), snapshot);
    }

    private static String checked(String snapshot) {
        try {
            Json.parse(snapshot);
            return snapshot;
        } catch (JsonParseException error) {
            throw new IllegalArgumentException("the snapshot of a conversation is no JSON", error);
        }
    }
}
