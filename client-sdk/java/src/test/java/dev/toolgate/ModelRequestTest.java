package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.PromptStrategy;
import dev.toolgate.v1.RenderedTools;
import dev.toolgate.v1.StrategyReason;
import java.util.List;
import org.junit.jupiter.api.Test;

class ModelRequestTest {
    @Test
    void requestIsReadWithTheDigitsOfItsNumbers() {
        String messages = "[{\"role\":\"user\",\"n\":1.50},{\"role\":\"system\"}]";
        RenderedTools rendered =
                RenderedTools.newBuilder()
                        .setToolsJson("[{\"name\":\"own\"}]")
                        .setMessagesJson(messages)
                        .addBetas("b")
                        .setLedger("{}")
                        .setStrategy(PromptStrategy.PROMPT_STRATEGY_NATIVE)
                        .setReason(StrategyReason.STRATEGY_REASON_CHEAPEST)
                        .setReasonMessage("native, because")
                        .build();
        ModelRequest request = ModelRequest.of(rendered);
        assertEquals("[{\"name\":\"own\"}]", request.tools().toString());
        assertEquals(messages, request.messages().toString());
        assertEquals(List.of("b"), request.betas());
        assertEquals("{}", request.ledger());
        assertEquals(PromptStrategy.PROMPT_STRATEGY_NATIVE, request.strategy());
        assertEquals(StrategyReason.STRATEGY_REASON_CHEAPEST, request.reason());
        assertEquals("native, because", request.reasonMessage());
    }

    @Test
    void requestWithoutAStrategySaysWhatToDo() {
        RenderedTools definitions = RenderedTools.newBuilder().setToolsJson("[]").build();
        for (RenderedTools none : List.of(RenderedTools.getDefaultInstance(), definitions)) {
            IllegalArgumentException error =
                    assertThrows(IllegalArgumentException.class, () -> ModelRequest.of(none));
            assertTrue(error.getMessage().contains("set render.strategy"), error.getMessage());
        }
        RenderedTools broken = definitions.toBuilder().setMessagesJson("{}").build();
        assertThrows(IllegalArgumentException.class, () -> ModelRequest.of(broken));
    }
}
