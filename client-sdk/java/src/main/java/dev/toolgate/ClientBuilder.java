package dev.toolgate;

import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Supplier;

/** What a client can be told. Its text holds no credential. */
public final class ClientBuilder {
    /** How long a call may take in all when nothing else is said. */
    public static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(5);

    private Target target = Target.parse(Target.DEFAULT);
    private String tenant = "";
    private Duration timeout = DEFAULT_TIMEOUT;
    private String apiKey;
    private Supplier<String> tokenSource;
    private Tls tls;
    private boolean allowInsecureCredentials;

    ClientBuilder() {}

    /**
     * Where the service listens: {@code host:port}, {@code http://host:port}, or {@code
     * https://host:port} for TLS. Default: {@code 127.0.0.1:7070}.
     *
     * @param target the target
     * @return this
     * @throws IllegalArgumentException when it is none
     */
    public ClientBuilder target(String target) {
        this.target = Target.parse(target);
        return this;
    }

    /**
     * The tenant of requests that name none. Default: none, which the service reads as "default"
     * while authentication is off.
     *
     * @param tenant 1 to 64 characters of {@code [A-Za-z0-9._@-]}
     * @return this
     */
    public ClientBuilder tenant(String tenant) {
        this.tenant = Objects.requireNonNull(tenant, "tenant");
        return this;
    }

    /**
     * How long each call may take, its retries included. Default: {@link #DEFAULT_TIMEOUT}.
     *
     * @param timeout more than nothing
     * @return this
     * @throws IllegalArgumentException when it is not above zero
     */
    public ClientBuilder timeout(Duration timeout) {
        this.timeout = checked(timeout);
        return this;
    }

    /**
     * The API key to send with every call, as {@code authorization: Bearer}. Default: none.
     *
     * @param apiKey the key
     * @return this
     */
    public ClientBuilder apiKey(String apiKey) {
        this.apiKey = Objects.requireNonNull(apiKey, "apiKey");
        return this;
    }

    /**
     * Asked for a token before each try of a call; the token is sent as an API key is. It may
     * block, which counts against the call's timeout, and is asked by several threads at once.
     * Default: none.
     *
     * @param tokenSource gives the token
     * @return this
     */
    public ClientBuilder tokenSource(Supplier<String> tokenSource) {
        this.tokenSource = Objects.requireNonNull(tokenSource, "tokenSource");
        return this;
    }

    /**
     * How the connection is encrypted, for a target of {@code https}. Default: {@link
     * Tls#system()}.
     *
     * @param tls the settings
     * @return this
     */
    public ClientBuilder tls(Tls tls) {
        this.tls = Objects.requireNonNull(tls, "tls");
        return this;
    }

    /**
     * Lets credentials go over a connection that is not encrypted, to another host than this one.
     * Default: they are refused.
     *
     * @param allow whether they may
     * @return this
     */
    public ClientBuilder allowInsecureCredentials(boolean allow) {
        this.allowInsecureCredentials = allow;
        return this;
    }

    /**
     * A client whose methods wait. It connects with its first call.
     *
     * @return the client, to be closed
     * @throws IllegalArgumentException when the settings contradict each other, or a file can't be
     *     read
     */
    public ToolgateClient build() {
        return new ToolgateClient(connection(), timeout);
    }

    /**
     * A client whose methods give futures. It connects with its first call.
     *
     * @return the client, to be closed
     * @throws IllegalArgumentException when the settings contradict each other, or a file can't be
     *     read
     */
    public AsyncToolgateClient buildAsync() {
        return new AsyncToolgateClient(connection(), timeout);
    }

    @Override
    public String toString() {
        return "ClientBuilder[target="
                + target
                + ", tenant="
                + tenant
                + ", timeout="
                + timeout
                + "]";
    }

    static Duration checked(Duration timeout) {
        if (timeout.isNegative() || timeout.isZero()) {
            throw new IllegalArgumentException(
                    "the timeout is " + timeout + ": it must be above zero");
        }
        return timeout;
    }

    private Connection connection() {
        String serverName = tls == null ? null : tls.serverName();
        return new Connection(target, tenant, channelCredentials(), callCredentials(), serverName);
    }

    private ChannelCredentials channelCredentials() {
        if (target.encrypted()) {
            return (tls == null ? Tls.system() : tls).toCredentials();
        }
        if (tls != null) {
            throw new IllegalArgumentException(
                    "there are TLS settings, but the target has no TLS: write https://" + target);
        }
        return InsecureChannelCredentials.create();
    }

    private BearerCredentials callCredentials() {
        if (apiKey == null && tokenSource == null) {
            return null;
        }
        if (apiKey != null && tokenSource != null) {
            throw new IllegalArgumentException(
                    "there are an API key and a token source: give one of them");
        }
        if (!target.encrypted() && !target.isLoopback() && !allowInsecureCredentials) {
            throw new IllegalArgumentException(
                    "credentials would go to "
                            + target
                            + " unencrypted: write https://"
                            + target
                            + ", or allowInsecureCredentials(true) where the network is trusted");
        }
        return apiKey != null
                ? BearerCredentials.ofKey(apiKey)
                : BearerCredentials.ofSource(tokenSource);
    }
}
