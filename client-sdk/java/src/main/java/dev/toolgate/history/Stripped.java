package dev.toolgate.history;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import java.util.Collection;
import java.util.List;
import java.util.Set;

/**
 * A history that can be sent.
 *
 * @param messages the history; entries that did not change are those that were given
 * @param removed what was taken out, in the history's order; snapshots are not listed
 */
public record Stripped(JsonArray messages, List<Removed> removed) {
    /**
     * A history without references to tools that the next request can't resolve. What was given is
     * left alone.
     *
     * <p>Tool calls and their results stay, paired as they were. A result or message that would be
     * left empty says instead that its tools are gone. Anthropic's {@code tool_reference} blocks
     * and server-side tool searches are seen to, and OpenAI's {@code tool_search_call}, {@code
     * tool_search_output} and {@code additional_tools} items; snapshots are taken out.
     *
     * @param messages the messages, oldest first
     * @param available names of all tools that the request will define, deferred ones included
     * @param references whether the model, and what stands before it, can take references and
     *     searches
     * @return the history to send
     */
    public static Stripped of(
            Iterable<? extends JsonElement> messages,
            Collection<String> available,
            boolean references) {
        return new Stripper(Set.copyOf(available), references).strip(messages);
    }
}
