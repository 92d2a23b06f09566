package dev.toolgate.conformance;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.protobuf.Message;
import dev.toolgate.Listing;
import dev.toolgate.ToolgateClient;
import dev.toolgate.Version;
import dev.toolgate.v1.ApproveToolsRequest;
import dev.toolgate.v1.BatchGetToolSchemasRequest;
import dev.toolgate.v1.CheckPolicyRequest;
import dev.toolgate.v1.ClearMemoryRequest;
import dev.toolgate.v1.GateRequest;
import dev.toolgate.v1.GetMemoryStatsRequest;
import dev.toolgate.v1.GetPolicyRequest;
import dev.toolgate.v1.GetServerRequest;
import dev.toolgate.v1.GetSummaryPoolRequest;
import dev.toolgate.v1.GetUsageRequest;
import dev.toolgate.v1.ListServersRequest;
import dev.toolgate.v1.ListToolsRequest;
import dev.toolgate.v1.RegisterServerRequest;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.SetPolicyRequest;
import dev.toolgate.v1.UnregisterServerRequest;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiFunction;

/** The operations by name; those that call the service are here. */
final class Operations {
    private final Clients clients;
    private final Map<String, Operation> operations = new HashMap<>();

    /** What an operation does with the client's settings and its arguments. */
    interface Operation {
        JsonElement run(JsonObject client, JsonObject arguments) throws Exception;
    }

    /** A request for something that this driver does not do. */
    static final class UnknownOperationException extends Exception {
        private static final long serialVersionUID = 1L;

        private UnknownOperationException(String name) {
            super("no operation " + name);
        }
    }

    Operations(Clients clients, WatchOperations watches) {
        this.clients = clients;
        addRpcs();
        listing(
                "list_servers",
                ListServersRequest.getDefaultInstance(),
                ToolgateClient::allServers);
        listing("list_tools", ListToolsRequest.getDefaultInstance(), ToolgateClient::allTools);
        listing(
                "check_policy",
                CheckPolicyRequest.getDefaultInstance(),
                ToolgateClient::allVerdicts);
        operations.put("versions", (client, arguments) -> versions());
        watches.addTo(operations);
        HelperOperations.addTo(operations);
        PromptOperations.addTo(operations, clients);
        LoadOperations.addTo(operations, clients);
    }

    JsonElement run(JsonObject request) throws Exception {
        String name = Wire.text(request, "op");
        Operation operation = operations.get(name);
        if (operation == null) {
            throw new UnknownOperationException(name);
        }
        return operation.run(object(request, "client"), object(request, "args"));
    }

    private static JsonObject object(JsonObject request, String key) {
        JsonElement value = Wire.get(request, key);
        return value.isJsonObject() ? value.getAsJsonObject() : new JsonObject();
    }

    private void addRpcs() {
        rpc("Route", RouteRequest.getDefaultInstance(), ToolgateClient::route);
        rpc("Gate", GateRequest.getDefaultInstance(), ToolgateClient::gate);
        rpc("SearchTools", SearchToolsRequest.getDefaultInstance(), ToolgateClient::searchTools);
        rpc(
                "GetSummaryPool",
                GetSummaryPoolRequest.getDefaultInstance(),
                ToolgateClient::getSummaryPool);
        rpc(
                "BatchGetToolSchemas",
                BatchGetToolSchemasRequest.getDefaultInstance(),
                ToolgateClient::batchGetToolSchemas);
        rpc(
                "RegisterServer",
                RegisterServerRequest.getDefaultInstance(),
                ToolgateClient::registerServer);
        rpc(
                "UnregisterServer",
                UnregisterServerRequest.getDefaultInstance(),
                ToolgateClient::unregisterServer);
        rpc("ApproveTools", ApproveToolsRequest.getDefaultInstance(), ToolgateClient::approveTools);
        rpc("GetServer", GetServerRequest.getDefaultInstance(), ToolgateClient::getServer);
        rpc("SetPolicy", SetPolicyRequest.getDefaultInstance(), ToolgateClient::setPolicy);
        rpc("GetPolicy", GetPolicyRequest.getDefaultInstance(), ToolgateClient::getPolicy);
        rpc("GetUsage", GetUsageRequest.getDefaultInstance(), ToolgateClient::getUsage);
        rpc(
                "GetMemoryStats",
                GetMemoryStatsRequest.getDefaultInstance(),
                ToolgateClient::getMemoryStats);
        rpc("ClearMemory", ClearMemoryRequest.getDefaultInstance(), ToolgateClient::clearMemory);
    }

    private <Q extends Message> void rpc(
            String name, Q empty, BiFunction<ToolgateClient, Q, ? extends Message> call) {
        operations.put(
                name,
                (client, arguments) -> {
                    @SuppressWarnings(
                            "unchecked") // A message's builder builds messages of its own class.
                    Q request =
                            (Q)
                                    Wire.read(arguments.get("request"), empty.newBuilderForType())
                                            .build();
                    return Wire.write(call.apply(client(client, arguments), request));
                });
    }

    private <Q extends Message> void listing(
            String name, Q empty, BiFunction<ToolgateClient, Q, Listing<? extends Message>> all) {
        operations.put(
                name,
                (client, arguments) -> {
                    @SuppressWarnings("unchecked") // As above.
                    Q request =
                            (Q)
                                    Wire.read(arguments.get("request"), empty.newBuilderForType())
                                            .build();
                    JsonObject items = new JsonObject();
                    items.add(
                            "items", Wire.writeAll(all.apply(client(client, arguments), request)));
                    return items;
                });
    }

    private ToolgateClient client(JsonObject settings, JsonObject arguments) {
        ToolgateClient client = clients.of(settings);
        return arguments.has("timeout")
                ? client.withTimeout(Wire.seconds(arguments.get("timeout")))
                : client;
    }

    private static JsonObject versions() {
        JsonObject versions = new JsonObject();
        versions.addProperty("sdk", Version.CURRENT);
        versions.addProperty("runtime", "java" + Runtime.version().feature());
        return versions;
    }
}
