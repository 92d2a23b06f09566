package dev.toolgate.render;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/** Definitions for Anthropic's Messages API. */
final class Anthropic {
    private Anthropic() {}

    static Rendered render(List<ActiveTool> tools, AnthropicOptions options) {
        Set<String> isLoaded =
                tools.stream().map(ActiveTool::getModelName).collect(Collectors.toSet());
        List<ActiveTool> deferred =
                options.deferred().stream()
                        .filter(tool -> !isLoaded.contains(tool.getModelName()))
                        .toList();
        Rendered loaded = Schemas.each(tools, Anthropic::canName, Anthropic::define);
        Rendered later = Schemas.each(deferred, Anthropic::canName, Anthropic::define);
        boolean defers = Render.canDefer(options.model(), options.unsupported());

        List<JsonObject> seen = new ArrayList<>();
        if (defers
                && !later.tools().isEmpty()
                && options.search() != AnthropicOptions.Search.NONE) {
            seen.add(definitionOf(options.search()));
        }
        seen.addAll(loaded.tools());
        if (!defers) {
            seen.addAll(later.tools());
        }
        if (options.cacheBreakpoint() && !seen.isEmpty()) {
            JsonObject breakpoint = new JsonObject();
            breakpoint.addProperty("type", "ephemeral");
            seen.get(seen.size() - 1).add("cache_control", breakpoint);
        }
        if (defers) {
            later.tools().forEach(tool -> tool.addProperty("defer_loading", true));
            seen.addAll(later.tools());
        }
        List<Loss> losses = new ArrayList<>(loaded.losses());
        losses.addAll(later.losses());
        return new Rendered(List.copyOf(seen), List.copyOf(losses));
    }

    private static JsonObject definitionOf(AnthropicOptions.Search search) {
        String name = "tool_search_tool_" + search.name().toLowerCase(Locale.ROOT);
        return Json.object("type", name + "_20251119", "name", name);
    }

    private static boolean canName(String name) {
        return Schemas.isName(name, 128, "_-");
    }

    private static JsonObject define(ActiveTool tool, Losses losses) {
        JsonObject schema = PlainRoot.of(Schemas.input(tool), List.of(), losses);
        JsonObject definition = new JsonObject();
        definition.addProperty("name", tool.getModelName());
        Schemas.addDescription(tool, definition);
        definition.add("input_schema", withoutRefusedProperties(schema, losses));
        return definition;
    }

    private static JsonObject withoutRefusedProperties(JsonObject schema, Losses losses) {
        JsonObject properties = Schemas.objectAt(schema, "properties");
        Set<String> refused =
                properties.keySet().stream()
                        .filter(name -> !Schemas.isName(name, 64, "_.-"))
                        .collect(Collectors.toSet());
        if (refused.isEmpty()) {
            return schema;
        }
        JsonObject kept = Schemas.copy(properties);
        for (String name : refused) {
            kept.remove(name);
            losses.add(
                    Schemas.pointer("/properties", name),
                    "properties",
                    "dropped: not taken as a name");
        }
        JsonArray required = new JsonArray();
        Schemas.listAt(schema, "required").stream()
                .filter(name -> !Json.isText(name) || !refused.contains(name.getAsString()))
                .forEach(required::add);
        JsonObject taken = Schemas.copy(schema);
        taken.add("properties", kept);
        taken.add("required", required);
        return taken;
    }
}
