package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.RouteRequest;
import io.grpc.Metadata;
import io.grpc.Status;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Credentials: sent where they may be, and told nowhere. */
class CredentialsTest {
    private static final String SECRET = "s3cr3t-k3y";
    private static final RouteRequest REQUEST = RouteRequest.getDefaultInstance();

    @Test
    void anApiKeyIsSentAsABearerToken() throws Exception {
        try (FakeServer server = new FakeServer();
                ToolgateClient client =
                        ToolgateClient.builder().target(server.target()).apiKey(SECRET).build()) {
            client.route(REQUEST);
            assertEquals("Bearer " + SECRET, last(server).get(FakeServer.AUTHORIZATION));
            assertFalse(client.toString().contains(SECRET));
        }
    }

    @Test
    void aTokenSourceIsAskedBeforeEachCall() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        try (FakeServer server = new FakeServer();
                AsyncToolgateClient client =
                        ToolgateClient.builder()
                                .target(server.target())
                                .tokenSource(() -> "t" + asked.incrementAndGet())
                                .buildAsync()) {
            client.route(REQUEST).get();
            client.route(REQUEST).get();
            assertEquals(2, asked.get());
            assertEquals("Bearer t2", last(server).get(FakeServer.AUTHORIZATION));
        }
    }

    @Test
    void aTokenSourceThatFailsFailsTheCall() throws Exception {
        try (FakeServer server = new FakeServer();
                ToolgateClient throwing =
                        ToolgateClient.builder()
                                .target(server.target())
                                .tokenSource(
                                        () -> {
                                            throw new IllegalStateException(SECRET);
                                        })
                                .build();
                ToolgateClient garbled =
                        ToolgateClient.builder()
                                .target(server.target())
                                .tokenSource(() -> SECRET + "\n")
                                .build()) {
            for (ToolgateClient client : new ToolgateClient[] {throwing, garbled}) {
                ToolgateException failed =
                        assertThrows(ToolgateException.class, () -> client.route(REQUEST));
                assertEquals(Status.Code.UNAUTHENTICATED, failed.code());
                assertFalse(failed.getMessage().contains(SECRET), failed.getMessage());
            }
            assertEquals(0, server.requests.size());
        }
    }

    @Test
    void credentialsGoUnencryptedToThisHostOnlyUnlessTheCallerAllowsIt() {
        ClientBuilder far = ToolgateClient.builder().target("tools.example:7070").apiKey(SECRET);
        assertRefused(far, "https://tools.example:7070");
        assertRefused(
                ToolgateClient.builder().target("http://10.0.0.1:7070").tokenSource(() -> SECRET),
                "allowInsecureCredentials");
        far.allowInsecureCredentials(true).build().close();
        ToolgateClient.builder()
                .target("https://tools.example:7070")
                .apiKey(SECRET)
                .build()
                .close();
        ToolgateClient.builder().target("localhost:7070").apiKey(SECRET).build().close();
    }

    @Test
    void settingsThatContradictEachOtherAreRefused() {
        assertRefused(
                ToolgateClient.builder().apiKey(SECRET).tokenSource(() -> SECRET),
                "give one of them");
        assertRefused(ToolgateClient.builder().apiKey(SECRET + " x"), "visible ASCII");
        assertRefused(ToolgateClient.builder().tls(Tls.system()), "write https://");
        assertRefused(
                ToolgateClient.builder()
                        .target("https://a:1")
                        .tls(Tls.ofCa(Path.of("no-such-file.pem"))),
                "no-such-file.pem can't be read");
        assertRefused(
                ToolgateClient.builder().target("https://a:1").tls(Tls.ofCa(Path.of("pom.xml"))),
                "the CA bundle pom.xml");
        assertRefused(
                ToolgateClient.builder()
                        .target("https://a:1")
                        .tls(Tls.system().withClientCertificate(Path.of("a"), null)),
                "give both");
        assertThrows(
                IllegalArgumentException.class,
                () -> ToolgateClient.builder().timeout(Duration.ZERO));
    }

    private static Metadata last(FakeServer server) {
        return server.headers.get(server.headers.size() - 1);
    }

    private static void assertRefused(ClientBuilder builder, String says) {
        assertFalse(builder.toString().contains(SECRET));
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, builder::build);
        assertTrue(refused.getMessage().contains(says), refused.getMessage());
        assertFalse(refused.getMessage().contains(SECRET), refused.getMessage());
    }
}
