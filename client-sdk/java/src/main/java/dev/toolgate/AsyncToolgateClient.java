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
import dev.toolgate.v1.WatchCatalogResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.function.Consumer;

/**
 * Calls a Toolgate service and gives its answers as futures; cancelling one cancels its call.
 * Requests and answers are the messages of the contract.
 *
 * <p>Each call has a deadline, 5 seconds unless the builder or {@link #withTimeout} says otherwise;
 * UNAVAILABLE is retried within it, at most twice. Safe for use by several threads at once.
 */
public final class AsyncToolgateClient implements AutoCloseable {
    private final Connection connection;
    private final Duration timeout;

    AsyncToolgateClient(Connection connection, Duration timeout) {
        this.connection = connection;
        this.timeout = timeout;
    }

    /**
     * The same client with another timeout. It shares the connection, and closing either closes
     * both.
     *
     * @param timeout how long each call may take, its retries included
     * @return the client
     * @throws IllegalArgumentException when it is not above zero
     */
    public AsyncToolgateClient withTimeout(Duration timeout) {
        return new AsyncToolgateClient(connection, ClientBuilder.checked(timeout));
    }

    /**
     * This client as one whose methods wait for answers. It shares the connection, and closing
     * either closes both.
     *
     * @return the client
     */
    public ToolgateClient blocking() {
        return new ToolgateClient(connection, timeout);
    }

    /**
     * The active set for this turn, before the model.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<RouteResponse> route(RouteRequest request) {
        return connection.start(RouterServiceGrpc.getRouteMethod(), request, timeout);
    }

    /**
     * Says whether the model's calls may run. A refused call is a verdict, not a failure.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<GateResponse> gate(GateRequest request) {
        return connection.start(RouterServiceGrpc.getGateMethod(), request, timeout);
    }

    /**
     * Explicit discovery: by name, by MCP server, by keywords, or in natural language.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<SearchToolsResponse> searchTools(SearchToolsRequest request) {
        return connection.start(RouterServiceGrpc.getSearchToolsMethod(), request, timeout);
    }

    /**
     * The summaries of the catalog, whole or as a change since a revision; see {@link SummaryPool}.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<GetSummaryPoolResponse> getSummaryPool(GetSummaryPoolRequest request) {
        return connection.start(RouterServiceGrpc.getGetSummaryPoolMethod(), request, timeout);
    }

    /**
     * Full schemas by the names of tools.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<BatchGetToolSchemasResponse> batchGetToolSchemas(
            BatchGetToolSchemasRequest request) {
        return connection.start(RouterServiceGrpc.getBatchGetToolSchemasMethod(), request, timeout);
    }

    /**
     * Removes one MCP server and its tools.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<UnregisterServerResponse> unregisterServer(
            UnregisterServerRequest request) {
        return connection.start(CatalogServiceGrpc.getUnregisterServerMethod(), request, timeout);
    }

    /**
     * Accepts tools that wait for approval, each with the hash that was reviewed. One that has
     * another hash by now is not accepted: it is among the answer's refusals, and no failure. What
     * is approved already stays so.
     *
     * @param request what is accepted; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<ApproveToolsResponse> approveTools(ApproveToolsRequest request) {
        return connection.start(CatalogServiceGrpc.getApproveToolsMethod(), request, timeout);
    }

    /**
     * Reads one MCP server.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<GetServerResponse> getServer(GetServerRequest request) {
        return connection.start(CatalogServiceGrpc.getGetServerMethod(), request, timeout);
    }

    /**
     * One page of the tenant's MCP servers, by name; see {@link #forEachServer} for all.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<ListServersResponse> listServers(ListServersRequest request) {
        return connection.start(CatalogServiceGrpc.getListServersMethod(), request, timeout);
    }

    /**
     * Hands over all MCP servers, by name. Pages are fetched one after another, as they are used.
     *
     * @param request what is asked; a page has 100 unless it says otherwise
     * @param action takes each of them; what it throws ends the listing, which cancelling does not
     * @return done after the last one; fails with a ToolgateException
     */
    public CompletableFuture<Void> forEachServer(
            ListServersRequest request, Consumer<? super McpServer> action) {
        return listServers(Pages.sized(request))
                .thenCompose(
                        page -> {
                            page.getServersList().forEach(action);
                            return page.getNextPageToken().isEmpty()
                                    ? CompletableFuture.completedFuture(null)
                                    : forEachServer(
                                            Pages.after(request, page.getNextPageToken()), action);
                        });
    }

    /**
     * One page of the tenant's tools, by MCP server and name; see {@link #forEachTool} for all.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<ListToolsResponse> listTools(ListToolsRequest request) {
        return connection.start(CatalogServiceGrpc.getListToolsMethod(), request, timeout);
    }

    /**
     * Hands over all tools, by MCP server and name. Pages are fetched one after another, as they
     * are used.
     *
     * @param request what is asked; a page has 100 unless it says otherwise
     * @param action takes each of them; what it throws ends the listing, which cancelling does not
     * @return done after the last one; fails with a ToolgateException
     */
    public CompletableFuture<Void> forEachTool(
            ListToolsRequest request, Consumer<? super Tool> action) {
        return listTools(Pages.sized(request))
                .thenCompose(
                        page -> {
                            page.getToolsList().forEach(action);
                            return page.getNextPageToken().isEmpty()
                                    ? CompletableFuture.completedFuture(null)
                                    : forEachTool(
                                            Pages.after(request, page.getNextPageToken()), action);
                        });
    }

