package dev.toolgate.render;

import com.google.gson.JsonObject;
import java.util.List;

/**
 * Definitions in a provider's shape.
 *
 * @param tools the definitions, in the order of the active set
 * @param losses what could not be said
 */
public record Rendered(List<JsonObject> tools, List<Loss> losses) {}
