package dev.toolgate.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Decides which tools a model is shown, and which of its calls may run. Calls are stateless: what a
 * conversation must remember rides in the active-set handle and in the request.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class RouterServiceGrpc {

  private RouterServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "toolgate.v1.RouterService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.RouteRequest,
      dev.toolgate.v1.RouteResponse> getRouteMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Route",
      requestType = dev.toolgate.v1.RouteRequest.class,
      responseType = dev.toolgate.v1.RouteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.RouteRequest,
      dev.toolgate.v1.RouteResponse> getRouteMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.RouteRequest, dev.toolgate.v1.RouteResponse> getRouteMethod;
    if ((getRouteMethod = RouterServiceGrpc.getRouteMethod) == null) {
      synchronized (RouterServiceGrpc.class) {
        if ((getRouteMethod = RouterServiceGrpc.getRouteMethod) == null) {
          RouterServiceGrpc.getRouteMethod = getRouteMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.RouteRequest, dev.toolgate.v1.RouteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Route"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.RouteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.RouteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RouterServiceMethodDescriptorSupplier("Route"))
              .build();
        }
      }
    }
    return getRouteMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.GateRequest,
      dev.toolgate.v1.GateResponse> getGateMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Gate",
      requestType = dev.toolgate.v1.GateRequest.class,
      responseType = dev.toolgate.v1.GateResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.GateRequest,
      dev.toolgate.v1.GateResponse> getGateMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.GateRequest, dev.toolgate.v1.GateResponse> getGateMethod;
    if ((getGateMethod = RouterServiceGrpc.getGateMethod) == null) {
      synchronized (RouterServiceGrpc.class) {
        if ((getGateMethod = RouterServiceGrpc.getGateMethod) == null) {
          RouterServiceGrpc.getGateMethod = getGateMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.GateRequest, dev.toolgate.v1.GateResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Gate"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GateRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GateResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RouterServiceMethodDescriptorSupplier("Gate"))
              .build();
        }
      }
    }
    return getGateMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.SearchToolsRequest,
      dev.toolgate.v1.SearchToolsResponse> getSearchToolsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SearchTools",
      requestType = dev.toolgate.v1.SearchToolsRequest.class,
      responseType = dev.toolgate.v1.SearchToolsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.SearchToolsRequest,
      dev.toolgate.v1.SearchToolsResponse> getSearchToolsMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.SearchToolsRequest, dev.toolgate.v1.SearchToolsResponse> getSearchToolsMethod;
    if ((getSearchToolsMethod = RouterServiceGrpc.getSearchToolsMethod) == null) {
      synchronized (RouterServiceGrpc.class) {
        if ((getSearchToolsMethod = RouterServiceGrpc.getSearchToolsMethod) == null) {
          RouterServiceGrpc.getSearchToolsMethod = getSearchToolsMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.SearchToolsRequest, dev.toolgate.v1.SearchToolsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SearchTools"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.SearchToolsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.SearchToolsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RouterServiceMethodDescriptorSupplier("SearchTools"))
              .build();
        }
      }
    }
    return getSearchToolsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.GetSummaryPoolRequest,
      dev.toolgate.v1.GetSummaryPoolResponse> getGetSummaryPoolMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetSummaryPool",
      requestType = dev.toolgate.v1.GetSummaryPoolRequest.class,
      responseType = dev.toolgate.v1.GetSummaryPoolResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.GetSummaryPoolRequest,
      dev.toolgate.v1.GetSummaryPoolResponse> getGetSummaryPoolMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.GetSummaryPoolRequest, dev.toolgate.v1.GetSummaryPoolResponse> getGetSummaryPoolMethod;
    if ((getGetSummaryPoolMethod = RouterServiceGrpc.getGetSummaryPoolMethod) == null) {
      synchronized (RouterServiceGrpc.class) {
        if ((getGetSummaryPoolMethod = RouterServiceGrpc.getGetSummaryPoolMethod) == null) {
          RouterServiceGrpc.getGetSummaryPoolMethod = getGetSummaryPoolMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.GetSummaryPoolRequest, dev.toolgate.v1.GetSummaryPoolResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetSummaryPool"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetSummaryPoolRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetSummaryPoolResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RouterServiceMethodDescriptorSupplier("GetSummaryPool"))
              .build();
        }
      }
    }
    return getGetSummaryPoolMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.BatchGetToolSchemasRequest,
      dev.toolgate.v1.BatchGetToolSchemasResponse> getBatchGetToolSchemasMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BatchGetToolSchemas",
      requestType = dev.toolgate.v1.BatchGetToolSchemasRequest.class,
      responseType = dev.toolgate.v1.BatchGetToolSchemasResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.BatchGetToolSchemasRequest,
      dev.toolgate.v1.BatchGetToolSchemasResponse> getBatchGetToolSchemasMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.BatchGetToolSchemasRequest, dev.toolgate.v1.BatchGetToolSchemasResponse> getBatchGetToolSchemasMethod;
    if ((getBatchGetToolSchemasMethod = RouterServiceGrpc.getBatchGetToolSchemasMethod) == null) {
      synchronized (RouterServiceGrpc.class) {
        if ((getBatchGetToolSchemasMethod = RouterServiceGrpc.getBatchGetToolSchemasMethod) == null) {
          RouterServiceGrpc.getBatchGetToolSchemasMethod = getBatchGetToolSchemasMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.BatchGetToolSchemasRequest, dev.toolgate.v1.BatchGetToolSchemasResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BatchGetToolSchemas"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.BatchGetToolSchemasRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.BatchGetToolSchemasResponse.getDefaultInstance()))
              .setSchemaDescriptor(new RouterServiceMethodDescriptorSupplier("BatchGetToolSchemas"))
              .build();
        }
      }
    }
    return getBatchGetToolSchemasMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static RouterServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RouterServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RouterServiceStub>() {
        @java.lang.Override
        public RouterServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RouterServiceStub(channel, callOptions);
        }
      };
    return RouterServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static RouterServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RouterServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RouterServiceBlockingV2Stub>() {
        @java.lang.Override
        public RouterServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RouterServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return RouterServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static RouterServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RouterServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RouterServiceBlockingStub>() {
        @java.lang.Override
        public RouterServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RouterServiceBlockingStub(channel, callOptions);
        }
      };
    return RouterServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static RouterServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<RouterServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<RouterServiceFutureStub>() {
        @java.lang.Override
        public RouterServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new RouterServiceFutureStub(channel, callOptions);
        }
      };
    return RouterServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Decides which tools a model is shown, and which of its calls may run. Calls are stateless: what a
   * conversation must remember rides in the active-set handle and in the request.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Before the model: the active set for this turn.
     * </pre>
     */
    default void route(dev.toolgate.v1.RouteRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.RouteResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRouteMethod(), responseObserver);
    }

    /**
     * <pre>
     * After the model: may these calls run?
     * </pre>
     */
    default void gate(dev.toolgate.v1.GateRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GateResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGateMethod(), responseObserver);
    }

    /**
     * <pre>
     * Explicit discovery: by name, by MCP server, by keywords, or in natural language.
     * </pre>
     */
    default void searchTools(dev.toolgate.v1.SearchToolsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.SearchToolsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSearchToolsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Phase 1: the summaries of the catalog, whole or as a delta since a revision.
     * </pre>
     */
    default void getSummaryPool(dev.toolgate.v1.GetSummaryPoolRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetSummaryPoolResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetSummaryPoolMethod(), responseObserver);
    }

    /**
     * <pre>
     * Phase 2 on demand: full schemas by tool name.
     * </pre>
     */
    default void batchGetToolSchemas(dev.toolgate.v1.BatchGetToolSchemasRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.BatchGetToolSchemasResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBatchGetToolSchemasMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service RouterService.
   * <pre>
   * Decides which tools a model is shown, and which of its calls may run. Calls are stateless: what a
   * conversation must remember rides in the active-set handle and in the request.
   * </pre>
   */
  public static abstract class RouterServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return RouterServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service RouterService.
   * <pre>
   * Decides which tools a model is shown, and which of its calls may run. Calls are stateless: what a
   * conversation must remember rides in the active-set handle and in the request.
   * </pre>
   */
  public static final class RouterServiceStub
      extends io.grpc.stub.AbstractAsyncStub<RouterServiceStub> {
    private RouterServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RouterServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RouterServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Before the model: the active set for this turn.
     * </pre>
     */
    public void route(dev.toolgate.v1.RouteRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.RouteResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRouteMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * After the model: may these calls run?
     * </pre>
     */
    public void gate(dev.toolgate.v1.GateRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GateResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGateMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Explicit discovery: by name, by MCP server, by keywords, or in natural language.
     * </pre>
     */
    public void searchTools(dev.toolgate.v1.SearchToolsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.SearchToolsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSearchToolsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Phase 1: the summaries of the catalog, whole or as a delta since a revision.
     * </pre>
     */
    public void getSummaryPool(dev.toolgate.v1.GetSummaryPoolRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetSummaryPoolResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetSummaryPoolMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Phase 2 on demand: full schemas by tool name.
     * </pre>
     */
    public void batchGetToolSchemas(dev.toolgate.v1.BatchGetToolSchemasRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.BatchGetToolSchemasResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getBatchGetToolSchemasMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service RouterService.
   * <pre>
   * Decides which tools a model is shown, and which of its calls may run. Calls are stateless: what a
   * conversation must remember rides in the active-set handle and in the request.
   * </pre>
   */
  public static final class RouterServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<RouterServiceBlockingV2Stub> {
    private RouterServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RouterServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RouterServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Before the model: the active set for this turn.
     * </pre>
     */
    public dev.toolgate.v1.RouteResponse route(dev.toolgate.v1.RouteRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRouteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * After the model: may these calls run?
     * </pre>
     */
    public dev.toolgate.v1.GateResponse gate(dev.toolgate.v1.GateRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Explicit discovery: by name, by MCP server, by keywords, or in natural language.
     * </pre>
     */
    public dev.toolgate.v1.SearchToolsResponse searchTools(dev.toolgate.v1.SearchToolsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSearchToolsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Phase 1: the summaries of the catalog, whole or as a delta since a revision.
     * </pre>
     */
    public dev.toolgate.v1.GetSummaryPoolResponse getSummaryPool(dev.toolgate.v1.GetSummaryPoolRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetSummaryPoolMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Phase 2 on demand: full schemas by tool name.
     * </pre>
     */
    public dev.toolgate.v1.BatchGetToolSchemasResponse batchGetToolSchemas(dev.toolgate.v1.BatchGetToolSchemasRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getBatchGetToolSchemasMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service RouterService.
   * <pre>
   * Decides which tools a model is shown, and which of its calls may run. Calls are stateless: what a
   * conversation must remember rides in the active-set handle and in the request.
   * </pre>
   */
  public static final class RouterServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<RouterServiceBlockingStub> {
    private RouterServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RouterServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RouterServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Before the model: the active set for this turn.
     * </pre>
     */
    public dev.toolgate.v1.RouteResponse route(dev.toolgate.v1.RouteRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRouteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * After the model: may these calls run?
     * </pre>
     */
    public dev.toolgate.v1.GateResponse gate(dev.toolgate.v1.GateRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGateMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Explicit discovery: by name, by MCP server, by keywords, or in natural language.
     * </pre>
     */
    public dev.toolgate.v1.SearchToolsResponse searchTools(dev.toolgate.v1.SearchToolsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSearchToolsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Phase 1: the summaries of the catalog, whole or as a delta since a revision.
     * </pre>
     */
    public dev.toolgate.v1.GetSummaryPoolResponse getSummaryPool(dev.toolgate.v1.GetSummaryPoolRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetSummaryPoolMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Phase 2 on demand: full schemas by tool name.
     * </pre>
     */
    public dev.toolgate.v1.BatchGetToolSchemasResponse batchGetToolSchemas(dev.toolgate.v1.BatchGetToolSchemasRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getBatchGetToolSchemasMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service RouterService.
   * <pre>
   * Decides which tools a model is shown, and which of its calls may run. Calls are stateless: what a
   * conversation must remember rides in the active-set handle and in the request.
   * </pre>
   */
  public static final class RouterServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<RouterServiceFutureStub> {
    private RouterServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected RouterServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new RouterServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Before the model: the active set for this turn.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.RouteResponse> route(
        dev.toolgate.v1.RouteRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRouteMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * After the model: may these calls run?
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.GateResponse> gate(
        dev.toolgate.v1.GateRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGateMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Explicit discovery: by name, by MCP server, by keywords, or in natural language.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.SearchToolsResponse> searchTools(
        dev.toolgate.v1.SearchToolsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSearchToolsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Phase 1: the summaries of the catalog, whole or as a delta since a revision.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.GetSummaryPoolResponse> getSummaryPool(
        dev.toolgate.v1.GetSummaryPoolRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetSummaryPoolMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Phase 2 on demand: full schemas by tool name.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.BatchGetToolSchemasResponse> batchGetToolSchemas(
        dev.toolgate.v1.BatchGetToolSchemasRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getBatchGetToolSchemasMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_ROUTE = 0;
  private static final int METHODID_GATE = 1;
  private static final int METHODID_SEARCH_TOOLS = 2;
  private static final int METHODID_GET_SUMMARY_POOL = 3;
  private static final int METHODID_BATCH_GET_TOOL_SCHEMAS = 4;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final AsyncService serviceImpl;
    private final int methodId;

    MethodHandlers(AsyncService serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_ROUTE:
          serviceImpl.route((dev.toolgate.v1.RouteRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.RouteResponse>) responseObserver);
          break;
        case METHODID_GATE:
          serviceImpl.gate((dev.toolgate.v1.GateRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.GateResponse>) responseObserver);
          break;
        case METHODID_SEARCH_TOOLS:
          serviceImpl.searchTools((dev.toolgate.v1.SearchToolsRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.SearchToolsResponse>) responseObserver);
          break;
        case METHODID_GET_SUMMARY_POOL:
          serviceImpl.getSummaryPool((dev.toolgate.v1.GetSummaryPoolRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.GetSummaryPoolResponse>) responseObserver);
          break;
        case METHODID_BATCH_GET_TOOL_SCHEMAS:
          serviceImpl.batchGetToolSchemas((dev.toolgate.v1.BatchGetToolSchemasRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.BatchGetToolSchemasResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getRouteMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.RouteRequest,
              dev.toolgate.v1.RouteResponse>(
                service, METHODID_ROUTE)))
        .addMethod(
          getGateMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.GateRequest,
              dev.toolgate.v1.GateResponse>(
                service, METHODID_GATE)))
        .addMethod(
          getSearchToolsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.SearchToolsRequest,
              dev.toolgate.v1.SearchToolsResponse>(
                service, METHODID_SEARCH_TOOLS)))
        .addMethod(
          getGetSummaryPoolMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.GetSummaryPoolRequest,
              dev.toolgate.v1.GetSummaryPoolResponse>(
                service, METHODID_GET_SUMMARY_POOL)))
        .addMethod(
          getBatchGetToolSchemasMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.BatchGetToolSchemasRequest,
              dev.toolgate.v1.BatchGetToolSchemasResponse>(
                service, METHODID_BATCH_GET_TOOL_SCHEMAS)))
        .build();
  }

  private static abstract class RouterServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    RouterServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.toolgate.v1.Router.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("RouterService");
    }
  }

  private static final class RouterServiceFileDescriptorSupplier
      extends RouterServiceBaseDescriptorSupplier {
    RouterServiceFileDescriptorSupplier() {}
  }

  private static final class RouterServiceMethodDescriptorSupplier
      extends RouterServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    RouterServiceMethodDescriptorSupplier(java.lang.String methodName) {
      this.methodName = methodName;
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.MethodDescriptor getMethodDescriptor() {
      return getServiceDescriptor().findMethodByName(methodName);
    }
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (RouterServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new RouterServiceFileDescriptorSupplier())
              .addMethod(getRouteMethod())
              .addMethod(getGateMethod())
              .addMethod(getSearchToolsMethod())
              .addMethod(getGetSummaryPoolMethod())
              .addMethod(getBatchGetToolSchemasMethod())
              .build();
        }
      }
    }
    return result;
  }
}
