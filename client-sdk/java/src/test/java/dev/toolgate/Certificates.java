package dev.toolgate;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;

/** A self-signed certificate and its key as PEM files, made by the JDK's keytool. */
record Certificates(Path certificate, Path key) {
    private static final char[] PASSWORD = "changeit".toCharArray();

    static Certificates make(Path folder, String name) throws Exception {
        Path store = folder.resolve(name + ".p12");
        Process keytool =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "keytool")
                                        .toString(),
                                "-genkeypair",
                                "-keyalg",
                                "EC",
                                "-alias",
                                "it",
                                "-dname",
                                "CN=" + name,
                                "-ext",
                                "SAN=dns:" + name,
                                "-ext",
                                "BC=ca:true",
                                "-validity",
                                "2",
                                "-storetype",
                                "PKCS12",
                                "-keystore",
                                store.toString(),
                                "-storepass",
                                new String(PASSWORD))
                        .inheritIO()
                        .start();
        if (keytool.waitFor() != 0) {
            throw new IOException("keytool failed");
        }
        return read(store, folder, name);
    }

    private static Certificates read(Path store, Path folder, String name)
            throws IOException, GeneralSecurityException {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD);
        }
        return new Certificates(
                write(
                        folder.resolve(name + ".crt"),
                        "CERTIFICATE",
                        keys.getCertificate("it").getEncoded()),
                write(
                        folder.resolve(name + ".key"),
                        "PRIVATE KEY",
                        keys.getKey("it", PASSWORD).getEncoded()));
    }

    private static Path write(Path path, String kind, byte[] der) throws IOException {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
        return Files.writeString(
                path, "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n");
    }
}