    /**
     * Replaces the tenant's policy.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<SetPolicyResponse> setPolicy(SetPolicyRequest request) {
        return connection.start(PolicyServiceGrpc.getSetPolicyMethod(), request, timeout);
    }

    /**
     * Reads the tenant's policy; an empty document when none was ever set.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<GetPolicyResponse> getPolicy(GetPolicyRequest request) {
        return connection.start(PolicyServiceGrpc.getGetPolicyMethod(), request, timeout);
    }

    /**
     * One page of what a policy decides of each tool; the first one also has the rules. See {@link
     * #forEachVerdict} for all.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<CheckPolicyResponse> checkPolicy(CheckPolicyRequest request) {
        return connection.start(PolicyServiceGrpc.getCheckPolicyMethod(), request, timeout);
    }

    /**
     * Hands over all verdicts of a policy, by MCP server and name. Pages are fetched one after
     * another, as they are used.
     *
     * @param request what is asked; a page has 100 unless it says otherwise
     * @param action takes each of them; what it throws ends the listing, which cancelling does not
     * @return done after the last one; fails with a ToolgateException
     */
    public CompletableFuture<Void> forEachVerdict(
            CheckPolicyRequest request, Consumer<? super PolicyVerdict> action) {
        return checkPolicy(Pages.sized(request))
                .thenCompose(
                        page -> {
                            page.getVerdictsList().forEach(action);
                            return page.getNextPageToken().isEmpty()
                                    ? CompletableFuture.completedFuture(null)
                                    : forEachVerdict(
                                            Pages.after(request, page.getNextPageToken()), action);
                        });
    }

    /**
     * The tenant's token ledger.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<GetUsageResponse> getUsage(GetUsageRequest request) {
        return connection.start(UsageServiceGrpc.getGetUsageMethod(), request, timeout);
    }

    /**
     * Says how much is remembered of the tenant's calls, tool by tool.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<GetMemoryStatsResponse> getMemoryStats(GetMemoryStatsRequest request) {
        return connection.start(MemoryServiceGrpc.getGetMemoryStatsMethod(), request, timeout);
    }

    /**
     * Forgets what is remembered of the tenant, of one of its MCP servers, or of one tool.
     *
     * @param request what is asked; its tenant may be left out
     * @return the answer; it fails with a ToolgateException
     */
    public CompletableFuture<ClearMemoryResponse> clearMemory(ClearMemoryRequest request) {
        return connection.start(MemoryServiceGrpc.getClearMemoryMethod(), request, timeout);
    }

    /**
     * Upserts one MCP server's tools. A tool that is rejected is an outcome, not a failure. A
     * request without a {@code request_id} gets a fresh one, so that a retry after a lost answer
     * changes nothing. Hundreds of new tools take longer than other calls: see {@link
     * #withTimeout}.
     *
     * @param request what is registered; {@link Registration} begins one
     * @return the outcome, tool by tool; it fails with a ToolgateException
     */
    public CompletableFuture<RegisterServerResponse> registerServer(RegisterServerRequest request) {
        return connection.start(
                CatalogServiceGrpc.getRegisterServerMethod(), Registration.named(request), timeout);
    }

    /**
     * Follows the catalog's changes, as many as the subscriber asks for. When the stream breaks it
     * goes on from the last revision that it has seen.
     *
     * @param request from which revision on; none: from now
     * @return the changes; each subscriber has a stream of its own, that ends when it cancels, or
     *     with a ToolgateException
     */
    public Flow.Publisher<WatchCatalogResponse> watchCatalog(WatchCatalogRequest request) {
        return subscriber -> new CatalogStream(connection, request, timeout, subscriber).open();
    }

    /**
     * Runs a model's call of {@link SearchTool}. A mistake of the model's is an answer as well.
     *
     * @param call what the model called
     * @param rest what the search goes by beside the model's query and count: the handle of this
     *     turn, the agent's state, and how much the text says of each tool ({@code detail}; left
     *     out, the name, since the next route with the answer's handle brings the definition)
     * @return the answer for the model; it fails with a ToolgateException, but for what the model
     *     wrote
     */
    public CompletableFuture<SearchAnswer> answerSearch(
            RequestedCall call, SearchToolsRequest rest) {
        String handle = rest.getActiveSetHandle();
        SearchToolsRequest request;
        try {
            request = SearchTool.request(call, rest);
        } catch (SearchTool.MistakeException e) {
            return CompletableFuture.completedFuture(SearchTool.mistaken(e, handle));
        }
        CompletableFuture<SearchToolsResponse> search = searchTools(request);
        CompletableFuture<SearchAnswer> answer =
                search.thenApply(SearchAnswer::ofFound)
                        .exceptionally(e -> SearchTool.mistaken(cause(e), handle));
        answer.whenComplete((done, error) -> search.cancel(false));
        return answer;
    }

    private static RuntimeException cause(Throwable error) {
        Throwable cause = error instanceof CompletionException ? error.getCause() : error;
        return cause instanceof RuntimeException known ? known : new CompletionException(cause);
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
        return "AsyncToolgateClient[" + connection + "]";
    }
}
