package dev.toolgate;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import io.grpc.Metadata;
import java.time.Duration;
import java.util.Optional;

/** What a service says about an error beside its code: {@code google.rpc} details in a trailer. */
final class ErrorDetails {
    private static final Metadata.Key<byte[]> DETAILS =
            Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

    private final Status status;

    private ErrorDetails(Status status) {
        this.status = status;
    }

    /** Reads the trailer; empty when there is none or it is garbled. */
    static Optional<ErrorDetails> of(Metadata trailers) {
        byte[] bytes = trailers == null ? null : trailers.get(DETAILS);
        if (bytes == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(new ErrorDetails(Status.parseFrom(bytes)));
        } catch (InvalidProtocolBufferException e) {
            return Optional.empty();
        }
    }

    int code() {
        return status.getCode();
    }

    String message() {
        return status.getMessage();
    }

    ErrorInfo info() {
        return find(ErrorInfo.class)
                .filter(info -> info.getDomain().equals("toolgate"))
                .orElse(ErrorInfo.getDefaultInstance());
    }

    BadRequest badRequest() {
        return find(BadRequest.class).orElse(BadRequest.getDefaultInstance());
    }

    Optional<Duration> retryAfter() {
        return find(RetryInfo.class).map(RetryInfo::getRetryDelay).map(ErrorDetails::duration);
    }

    private static Duration duration(com.google.protobuf.Duration wire) {
        // What is out of the range that the wire's type allows is brought into it.
        long seconds = Math.max(0, Math.min(wire.getSeconds(), 315_576_000_000L));
        return Duration.ofSeconds(seconds, Math.max(0, wire.getNanos()));
    }

    private <T extends Message> Optional<T> find(Class<T> type) {
        for (Any detail : status.getDetailsList()) {
            if (detail.is(type)) {
                try {
                    return Optional.of(detail.unpack(type));
                } catch (InvalidProtocolBufferException e) {
                    return Optional.empty();
                }
            }
        }
        return Optional.empty();
    }
}
