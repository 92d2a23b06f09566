package dev.toolgate;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where a service listens.
 *
 * @param host a name or an address; an IPv6 address in brackets
 * @param port 1 to 65535
 * @param encrypted whether TLS is spoken there
 */
record Target(String host, int port, boolean encrypted) {
    static final String DEFAULT = "127.0.0.1:7070";

    private static final Pattern WRITTEN =
            Pattern.compile("(?:(https?)://)?(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+):([0-9]{1,5})");
    private static final Pattern LOOPBACK =
            Pattern.compile("localhost|127(\\.[0-9]{1,3}){3}|\\[::1\\]", Pattern.CASE_INSENSITIVE);

    /**
     * Reads what people write: {@code host:port}, with {@code http://} or {@code https://} before
     * it if they like.
     *
     * @throws IllegalArgumentException when it is no target
     */
    static Target parse(String written) {
        boolean isAddress = written.contains("://");
        String plain =
                isAddress && written.endsWith("/")
                        ? written.substring(0, written.length() - 1)
                        : written;
        Matcher parts = WRITTEN.matcher(plain);
        int port = parts.matches() ? Integer.parseInt(parts.group(3)) : 0;
        if (port < 1 || port > 65535 || !isHost(parts.group(2))) {
            throw new IllegalArgumentException(
                    "\""
                            + written
                            + "\" is no target: say host:port, such as "
                            + DEFAULT
                            + ", or https://host:port for TLS");
        }
        return new Target(parts.group(2), port, "https".equals(parts.group(1)));
    }

    private static boolean isHost(String host) {
        try {
            return new URI("http://" + host).getHost() != null;
        } catch (URISyntaxException e) {
            return false;
        }
    }

    boolean isLoopback() {
        return LOOPBACK.matcher(host).matches();
    }

    /** The target as gRPC's name resolution takes it. */
    String toUri() {
        return "dns:///" + toString().replace("[", "%5B").replace("]", "%5D");
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
