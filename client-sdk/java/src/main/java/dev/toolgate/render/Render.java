package dev.toolgate.render;

import dev.toolgate.v1.ActiveTool;
import java.util.List;
import java.util.Locale;

/** Renders tools for the providers' APIs. */
public final class Render {
    /**
     * Parts of the names of Anthropic's models that take no {@code defer_loading}. One not named
     * here takes it.
     */
    public static final List<String> UNSUPPORTED_MODELS =
            List.of("haiku", "claude-2", "claude-3", "claude-instant");

    private Render() {}

    /**
     * Whether a model of Anthropic's takes {@code defer_loading} and {@code tool_reference}.
     *
     * @param model its name
     * @return whether it does
     */
    public static boolean canDefer(String model) {
        return canDefer(model, UNSUPPORTED_MODELS);
    }

    /**
     * Whether a model takes {@code defer_loading} and {@code tool_reference}, by a list of those
     * that don't.
     *
     * @param model its name
     * @param unsupported parts of the names of those that don't
     * @return whether it does
     */
    public static boolean canDefer(String model, List<String> unsupported) {
        String name = model.toLowerCase(Locale.ROOT);
        return unsupported.stream().noneMatch(part -> name.contains(part.toLowerCase(Locale.ROOT)));
    }

    /**
     * The tools as {@code tools} of Anthropic's Messages API: the tool search, loaded tools,
     * deferred ones.
     *
     * <p>Where the model can't defer, deferred tools are sent as loaded ones and no tool search is
     * sent: rather too much than a tool too few. A tool that is in both lists is loaded.
     *
     * @param tools the loaded tools
     * @param options the deferred ones, and how
     * @return the definitions
     * @throws IllegalArgumentException when a tool came without its full schema
     */
    public static Rendered anthropic(List<ActiveTool> tools, AnthropicOptions options) {
        return Anthropic.render(tools, options);
    }

    /**
     * The tools as {@code tools} of Anthropic's Messages API, none of them deferred.
     *
     * @param tools the tools
     * @return the definitions
     * @throws IllegalArgumentException when a tool came without its full schema
     */
    public static Rendered anthropic(List<ActiveTool> tools) {
        return anthropic(tools, AnthropicOptions.DEFAULT);
    }

    /**
     * The tools as {@code tools} of OpenAI's Chat Completions API. Not strict: schemas stay as they
     * are. A request takes 128 tools: later ones are left out, and among the losses.
     *
     * @param tools the tools
     * @return the definitions
     * @throws IllegalArgumentException when a tool came without its full schema
     */
    public static Rendered openAiChat(List<ActiveTool> tools) {
        return OpenAi.chat(tools);
    }

    /**
     * The tools as {@code tools} of OpenAI's Responses API. Not strict: schemas stay as they are. A
     * request takes 128 tools: later ones are left out, and among the losses.
     *
     * @param tools the tools
     * @return the definitions
     * @throws IllegalArgumentException when a tool came without its full schema
     */
    public static Rendered openAiResponses(List<ActiveTool> tools) {
        return OpenAi.responses(tools);
    }

    /**
     * The tools as Gemini's {@code functionDeclarations}, to be sent as {@code
     * [{"functionDeclarations": [...]}]}.
     *
     * <p>Schemas are rewritten in Gemini's subset; every keyword that it can't say is among the
     * losses. Models that take full JSON Schema ({@code parametersJsonSchema}) don't need this. A
     * request takes 512 declarations: later ones are left out, and among the losses.
     *
     * @param tools the tools
     * @return the definitions
     * @throws IllegalArgumentException when a tool came without its full schema
     */
    public static Rendered gemini(List<ActiveTool> tools) {
        return Gemini.render(tools);
    }

    /**
     * The tools as {@code tools} of an answer to MCP's {@code tools/list}, under model-facing
     * names. Schemas and annotations are as registered; {@code title}, {@code icons} and {@code
     * _meta} are not part of an active set.
     *
     * @param tools the tools
     * @return the definitions
     * @throws IllegalArgumentException when a tool came without its full schema
     */
    public static Rendered mcp(List<ActiveTool> tools) {
        return Mcp.render(tools);
    }
}
