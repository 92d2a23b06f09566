package dev.toolgate.conformance;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.ClientBuilder;
import dev.toolgate.Tls;
import dev.toolgate.ToolgateClient;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** One client for each distinct set of settings. */
final class Clients implements AutoCloseable {
    private final Map<JsonObject, ToolgateClient> open = new HashMap<>();

    ToolgateClient of(JsonObject settings) {
        return open.computeIfAbsent(settings, Clients::build);
    }

    static ToolgateClient build(JsonObject settings) {
        ClientBuilder builder = ToolgateClient.builder();
        if (settings.has("target")) {
            builder.target(Wire.text(settings, "target"));
        }
        if (settings.has("tenant")) {
            builder.tenant(Wire.text(settings, "tenant"));
        }
        if (settings.has("timeout")) {
            builder.timeout(Wire.seconds(settings.get("timeout")));
        }
        if (settings.has("api_key")) {
            builder.apiKey(Wire.text(settings, "api_key"));
        }
        if (settings.has("token")) {
            String token = Wire.text(settings, "token");
            builder.tokenSource(() -> token);
        }
        JsonElement tls = Wire.get(settings, "tls");
        if (tls.isJsonObject()) {
            builder.tls(tls(tls.getAsJsonObject()));
        }
        return builder.allowInsecureCredentials(Wire.flag(settings, "allow_insecure_credentials"))
                .build();
    }

    private static Tls tls(JsonObject tls) {
        return new Tls(
                path(tls, "ca"),
                path(tls, "cert"),
                path(tls, "key"),
                tls.has("server_name") ? Wire.text(tls, "server_name") : null);
    }

    private static Path path(JsonObject tls, String key) {
        return tls.has(key) ? Path.of(Wire.text(tls, key)) : null;
    }

    @Override
    public void close() {
        open.values().forEach(ToolgateClient::close);
    }
}
