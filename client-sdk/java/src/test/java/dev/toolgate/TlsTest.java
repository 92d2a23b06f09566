package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.RouteRequest;
import io.grpc.ServerCredentials;
import io.grpc.Status;
import io.grpc.TlsServerCredentials;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Encrypted connections. */
class TlsTest {
    private static final RouteRequest REQUEST = RouteRequest.getDefaultInstance();

    @TempDir static Path folder;

    private static Certificates server;
    private static Certificates client;

    @BeforeAll
    static void makeCertificates() throws Exception {
        server = Certificates.make(folder, "toolgate.test");
        client = Certificates.make(folder, "agent.test");
    }

    @Test
    void theServersCertificateMustDescendFromTheBundleAndHaveTheName() throws Exception {
        ServerCredentials credentials =
                TlsServerCredentials.create(server.certificate().toFile(), server.key().toFile());
        try (FakeServer fake = new FakeServer(credentials)) {
            Tls known = Tls.ofCa(server.certificate());
            route(fake, known.withServerName("toolgate.test"), null);
            route(fake, known, Status.Code.UNAVAILABLE);
            route(fake, known.withServerName("other.test"), Status.Code.UNAVAILABLE);
            route(
                    fake,
                    Tls.ofCa(client.certificate()).withServerName("toolgate.test"),
                    Status.Code.UNAVAILABLE);
            route(fake, Tls.system().withServerName("toolgate.test"), Status.Code.UNAVAILABLE);
        }
    }

    @Test
    void aServerMayAskForTheClientsCertificate() throws Exception {
        ServerCredentials credentials =
                TlsServerCredentials.newBuilder()
                        .keyManager(server.certificate().toFile(), server.key().toFile())
                        .trustManager(client.certificate().toFile())
                        .clientAuth(TlsServerCredentials.ClientAuth.REQUIRE)
                        .build();
        try (FakeServer fake = new FakeServer(credentials)) {
            Tls known = Tls.ofCa(server.certificate()).withServerName("toolgate.test");
            route(fake, known.withClientCertificate(client.certificate(), client.key()), null);
            route(fake, known, Status.Code.UNAVAILABLE);
        }
    }

    @Test
    void aKeyOfAnotherFormIsRefusedAtOnce() {
        Tls swapped =
                Tls.system().withClientCertificate(client.certificate(), client.certificate());
        ClientBuilder builder = ToolgateClient.builder().target("https://a:1").tls(swapped);
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, builder::build);
        assertTrue(refused.getMessage().contains("it must be PKCS #8"), refused.getMessage());
    }

    private static void route(FakeServer fake, Tls tls, Status.Code fails) {
        try (ToolgateClient caller =
                ToolgateClient.builder()
                        .target("https://" + fake.target())
                        .tls(tls)
                        .apiKey("k")
                        .build()) {
            if (fails == null) {
                caller.route(REQUEST);
                assertEquals("Bearer k", fake.headers.get(0).get(FakeServer.AUTHORIZATION));
            } else {
                assertEquals(
                        fails,
                        assertThrows(ToolgateException.class, () -> caller.route(REQUEST)).code());
            }
        }
    }
}
