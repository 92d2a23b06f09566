package dev.toolgate;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;

/**
 * Asks for the pages of a listing: all requests for one have a {@code page_size} and a {@code
 * page_token}.
 */
final class Pages {
    private static final int SIZE = 100;

    private Pages() {}

    /** The request with a size of its pages, when it names none. */
    static <Q extends Message> Q sized(Q request) {
        FieldDescriptor size = request.getDescriptorForType().findFieldByName("page_size");
        return request.getField(size).equals(0) ? with(request, size, SIZE) : request;
    }

    /** The request for the page after one. */
    static <Q extends Message> Q after(Q request, String token) {
        return with(request, request.getDescriptorForType().findFieldByName("page_token"), token);
    }

    @SuppressWarnings("unchecked") // A message's builder builds messages of its own class.
    private static <Q extends Message> Q with(Q request, FieldDescriptor field, Object value) {
        return (Q) request.toBuilder().setField(field, value).build();
    }
}
