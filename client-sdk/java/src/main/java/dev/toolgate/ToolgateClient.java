package dev.toolgate;

import dev.toolgate.v1.ApproveToolsRequest;
import dev.toolgate.v1.ApproveToolsResponse;
import dev.toolgate.v1.BatchGetToolSchemasRequest;
import dev.toolgate.v1.BatchGetToolSchemasResponse;
import dev.toolgate.v1.CatalogServiceGrpc;
import dev.toolgate.v1.CheckPolicyRequest;
import dev.toolgate.v1.CheckPolicyResponse;
import dev.toolgate.v1.ClearMemoryRequest;
import dev.toolgate.v1.ClearMemoryResponse;
import dev.toolgate.v1.GateRequest;
import dev.toolgate.v1.GateResponse;
import dev.toolgate.v1.GetMemoryStatsRequest;
import dev.toolgate.v1.GetMemoryStatsResponse;
import dev.toolgate.v1.GetPolicyRequest;
import dev.toolgate.v1.GetPolicyResponse;
import dev.toolgate.v1.GetServerRequest;
import dev.toolgate.v1.GetServerResponse;
import dev.toolgate.v1.GetSummaryPoolRequest;
import dev.toolgate.v1.GetSummaryPoolResponse;
import dev.toolgate.v1.GetUsageRequest;
import dev.toolgate.v1.GetUsageResponse;
import dev.toolgate.v1.ListServersRequest;
import dev.toolgate.v1.ListServersResponse;
import dev.toolgate.v1.ListToolsRequest;
import dev.toolgate.v1.ListToolsResponse;
import dev.toolgate.v1.McpServer;
import dev.toolgate.v1.MemoryServiceGrpc;
import dev.toolgate.v1.PolicyServiceGrpc;
import dev.toolgate.v1.PolicyVerdict;
import dev.toolgate.v1.RegisterServerRequest;
import dev.toolgate.v1.RegisterServerResponse;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouteResponse;
import dev.toolgate.v1.RouterServiceGrpc;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.SearchToolsResponse;
import dev.toolgate.v1.SetPolicyRequest;
import dev.toolgate.v1.SetPolicyResponse;
import dev.toolgate.v1.Tool;
import dev.toolgate.v1.UnregisterServerRequest;
import dev.toolgate.v1.UnregisterServerResponse;
import dev.toolgate.v1.UsageServiceGrpc;
import dev.toolgate.v1.WatchCatalogRequest;
import java.time.Duration;

/**
 * Calls a Toolgate service and waits for its answers. Requests and answers are the messages of the
 * contract.
 *
 * <p>Each call has a deadline, 5 seconds unless the builder or {@link #withTimeout} says otherwise;
 * UNAVAILABLE is retried within it, at most twice. Safe for use by several threads at once.
 */
public final class ToolgateClient implements AutoCloseable {
    private final Connection connection;
    private final Duration timeout;

    ToolgateClient(Connection connection, Duration timeout) {
        this.connection = connection;
        this.timeout = timeout;
    }

    /**
     * A builder with the default settings.
     *
     * @return the builder
     */
    public static ClientBuilder builder() {
        return new ClientBuilder();
    }

    /**
     * A client with default settings.
     *
     * @param target {@code host:port}, {@code http://host:port}, or {@code https://host:port} for
     *     TLS
     * @return the client, to be closed
     * @throws IllegalArgumentException when it is no target
     */
    public static ToolgateClient create(String target) {
        return builder().target(target).build();
    }

    /**
     * The same client with another timeout. It shares the connection, and closing either closes
     * both.
     *
     * @param timeout how long each call may take, its retries included
     * @return the client
     * @throws IllegalArgumentException when it is not above zero
     */
    public ToolgateClient withTimeout(Duration timeout) {
        return new ToolgateClient(connection, ClientBuilder.checked(timeout));
    }

