package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.RenderedTools;
import dev.toolgate.v1.RouteResponse;
import java.util.List;
import org.junit.jupiter.api.Test;

class ProviderToolsTest {
    @Test
    void definitionsKeepTheOrderOfKeysAndTheDigitsOfNumbers() {
        String tools = "[{\"z\":1.50,\"a\":1e400},{\"name\":\"b\"}]";
        RenderedTools rendered = RenderedTools.newBuilder().setToolsJson(tools).build();
        assertEquals(tools, ProviderTools.of(rendered).toString());
    }

    @Test
    void toolsThatWereNotRenderedSayWhatToDo() {
        RouteResponse turn = RouteResponse.getDefaultInstance();
        IllegalArgumentException error =
                assertThrows(
                        IllegalArgumentException.class, () -> ProviderTools.of(turn.getRendered()));
        assertTrue(error.getMessage().contains("set render in the request"), error.getMessage());
        for (String broken : List.of("[", "{}")) {
            RenderedTools rendered = RenderedTools.newBuilder().setToolsJson(broken).build();
            assertThrows(IllegalArgumentException.class, () -> ProviderTools.of(rendered));
        }
    }

    @Test
    void modelsThatCanNotDeferAreKnownByPartsOfTheirNames() {
        assertTrue(ProviderTools.canDefer("claude-sonnet-4-5"));
        assertFalse(ProviderTools.canDefer("claude-3-5-Haiku-20241022"));
        assertFalse(ProviderTools.canDefer("my-proxy/sonnet", List.of("PROXY")));
    }
}
