package dev.toolgate;

import java.io.ByteArrayOutputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Brings private keys into the form that Java reads, PKCS #8: the forms of RSA (PKCS #1) and of
 * elliptic curves (SEC 1) alone, which many tools write, are wrapped in it.
 */
final class PrivateKeys {
    private static final Pattern PEM =
            Pattern.compile(
                    "-----BEGIN (RSA |EC |)PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END \\1PRIVATE KEY-----");
    private static final byte[] VERSION = HexFormat.of().parseHex("020100");
    private static final byte[] RSA = HexFormat.of().parseHex("06092a864886f70d0101010500");
    private static final byte[] EC = HexFormat.of().parseHex("06072a8648ce3d0201");
    private static final int SEQUENCE = 0x30;
    private static final int OCTETS = 0x04;
    private static final int INTEGER = 0x02;
    private static final int CURVE = 0xa0;

    private PrivateKeys() {}

    /**
     * The key of a PEM text as PKCS #8 PEM.
     *
     * @throws IllegalArgumentException when there is none, or it has a password
     */
    static String toPkcs8(String pem) {
        Matcher found = PEM.matcher(pem);
        if (!found.find()) {
            throw new IllegalArgumentException("holds no PEM private key without a password");
        }
        byte[] key = Base64.getMimeDecoder().decode(found.group(2));
        byte[] wrapped =
                switch (found.group(1)) {
                    case "RSA " -> wrapped(RSA, key);
                    case "EC " -> wrapped(joined(EC, curve(key)), key);
                    default -> key;
                };
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(wrapped);
        return "-----BEGIN PRIVATE KEY-----\n" + text + "\n-----END PRIVATE KEY-----\n";
    }

    private static byte[] wrapped(byte[] algorithm, byte[] key) {
        return element(
                SEQUENCE, joined(VERSION, element(SEQUENCE, algorithm), element(OCTETS, key)));
    }

    /** The name of the curve, which a key of SEC 1 says after its version and its number. */
    private static byte[] curve(byte[] key) {
        try {
            ByteBuffer fields = content(ByteBuffer.wrap(key), SEQUENCE);
            content(fields, INTEGER);
            content(fields, OCTETS);
            ByteBuffer curve = content(fields, CURVE);
            byte[] name = new byte[curve.remaining()];
            curve.get(name);
            return name;
        } catch (BufferUnderflowException e) {
            throw new IllegalArgumentException(
                    "holds a private key that does not name its curve", e);
        }
    }

    /** Reads a DER element; what follows it is left to be read. */
    private static ByteBuffer content(ByteBuffer from, int tag) {
        int found = from.get() & 0xff;
        int length = from.get() & 0xff;
        if (length > 0x80) {
            int bytes = length - 0x80;
            length = 0;
            for (int i = 0; i < bytes; i++) {
                length = length << 8 | from.get() & 0xff;
            }
        }
        if (found != tag || length < 0 || length > from.remaining()) {
            throw new BufferUnderflowException();
        }
        ByteBuffer content = from.slice(from.position(), length);
        from.position(from.position() + length);
        return content;
    }

    private static byte[] element(int tag, byte[] content) {
        int length = content.length;
        byte[] header;
        if (length < 0x80) {
            header = new byte[] {(byte) tag, (byte) length};
        } else if (length < 0x100) {
            header = new byte[] {(byte) tag, (byte) 0x81, (byte) length};
        } else {
            header = new byte[] {(byte) tag, (byte) 0x82, (byte) (length >> 8), (byte) length};
        }
        return joined(header, content);
    }

    private static byte[] joined(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }
}