    /**
     * This client as one whose methods give futures. It shares the connection, and closing either
     * closes both.
     *
     * @return the client
     */
    public AsyncToolgateClient async() {
        return new AsyncToolgateClient(connection, timeout);
    }

    /**
     * The active set for this turn, before the model.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public RouteResponse route(RouteRequest request) {
        return connection.call(RouterServiceGrpc.getRouteMethod(), request, timeout);
    }

    /**
     * Says whether the model's calls may run. A refused call is a verdict, not a failure.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public GateResponse gate(GateRequest request) {
        return connection.call(RouterServiceGrpc.getGateMethod(), request, timeout);
    }

    /**
     * Explicit discovery: by name, by MCP server, by keywords, or in natural language.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public SearchToolsResponse searchTools(SearchToolsRequest request) {
        return connection.call(RouterServiceGrpc.getSearchToolsMethod(), request, timeout);
    }

    /**
     * The summaries of the catalog, whole or as a change since a revision; see {@link SummaryPool}.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public GetSummaryPoolResponse getSummaryPool(GetSummaryPoolRequest request) {
        return connection.call(RouterServiceGrpc.getGetSummaryPoolMethod(), request, timeout);
    }

    /**
     * Full schemas by the names of tools.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public BatchGetToolSchemasResponse batchGetToolSchemas(BatchGetToolSchemasRequest request) {
        return connection.call(RouterServiceGrpc.getBatchGetToolSchemasMethod(), request, timeout);
    }

    /**
     * Removes one MCP server and its tools.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public UnregisterServerResponse unregisterServer(UnregisterServerRequest request) {
        return connection.call(CatalogServiceGrpc.getUnregisterServerMethod(), request, timeout);
    }

    /**
     * Accepts tools that wait for approval, each with the hash that was reviewed. One that has
     * another hash by now is not accepted: it is among the answer's refusals, and no failure. What
     * is approved already stays so.
     *
     * @param request what is accepted; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public ApproveToolsResponse approveTools(ApproveToolsRequest request) {
        return connection.call(CatalogServiceGrpc.getApproveToolsMethod(), request, timeout);
    }

    /**
     * Reads one MCP server.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public GetServerResponse getServer(GetServerRequest request) {
        return connection.call(CatalogServiceGrpc.getGetServerMethod(), request, timeout);
    }

    /**
     * One page of the tenant's MCP servers, by name; see {@link #allServers} for all.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public ListServersResponse listServers(ListServersRequest request) {
        return connection.call(CatalogServiceGrpc.getListServersMethod(), request, timeout);
    }

    /**
     * All MCP servers, by name. Pages are fetched as they are used, each with a timeout of its own.
     *
     * @param request what is asked; a page has 100 unless it says otherwise
     * @return the listing; using it may throw ToolgateException
     */
    public Listing<McpServer> allServers(ListServersRequest request) {
        return new Listing<>(
                Pages.sized(request),
                this::listServers,
                ListServersResponse::getServersList,
                ListServersResponse::getNextPageToken);
    }

    /**
     * One page of the tenant's tools, by MCP server and name; see {@link #allTools} for all.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public ListToolsResponse listTools(ListToolsRequest request) {
        return connection.call(CatalogServiceGrpc.getListToolsMethod(), request, timeout);
    }

    /**
     * All tools, by MCP server and name. Pages are fetched as they are used, each with a timeout of
     * its own.
     *
     * @param request what is asked; a page has 100 unless it says otherwise
     * @return the listing; using it may throw ToolgateException
     */
    public Listing<Tool> allTools(ListToolsRequest request) {
        return new Listing<>(
                Pages.sized(request),
                this::listTools,
                ListToolsResponse::getToolsList,
                ListToolsResponse::getNextPageToken);
    }

