package dev.toolgate;

import com.google.gson.JsonArray;
import com.google.gson.JsonParseException;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.PromptStrategy;
import dev.toolgate.v1.RenderedTools;
import dev.toolgate.v1.StrategyReason;
import java.util.List;

/**
 * What to send to the model in one turn, as the service puts it together for a request with {@code
 * render.strategy}.
 *
 * @param tools the definitions, for {@code tools}; the agent's own first. For Gemini they are
 *     {@code functionDeclarations}
 * @param messages the agent's messages, with what was added in its place; the agent keeps its own
 *     without the additions
 * @param betas names for the header {@code anthropic-beta}; empty for none
 * @param ledger what was added, and where: {@code render.ledger} of the next turn; opaque
 * @param strategy the strategy that was used
 * @param reason why that one
 * @param reasonMessage the same for a reader
 */
public record ModelRequest(
        JsonArray tools,
        JsonArray messages,
        List<String> betas,
        String ledger,
        PromptStrategy strategy,
        StrategyReason reason,
        String reasonMessage) {

    /**
     * Reads what to send to the model. Numbers and the order of keys are as the service wrote them.
     *
     * @param rendered the field of that name of an answer to route
     * @return what to send
     * @throws IllegalArgumentException when the request had no {@code render.strategy}
     */
    public static ModelRequest of(RenderedTools rendered) {
        if (rendered.getMessagesJson().isEmpty()) {
            throw new IllegalArgumentException(
                    "no strategy was asked for: set render.strategy in the request");
        }
        return new ModelRequest(
                ProviderTools.of(rendered),
                messages(rendered.getMessagesJson()),
                List.copyOf(rendered.getBetasList()),
                rendered.getLedger(),
                rendered.getStrategy(),
                rendered.getReason(),
                rendered.getReasonMessage());
    }

    private static JsonArray messages(String text) {
        try {
            return Json.parse(text).getAsJsonArray();
        } catch (JsonParseException | IllegalStateException error) {
            throw new IllegalArgumentException("the messages are no JSON list", error);
        }
    }
}
