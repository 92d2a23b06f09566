package dev.toolgate;

import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import dev.toolgate.v1.ErrorReason;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A call failed. Switch on {@link #reason()}; texts may change at any time. A refused tool call is
 * no failure: it is a verdict.
 *
 * @serial exclude
 */
// The collections are the JDK's immutable ones, which can be serialised.
@SuppressWarnings("serial")
public final class ToolgateException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final Status.Code code;
    private final String reasonName;
    private final String serviceMessage;
    private final Map<String, String> metadata;
    private final List<FieldViolation> violations;
    private final Duration retryAfter;

    /**
     * One field at fault.
     *
     * @param field its path, such as {@code intents[0].text}
     * @param description what was wrong and what would be right
     * @serial exclude
     */
    public record FieldViolation(String field, String description)
            implements java.io.Serializable {}

    private ToolgateException(
            Status.Code code,
            String message,
            ErrorInfo info,
            List<FieldViolation> violations,
            Duration retryAfter,
            Throwable cause) {
        super(told(code, message, info.getReason(), violations), cause);
        this.code = code;
        this.reasonName = info.getReason();
        this.serviceMessage = message;
        this.metadata = Map.copyOf(info.getMetadataMap());
        this.violations = violations;
        this.retryAfter = retryAfter;
    }

    /** Reads what gRPC ended a call with; garbled details count as none. */
    static ToolgateException of(Status status, Metadata trailers, Target target) {
        Optional<ErrorDetails> details = ErrorDetails.of(trailers);
        if (details.isEmpty()) {
            return withoutDetails(status.getCode(), words(status, target), status.getCause());
        }
        ErrorDetails said = details.get();
        List<FieldViolation> violations =
                said.badRequest().getFieldViolationsList().stream()
                        .map(ToolgateException::violation)
                        .toList();
        return new ToolgateException(
                status.getCode(),
                said.message().isEmpty() ? words(status, target) : said.message(),
                said.info(),
                violations,
                said.retryAfter().orElse(null),
                status.getCause());
    }

    static ToolgateException withoutDetails(Status.Code code, String message, Throwable cause) {
        return new ToolgateException(
                code, message, ErrorInfo.getDefaultInstance(), List.of(), null, cause);
    }

    /**
     * The gRPC status code.
     *
     * @return the code
     */
    public Status.Code code() {
        return code;
    }

    /**
     * Why, as a value to switch on.
     *
     * @return the reason; unspecified when the failure did not come from Toolgate itself (nobody
     *     listens, a proxy answered, the deadline passed on this side), or when this version does
     *     not know the reason
     */
    public ErrorReason reason() {
        try {
            return ErrorReason.valueOf("ERROR_REASON_" + reasonName);
        } catch (IllegalArgumentException e) {
            return ErrorReason.ERROR_REASON_UNSPECIFIED;
        }
    }

    /**
     * Why, as the service named it, such as {@code ETAG_MISMATCH}; also a reason that this version
     * does not know.
     *
     * @return the name; empty when the failure did not come from Toolgate itself
     */
    public String reasonName() {
        return reasonName;
    }

    /**
     * The service's own words, for a reader.
     *
     * @return the words, without the reason and the violations that {@link #getMessage()} has too
     */
    public String serviceMessage() {
        return serviceMessage;
    }

    /**
     * What else the service said about the reason, such as {@code limit}, {@code maximum} and
     * {@code actual}.
     *
     * @return values by name
     */
    public Map<String, String> metadata() {
        return metadata;
    }

    /**
     * The fields at fault, with INVALID_ARGUMENT.
     *
     * @return the violations
     */
    public List<FieldViolation> violations() {
        return violations;
    }

    /**
     * How long to wait before another try.
     *
     * @return the time; empty when no retry helps or none was asked
     */
    public Optional<Duration> retryAfter() {
        return Optional.ofNullable(retryAfter);
    }

    private static FieldViolation violation(BadRequest.FieldViolation wire) {
        return new FieldViolation(wire.getField(), wire.getDescription());
    }

    private static String words(Status status, Target target) {
        String said =
                status.getDescription() == null ? status.getCode().name() : status.getDescription();
        if (status.getCode() != Status.Code.UNAVAILABLE) {
            return said;
        }
        String cause = status.getCause() == null ? "" : " (" + status.getCause().getMessage() + ")";
        return said + cause + "; is `toolgate serve` running at " + target + "?";
    }

    private static String told(
            Status.Code code, String message, String reason, List<FieldViolation> violations) {
        StringBuilder told =
                new StringBuilder(reason.isEmpty() ? code.name() : reason)
                        .append(": ")
                        .append(message);
        for (FieldViolation violation : violations) {
            // The service's message says its violations already, unless they are many.
            if (!(message.contains(violation.field())
                    && message.contains(violation.description()))) {
                told.append("; ")
                        .append(violation.field())
                        .append(": ")
                        .append(violation.description());
            }
        }
        return told.toString();
    }
}
