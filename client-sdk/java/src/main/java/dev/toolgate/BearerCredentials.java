package dev.toolgate;

import io.grpc.CallCredentials;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/** Sends a token with every call. Neither its text nor an error's ever holds the token. */
final class BearerCredentials extends CallCredentials {
    private static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

    private final Supplier<String> tokens;
    private final boolean mayBlock;

    private BearerCredentials(Supplier<String> tokens, boolean mayBlock) {
        this.tokens = tokens;
        this.mayBlock = mayBlock;
    }

    static BearerCredentials ofKey(String key) {
        if (!isToken(key)) {
            throw new IllegalArgumentException(
                    "the API key must be visible ASCII characters, without white space");
        }
        return new BearerCredentials(() -> key, false);
    }

    static BearerCredentials ofSource(Supplier<String> tokens) {
        return new BearerCredentials(tokens, true);
    }

    @Override
    public void applyRequestMetadata(
            RequestInfo request, Executor executor, MetadataApplier applier) {
        if (mayBlock) {
            executor.execute(() -> apply(applier));
        } else {
            apply(applier);
        }
    }

    private void apply(MetadataApplier applier) {
        String token;
        try {
            token = tokens.get();
        } catch (RuntimeException e) {
            applier.fail(
                    Status.UNAUTHENTICATED.withDescription("the token source failed").withCause(e));
            return;
        }
        if (!isToken(token)) {
            applier.fail(
                    Status.UNAUTHENTICATED.withDescription(
                            "the token source gave no token of visible ASCII characters"));
            return;
        }
        Metadata headers = new Metadata();
        headers.put(AUTHORIZATION, "Bearer " + token);
        applier.apply(headers);
    }

    private static boolean isToken(String text) {
        return text != null && !text.isEmpty() && text.chars().allMatch(c -> c > ' ' && c < 0x7f);
    }
}
