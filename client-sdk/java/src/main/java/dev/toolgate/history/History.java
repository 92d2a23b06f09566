package dev.toolgate.history;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.v1.AgentState;
import dev.toolgate.v1.PriorCall;
import java.util.List;

/**
 * What a conversation's history says about tools.
 *
 * @param discovered names of the tools that were loaded, in the order of their discovery: by a
 *     reference, by a search (the provider's, or {@link dev.toolgate.SearchTool}), or because a
 *     call to them succeeded; the newest 24 KiB
 * @param calls the calls, oldest first: the newest 24 KiB, the last success of each tool before
 *     others
 * @param turns how many turns of the model there were
 */
public record History(List<String> discovered, List<SeenCall> calls, long turns) {
    /**
     * Reads a history for what the model has discovered and called.
     *
     * @param messages the messages, oldest first
     * @return what they say
     */
    public static History scan(Iterable<? extends JsonElement> messages) {
        return scan(messages, null);
    }

    /**
     * Reads a history that goes on after a compaction. Scanning messages that the snapshot covers
     * already changes nothing but, where they hold no call, {@link #turns()}.
     *
     * @param messages the messages, oldest first
     * @param snapshot what {@link #snapshot()} gave before the history was compacted; null for none
     * @return what they say
     */
    public static History scan(Iterable<? extends JsonElement> messages, JsonElement snapshot) {
        Scanner scanner = new Scanner();
        if (snapshot != null) {
            scanner.restore(snapshot);
        }
        for (JsonElement message : messages) {
            if (Snapshots.isSnapshot(message)) {
                scanner.restore(message);
            } else {
                Events.read(message).forEach(scanner::take);
            }
        }
        return scanner.finish();
    }

    /**
     * The history after compaction: a snapshot of the old one, then what is kept of it.
     *
     * @param messages the messages, oldest first
     * @param kept a summary, and those of the messages that stay
     * @param snapshot of what came before the messages; null for none
     * @return the history to go on with
     */
    public static JsonArray compacted(
            Iterable<? extends JsonElement> messages,
            Iterable<? extends JsonElement> kept,
            JsonElement snapshot) {
        JsonArray compacted = new JsonArray();
        compacted.add(scan(messages, snapshot).snapshot());
        kept.forEach(compacted::add);
        return compacted;
    }

    /**
     * The agent's state for route and gate. Scopes, milestones and attributes, which no history can
     * say, are for the caller to add.
     *
     * @return the state, to go on with
     */
    public AgentState.Builder state() {
        AgentState.Builder state = AgentState.newBuilder().addAllDiscoveredTools(discovered);
        for (SeenCall call : calls) {
            state.addCalls(
                    PriorCall.newBuilder()
                            .setTool(call.tool())
                            .setStatus(call.status())
                            .setTurn((int) call.turn()));
        }
        return state;
    }

    /**
     * All of it as a JSON object, to keep when the history is compacted. Hand it to the next {@link
     * #scan}, or leave it in the history: scan finds it there, and {@link Stripped#of} takes it out
     * before the history is sent.
     *
     * @return the snapshot
     */
    public JsonObject snapshot() {
        return Snapshots.write(this);
    }
}