    /**
     * Replaces the tenant's policy.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public SetPolicyResponse setPolicy(SetPolicyRequest request) {
        return connection.call(PolicyServiceGrpc.getSetPolicyMethod(), request, timeout);
    }

    /**
     * Reads the tenant's policy; an empty document when none was ever set.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public GetPolicyResponse getPolicy(GetPolicyRequest request) {
        return connection.call(PolicyServiceGrpc.getGetPolicyMethod(), request, timeout);
    }

    /**
     * One page of what a policy decides of each tool; the first one also has the rules. See {@link
     * #allVerdicts} for all.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public CheckPolicyResponse checkPolicy(CheckPolicyRequest request) {
        return connection.call(PolicyServiceGrpc.getCheckPolicyMethod(), request, timeout);
    }

    /**
     * All verdicts of a policy, by MCP server and name. Pages are fetched as they are used, each
     * with a timeout of its own.
     *
     * @param request what is asked; a page has 100 unless it says otherwise
     * @return the listing; using it may throw ToolgateException
     */
    public Listing<PolicyVerdict> allVerdicts(CheckPolicyRequest request) {
        return new Listing<>(
                Pages.sized(request),
                this::checkPolicy,
                CheckPolicyResponse::getVerdictsList,
                CheckPolicyResponse::getNextPageToken);
    }

    /**
     * The tenant's token ledger.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public GetUsageResponse getUsage(GetUsageRequest request) {
        return connection.call(UsageServiceGrpc.getGetUsageMethod(), request, timeout);
    }

    /**
     * Says how much is remembered of the tenant's calls, tool by tool.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public GetMemoryStatsResponse getMemoryStats(GetMemoryStatsRequest request) {
        return connection.call(MemoryServiceGrpc.getGetMemoryStatsMethod(), request, timeout);
    }

    /**
     * Forgets what is remembered of the tenant, of one of its MCP servers, or of one tool.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer
     * @throws ToolgateException when the call fails
     */
    public ClearMemoryResponse clearMemory(ClearMemoryRequest request) {
        return connection.call(MemoryServiceGrpc.getClearMemoryMethod(), request, timeout);
    }

    /**
     * Upserts one MCP server's tools. A tool that is rejected is an outcome, not a failure. A
     * request without a {@code request_id} gets a fresh one, so that a retry after a lost answer
     * changes nothing. Hundreds of new tools take longer than other calls: see {@link
     * #withTimeout}.
     *
     * @param request what is registered; {@link Registration} begins one
     * @return the outcome, tool by tool
     * @throws ToolgateException when the call fails
     */
    public RegisterServerResponse registerServer(RegisterServerRequest request) {
        return connection.call(
                CatalogServiceGrpc.getRegisterServerMethod(), Registration.named(request), timeout);
    }

    /**
     * Follows the catalog's changes, for as long as it takes. When the stream breaks it goes on
     * from the last revision that it has seen.
     *
     * @param request from which revision on; none: from now
     * @return the changes, to be closed
     */
    public CatalogWatch watchCatalog(WatchCatalogRequest request) {
        return new CatalogWatch(connection, request, timeout);
    }

    /**
     * Runs a model's call of {@link SearchTool}. A mistake of the model's is an answer as well.
     *
     * @param call what the model called
     * @param rest what the search goes by beside the model's query and count: the handle of this
     *     turn, the agent's state, and how much the text says of each tool ({@code detail}; left
     *     out, the name, since the next route with the answer's handle brings the definition)
     * @return the answer for the model
     * @throws ToolgateException when the call fails, but for what the model wrote
     */
    public SearchAnswer answerSearch(RequestedCall call, SearchToolsRequest rest) {
        try {
            return SearchAnswer.ofFound(searchTools(SearchTool.request(call, rest)));
        } catch (SearchTool.MistakeException | ToolgateException e) {
            return SearchTool.mistaken(e, rest.getActiveSetHandle());
        }
    }

    /**
     * Closes the connection; calls under way fail with CANCELLED, and later ones with
     * IllegalStateException.
     */
    @Override
    public void close() {
        connection.close();
    }

    @Override
    public String toString() {
        return "ToolgateClient[" + connection + "]";
    }
}
