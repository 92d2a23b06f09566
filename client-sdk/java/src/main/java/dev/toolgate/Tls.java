package dev.toolgate;

import io.grpc.ChannelCredentials;
import io.grpc.TlsChannelCredentials;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;

/**
 * How a connection is encrypted. Files are PEM, and are read when the client is built.
 *
 * @param ca the certificates that a server's must descend from; null for those of the Java runtime
 * @param certificate the client's own certificate chain; null for none
 * @param key its private key, without a password; there when {@code certificate} is
 * @param serverName the name that the server's certificate must have; null for the target's host
 */
public record Tls(Path ca, Path certificate, Path key, String serverName) {
    /**
     * TLS with the certificate authorities of the Java runtime.
     *
     * @return these settings
     */
    public static Tls system() {
        return new Tls(null, null, null, null);
    }

    /**
     * TLS with certificate authorities of your own.
     *
     * @param ca a file of PEM certificates
     * @return these settings
     */
    public static Tls ofCa(Path ca) {
        return new Tls(ca, null, null, null);
    }

    /**
     * These settings with a certificate that the client shows (mutual TLS).
     *
     * @param certificate a file of the certificate chain
     * @param key a file of its private key, without a password
     * @return the settings
     */
    public Tls withClientCertificate(Path certificate, Path key) {
        return new Tls(ca, certificate, key, serverName);
    }

    /**
     * These settings with another name that the server's certificate must have.
     *
     * @param serverName the name
     * @return the settings
     */
    public Tls withServerName(String serverName) {
        return new Tls(ca, certificate, key, serverName);
    }

    ChannelCredentials toCredentials() {
        if ((certificate == null) != (key == null)) {
            throw new IllegalArgumentException(
                    "a client's certificate and its key belong together: give both, or neither");
        }
        TlsChannelCredentials.Builder credentials = TlsChannelCredentials.newBuilder();
        try {
            if (ca != null) {
                credentials.trustManager(certificates("CA bundle", ca));
            }
            if (certificate != null) {
                credentials.keyManager(
                        certificates("client certificate", certificate), privateKey(key));
            }
        } catch (IOException e) {
            // Both are in memory.
            throw new IllegalStateException(e);
        }
        return credentials.build();
    }

    private static ByteArrayInputStream certificates(String what, Path path) {
        byte[] pem = read(what, path);
        try {
            CertificateFactory x509 = CertificateFactory.getInstance("X.509");
            if (!x509.generateCertificates(new ByteArrayInputStream(pem)).isEmpty()) {
                return new ByteArrayInputStream(pem);
            }
        } catch (CertificateException e) {
            throw new IllegalArgumentException(
                    "the " + what + " " + path + " is not PEM: " + e.getMessage(), e);
        }
        throw new IllegalArgumentException(
                "the " + what + " " + path + " holds no PEM certificate");
    }

    private static ByteArrayInputStream privateKey(Path path) {
        String pem = new String(read("client key", path), StandardCharsets.US_ASCII);
        try {
            String key = PrivateKeys.toPkcs8(pem);
            return new ByteArrayInputStream(key.getBytes(StandardCharsets.US_ASCII));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("the client key " + path + " " + e.getMessage(), e);
        }
    }

    private static byte[] read(String what, Path path) {
        try {
            return Files.readAllBytes(path);
        } catch (IOException e) {
            throw new IllegalArgumentException("the " + what + " " + path + " can't be read", e);
        }
    }
}
