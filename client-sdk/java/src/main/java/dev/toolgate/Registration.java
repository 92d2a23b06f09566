package dev.toolgate;

import com.google.gson.JsonElement;
import com.google.protobuf.ByteString;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.RegisterServerRequest;
import java.util.UUID;

/**
 * Begins a request to register an MCP server, from what it answered to {@code tools/list}: the
 * JSON-RPC result, the whole response, or the bare list of tools.
 */
public final class Registration {
    private Registration() {}

    /**
     * Of the answer as it came; it is passed on byte for byte.
     *
     * @param server the MCP server's name
     * @param toolsList the answer, UTF-8 JSON
     * @return the request, to go on with
     */
    public static RegisterServerRequest.Builder of(String server, byte[] toolsList) {
        return of(server, ByteString.copyFrom(toolsList));
    }

    /**
     * Of the answer as text; it is passed on as it is.
     *
     * @param server the MCP server's name
     * @param toolsList the answer, JSON
     * @return the request, to go on with
     */
    public static RegisterServerRequest.Builder of(String server, String toolsList) {
        return of(server, ByteString.copyFromUtf8(toolsList));
    }

    /**
     * Of the answer as a value.
     *
     * @param server the MCP server's name
     * @param toolsList the answer, parsed
     * @return the request, to go on with
     */
    public static RegisterServerRequest.Builder of(String server, JsonElement toolsList) {
        return of(server, Json.write(toolsList));
    }

    private static RegisterServerRequest.Builder of(String server, ByteString toolsList) {
        return RegisterServerRequest.newBuilder().setServer(server).setToolsListJson(toolsList);
    }

    /** The request with a name of its own, so that sent twice it changes nothing more. */
    static RegisterServerRequest named(RegisterServerRequest request) {
        if (!request.getRequestId().isEmpty()) {
            return request;
        }
        return request.toBuilder().setRequestId(UUID.randomUUID().toString()).build();
    }
}
