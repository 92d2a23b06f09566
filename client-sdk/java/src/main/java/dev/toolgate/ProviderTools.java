package dev.toolgate;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.RenderedTools;
import java.util.List;
import java.util.Locale;

/**
 * Tools in the format of a provider's API, as the service renders them for a request with {@code
 * render}.
 */
public final class ProviderTools {
    /**
     * Parts of the names of Anthropic's models that take no {@code defer_loading}. One not named
     * here takes it.
     */
    public static final List<String> UNSUPPORTED_MODELS =
            List.of("haiku", "claude-2", "claude-3", "claude-instant");

    private ProviderTools() {}

    /**
     * Returns the definitions of a rendered answer, to send as {@code tools} of a provider's
     * request. They have the order of keys and the numbers that the service wrote. {@code
     * rendered.getLossesList()} says what the provider's format can't. Gate still holds calls to
     * the registered schema.
     *
     * @param rendered the field of that name of an answer to route, searchTools or
     *     batchGetToolSchemas
     * @return the definitions
     * @throws IllegalArgumentException when the request had no {@code render}
     */
    public static JsonArray of(RenderedTools rendered) {
        if (rendered.getToolsJson().isEmpty()) {
            throw new IllegalArgumentException(
                    "the tools were not rendered: set render in the request");
        }
        try {
            JsonElement tools = Json.parse(rendered.getToolsJson());
            return tools.getAsJsonArray();
        } catch (JsonParseException | IllegalStateException error) {
            throw new IllegalArgumentException("the rendered tools are no JSON list", error);
        }
    }

    /**
     * Returns true if a model of Anthropic's takes {@code defer_loading} and {@code
     * tool_reference}.
     *
     * @param model its name
     * @return true if it does
     */
    public static boolean canDefer(String model) {
        return canDefer(model, UNSUPPORTED_MODELS);
    }

    /**
     * Returns true if a model takes {@code defer_loading} and {@code tool_reference}.
     *
     * @param model its name
     * @param unsupported parts of the names of those that don't
     * @return true if it does
     */
    public static boolean canDefer(String model, List<String> unsupported) {
        String name = model.toLowerCase(Locale.ROOT);
        return unsupported.stream().noneMatch(part -> name.contains(part.toLowerCase(Locale.ROOT)));
    }
}
