package dev.toolgate.render;

import com.google.gson.JsonObject;
import dev.toolgate.v1.ActiveTool;
import java.util.List;

/** Definitions in the shape of an MCP server's {@code tools/list}. */
final class Mcp {
    private Mcp() {}

    static Rendered render(List<ActiveTool> tools) {
        return Schemas.each(tools, name -> !name.isEmpty(), (tool, losses) -> define(tool));
    }

    private static JsonObject define(ActiveTool tool) {
        JsonObject definition = new JsonObject();
        definition.addProperty("name", tool.getModelName());
        Schemas.addDescription(tool, definition);
        definition.add("inputSchema", Schemas.input(tool));
        add(tool, "outputSchema", tool.getOutputSchemaJson(), definition);
        add(tool, "annotations", tool.getAnnotationsJson(), definition);
        return definition;
    }

    private static void add(ActiveTool tool, String part, String json, JsonObject definition) {
        if (!json.isEmpty()) {
            definition.add(part, Schemas.parse(tool, part, json));
        }
    }
}
