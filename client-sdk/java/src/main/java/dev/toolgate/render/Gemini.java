package dev.toolgate.render;

import com.google.gson.JsonObject;
import dev.toolgate.v1.ActiveTool;
import java.util.List;

/** Function declarations for Gemini, whose schemas are a subset of OpenAPI 3.0's. */
final class Gemini {
    /** Declarations that a request takes. */
    private static final int MOST = 512;

    private Gemini() {}

    static Rendered render(List<ActiveTool> tools) {
        return Schemas.each(tools, MOST, Gemini::canName, Gemini::declare);
    }

    /** The API takes longer names and more characters; older models do not. */
    private static boolean canName(String name) {
        return Schemas.isName(name, 64, "_.-") && Schemas.beginsAsIdentifier(name);
    }

    private static JsonObject declare(ActiveTool tool, Losses losses) {
        JsonObject declaration = new JsonObject();
        declaration.addProperty("name", tool.getModelName());
        Schemas.addDescription(tool, declaration);
        JsonObject schema = PlainRoot.of(Schemas.input(tool), List.of(), losses);
        JsonObject parameters = new GeminiSchema(schema, losses).convert(schema, Place.ROOT);
        if (parameters.has("properties")) {
            declaration.add("parameters", parameters);
        }
        return declaration;
    }
}
