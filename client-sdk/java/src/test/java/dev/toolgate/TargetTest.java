package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.RouteRequest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Targets: what people write, and what is meant. */
class TargetTest {
    @ParameterizedTest
    @CsvSource({
        "localhost:7070, localhost, 7070, false",
        "http://127.0.0.1:7070, 127.0.0.1, 7070, false",
        "http://tools.example:80/, tools.example, 80, false",
        "https://tools.example:443, tools.example, 443, true",
        "[::1]:7070, [::1], 7070, false",
        "https://[2001:db8::1]:7070, [2001:db8::1], 7070, true",
    })
    void aTargetIsReadAsItIsWritten(String written, String host, int port, boolean encrypted) {
        assertEquals(new Target(host, port, encrypted), Target.parse(written));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "127.0.0.1",
                "localhost",
                "localhost:",
                "localhost:port",
                "localhost:0",
                "localhost:65536",
                "::1",
                "[::1]",
                "http://",
                "http://tools.example",
                "http://tools.example:80/v1",
                "grpc://a:1",
                "a:1/",
                "user:secret@a:1",
                "https://a:1?b",
                "a b:1",
                "a_b:1",
                "[1:2:3]:1",
                "999.999.999.999:1"
            })
    void whatIsNoTargetIsRefusedAtOnce(String written) {
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> ToolgateClient.create(written));
        assertTrue(
                refused.getMessage().contains("say host:port, such as 127.0.0.1:7070"),
                refused.getMessage());
    }

    @Test
    void anAddressOfIpv6IsCalled() {
        try (ToolgateClient client = ToolgateClient.create("[::1]:1")) {
            ToolgateException failed =
                    assertThrows(
                            ToolgateException.class,
                            () -> client.route(RouteRequest.getDefaultInstance()));
            assertTrue(failed.getMessage().contains("running at [::1]:1?"), failed.getMessage());
            assertTrue(failed.getMessage().contains("finishConnect"), failed.getMessage());
        }
    }

    @Test
    void onlyThisHostIsALoopback() {
        for (String near :
                new String[] {
                    "localhost:1", "LocalHost:1", "127.0.0.1:1", "127.9.8.7:1", "[::1]:1"
                }) {
            assertTrue(Target.parse(near).isLoopback(), near);
        }
        for (String far :
                new String[] {
                    "127.evil.example:1", "localhost.example:1", "10.0.0.1:1", "[::2]:1"
                }) {
            assertTrue(!Target.parse(far).isLoopback(), far);
        }
    }
}
