package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.RouteRequest;
import io.grpc.ServerCredentials;
import io.grpc.Status;
import io.grpc.TlsServerCredentials;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPairGenerator;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
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
            Path bare = folder.resolve("bare.key");
            Files.writeString(bare, bare("EC ", Files.readString(client.key())));
            route(fake, known.withClientCertificate(client.certificate(), bare), null);
            route(fake, known, Status.Code.UNAVAILABLE);
        }
    }

    @Test
    void keysOfRsaAreWrappedToo() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2048);
        byte[] key = generator.generateKeyPair().getPrivate().getEncoded();
        String pem = pem("", key);
        assertEquals(pem, PrivateKeys.toPkcs8(pem));
        assertEquals(pem, PrivateKeys.toPkcs8("Bag Attributes\n" + bare("RSA ", pem)));
        for (String wrong : new String[] {"", pem("EC ", new byte[] {1}), bare("EC ", pem)}) {
            assertThrows(IllegalArgumentException.class, () -> PrivateKeys.toPkcs8(wrong));
        }
    }

    /** A key of PKCS #8 without its wrapping; one of a curve has to name it. */
    private static String bare(String kind, String pem) throws Exception {
        byte[] key = Base64.getMimeDecoder().decode(pem.replaceAll("-----.*-----", ""));
        if (kind.equals("RSA ")) {
            return pem(kind, Arrays.copyOfRange(key, 26, key.length));
        }
        // The JDK's key of P-256 ends with its number, after 33 bytes of all else.
        byte[] number = Arrays.copyOfRange(key, 33, 67);
        byte[] curve = HexFormat.of().parseHex("a00a06082a8648ce3d030107");
        // The public key, which most tools write too, and Java passes over.
        byte[] point = HexFormat.of().parseHex("a144034200" + publicPoint());
        byte[] sec1 = new byte[2 + 3 + 34 + curve.length + point.length];
        sec1[0] = 0x30;
        sec1[1] = (byte) (sec1.length - 2);
        System.arraycopy(new byte[] {2, 1, 1}, 0, sec1, 2, 3);
        System.arraycopy(number, 0, sec1, 5, 34);
        System.arraycopy(curve, 0, sec1, 39, curve.length);
        System.arraycopy(point, 0, sec1, 39 + curve.length, point.length);
        return pem(kind, sec1);
    }

    private static String publicPoint() throws Exception {
        try (InputStream in = Files.newInputStream(client.certificate())) {
            byte[] key =
                    CertificateFactory.getInstance("X.509")
                            .generateCertificate(in)
                            .getPublicKey()
                            .getEncoded();
            return HexFormat.of().formatHex(key, key.length - 65, key.length);
        }
    }

    private static String pem(String kind, byte[] der) {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
        return "-----BEGIN "
                + kind
                + "PRIVATE KEY-----\n"
                + text
                + "\n-----END "
                + kind
                + "PRIVATE KEY-----\n";
    }

    @Test
    void aKeyOfAnotherFormIsRefusedAtOnce() {
        Tls swapped =
                Tls.system().withClientCertificate(client.certificate(), client.certificate());
        ClientBuilder builder = ToolgateClient.builder().target("https://a:1").tls(swapped);
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, builder::build);
        assertTrue(
                refused.getMessage().contains("holds no PEM private key without a password"),
                refused.getMessage());
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
