package dev.toolgate.render;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** What renderers do beside the shared cases. */
class RenderTest {
    private static final List<Function<List<ActiveTool>, Rendered>> RENDERERS =
            List.of(
                    Render::anthropic,
                    Render::openAiChat,
                    Render::openAiResponses,
                    Render::gemini,
                    Render::mcp);

    @Test
    void aToolWithoutItsSchemaIsAnErrorThatSaysWhatToDo() {
        ActiveTool bare = ActiveTool.newBuilder().setModelName("a").build();
        ActiveTool broken = bare.toBuilder().setInputSchemaJson("{").build();
        for (Function<List<ActiveTool>, Rendered> render : RENDERERS) {
            assertSays(
                    "a came without its schema: route with DETAIL_SCHEMAS",
                    () -> render.apply(List.of(bare)));
            assertSays("the inputSchema of a is not JSON", () -> render.apply(List.of(broken)));
        }
    }

    private static void assertSays(
            String message, org.junit.jupiter.api.function.Executable refused) {
        assertEquals(message, assertThrows(IllegalArgumentException.class, refused).getMessage());
    }

    @Test
    void aToolThatCameAsASignatureHasItForADescription() {
        ActiveTool brief =
                ActiveTool.newBuilder()
                        .setModelName("log")
                        .setSignature("log() - Shows commits.")
                        .build();
        for (Function<List<ActiveTool>, Rendered> render : RENDERERS) {
            String rendered = Json.write(render.apply(List.of(brief)).tools().get(0));
            assertTrue(rendered.contains("\"description\":\"log() - Shows commits.\""), rendered);
        }
    }

    @Test
    void numbersAndTheOrderOfKeysSurvive() {
        String schema =
                "{\"type\":\"object\",\"properties\":{\"z\":{\"type\":\"number\",\"minimum\":1.50,\"maximum\":1e400,"
                        + "\"default\":12345678901234567890},\"a\":{\"type\":\"string\"}}}";
        ActiveTool tool =
                ActiveTool.newBuilder().setModelName("a").setInputSchemaJson(schema).build();
        for (Function<List<ActiveTool>, Rendered> render :
                List.<Function<List<ActiveTool>, Rendered>>of(
                        Render::anthropic,
                        Render::openAiChat,
                        Render::openAiResponses,
                        Render::mcp)) {
            String rendered = Json.write(render.apply(List.of(tool)).tools().get(0));
            assertTrue(rendered.contains(schema), rendered);
        }
        String rendered = Json.write(Render.gemini(List.of(tool)).tools().get(0));
        assertTrue(
                rendered.contains(
                        "\"default\":12345678901234567890,\"minimum\":1.50,\"maximum\":1e400"),
                rendered);
    }

    @Test
    void aSchemaThatGrowsWhenItIsWrittenOutStaysBounded() {
        // Each level names the next one twice: 2^40 schemas, written out.
        StringBuilder schema =
                new StringBuilder(
                        "{\"type\":\"object\",\"properties\":{\"x\":{\"$ref\":\"#/$defs/d0\"}},\"$defs\":{");
        for (int level = 0; level < 40; level++) {
            String next = "{\"$ref\":\"#/$defs/d" + (level + 1) + "\"}";
            schema.append(level == 0 ? "" : ",")
                    .append(
                            "\"d"
                                    + level
                                    + "\":{\"type\":\"object\",\"properties\":{\"a\":"
                                    + next
                                    + ",\"b\":"
                                    + next
                                    + "}}");
        }
        ActiveTool bomb =
                ActiveTool.newBuilder()
                        .setModelName("bomb")
                        .setInputSchemaJson(schema + "}}")
                        .build();
        Rendered rendered = Render.gemini(List.of(bomb));
        assertTrue(Json.write(rendered.tools().get(0)).length() < 1_000_000);
        assertTrue(
                rendered.losses().stream().anyMatch(loss -> loss.note().startsWith("too large")));
    }
}
