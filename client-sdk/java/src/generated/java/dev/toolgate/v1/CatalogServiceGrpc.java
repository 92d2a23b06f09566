package dev.toolgate.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * The tools that a tenant's agents may be shown. Every change gets a new catalog revision.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class CatalogServiceGrpc {

  private CatalogServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "toolgate.v1.CatalogService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.RegisterServerRequest,
      dev.toolgate.v1.RegisterServerResponse> getRegisterServerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RegisterServer",
      requestType = dev.toolgate.v1.RegisterServerRequest.class,
      responseType = dev.toolgate.v1.RegisterServerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.RegisterServerRequest,
      dev.toolgate.v1.RegisterServerResponse> getRegisterServerMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.RegisterServerRequest, dev.toolgate.v1.RegisterServerResponse> getRegisterServerMethod;
    if ((getRegisterServerMethod = CatalogServiceGrpc.getRegisterServerMethod) == null) {
      synchronized (CatalogServiceGrpc.class) {
        if ((getRegisterServerMethod = CatalogServiceGrpc.getRegisterServerMethod) == null) {
          CatalogServiceGrpc.getRegisterServerMethod = getRegisterServerMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.RegisterServerRequest, dev.toolgate.v1.RegisterServerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RegisterServer"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.RegisterServerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.RegisterServerResponse.getDefaultInstance()))
              .setSchemaDescriptor(new CatalogServiceMethodDescriptorSupplier("RegisterServer"))
              .build();
        }
      }
    }
    return getRegisterServerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.UnregisterServerRequest,
      dev.toolgate.v1.UnregisterServerResponse> getUnregisterServerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UnregisterServer",
      requestType = dev.toolgate.v1.UnregisterServerRequest.class,
      responseType = dev.toolgate.v1.UnregisterServerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.UnregisterServerRequest,
      dev.toolgate.v1.UnregisterServerResponse> getUnregisterServerMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.UnregisterServerRequest, dev.toolgate.v1.UnregisterServerResponse> getUnregisterServerMethod;
    if ((getUnregisterServerMethod = CatalogServiceGrpc.getUnregisterServerMethod) == null) {
      synchronized (CatalogServiceGrpc.class) {
        if ((getUnregisterServerMethod = CatalogServiceGrpc.getUnregisterServerMethod) == null) {
          CatalogServiceGrpc.getUnregisterServerMethod = getUnregisterServerMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.UnregisterServerRequest, dev.toolgate.v1.UnregisterServerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UnregisterServer"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.UnregisterServerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.UnregisterServerResponse.getDefaultInstance()))
              .setSchemaDescriptor(new CatalogServiceMethodDescriptorSupplier("UnregisterServer"))
              .build();
        }
      }
    }
    return getUnregisterServerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.GetServerRequest,
      dev.toolgate.v1.GetServerResponse> getGetServerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetServer",
      requestType = dev.toolgate.v1.GetServerRequest.class,
      responseType = dev.toolgate.v1.GetServerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.GetServerRequest,
      dev.toolgate.v1.GetServerResponse> getGetServerMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.GetServerRequest, dev.toolgate.v1.GetServerResponse> getGetServerMethod;
    if ((getGetServerMethod = CatalogServiceGrpc.getGetServerMethod) == null) {
      synchronized (CatalogServiceGrpc.class) {
        if ((getGetServerMethod = CatalogServiceGrpc.getGetServerMethod) == null) {
          CatalogServiceGrpc.getGetServerMethod = getGetServerMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.GetServerRequest, dev.toolgate.v1.GetServerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetServer"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetServerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetServerResponse.getDefaultInstance()))
              .setSchemaDescriptor(new CatalogServiceMethodDescriptorSupplier("GetServer"))
              .build();
        }
      }
    }
    return getGetServerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.ListServersRequest,
      dev.toolgate.v1.ListServersResponse> getListServersMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListServers",
      requestType = dev.toolgate.v1.ListServersRequest.class,
      responseType = dev.toolgate.v1.ListServersResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.ListServersRequest,
      dev.toolgate.v1.ListServersResponse> getListServersMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.ListServersRequest, dev.toolgate.v1.ListServersResponse> getListServersMethod;
    if ((getListServersMethod = CatalogServiceGrpc.getListServersMethod) == null) {
      synchronized (CatalogServiceGrpc.class) {
        if ((getListServersMethod = CatalogServiceGrpc.getListServersMethod) == null) {
          CatalogServiceGrpc.getListServersMethod = getListServersMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.ListServersRequest, dev.toolgate.v1.ListServersResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListServers"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ListServersRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ListServersResponse.getDefaultInstance()))
              .setSchemaDescriptor(new CatalogServiceMethodDescriptorSupplier("ListServers"))
              .build();
        }
      }
    }
    return getListServersMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.ListToolsRequest,
      dev.toolgate.v1.ListToolsResponse> getListToolsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListTools",
      requestType = dev.toolgate.v1.ListToolsRequest.class,
      responseType = dev.toolgate.v1.ListToolsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.ListToolsRequest,
      dev.toolgate.v1.ListToolsResponse> getListToolsMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.ListToolsRequest, dev.toolgate.v1.ListToolsResponse> getListToolsMethod;
    if ((getListToolsMethod = CatalogServiceGrpc.getListToolsMethod) == null) {
      synchronized (CatalogServiceGrpc.class) {
        if ((getListToolsMethod = CatalogServiceGrpc.getListToolsMethod) == null) {
          CatalogServiceGrpc.getListToolsMethod = getListToolsMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.ListToolsRequest, dev.toolgate.v1.ListToolsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListTools"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ListToolsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ListToolsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new CatalogServiceMethodDescriptorSupplier("ListTools"))
              .build();
        }
      }
    }
    return getListToolsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.WatchCatalogRequest,
      dev.toolgate.v1.WatchCatalogResponse> getWatchCatalogMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchCatalog",
      requestType = dev.toolgate.v1.WatchCatalogRequest.class,
      responseType = dev.toolgate.v1.WatchCatalogResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.WatchCatalogRequest,
      dev.toolgate.v1.WatchCatalogResponse> getWatchCatalogMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.WatchCatalogRequest, dev.toolgate.v1.WatchCatalogResponse> getWatchCatalogMethod;
    if ((getWatchCatalogMethod = CatalogServiceGrpc.getWatchCatalogMethod) == null) {
      synchronized (CatalogServiceGrpc.class) {
        if ((getWatchCatalogMethod = CatalogServiceGrpc.getWatchCatalogMethod) == null) {
          CatalogServiceGrpc.getWatchCatalogMethod = getWatchCatalogMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.WatchCatalogRequest, dev.toolgate.v1.WatchCatalogResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchCatalog"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.WatchCatalogRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.WatchCatalogResponse.getDefaultInstance()))
              .setSchemaDescriptor(new CatalogServiceMethodDescriptorSupplier("WatchCatalog"))
              .build();
        }
      }
    }
    return getWatchCatalogMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.ApproveToolsRequest,
      dev.toolgate.v1.ApproveToolsResponse> getApproveToolsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ApproveTools",
      requestType = dev.toolgate.v1.ApproveToolsRequest.class,
      responseType = dev.toolgate.v1.ApproveToolsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.ApproveToolsRequest,
      dev.toolgate.v1.ApproveToolsResponse> getApproveToolsMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.ApproveToolsRequest, dev.toolgate.v1.ApproveToolsResponse> getApproveToolsMethod;
    if ((getApproveToolsMethod = CatalogServiceGrpc.getApproveToolsMethod) == null) {
      synchronized (CatalogServiceGrpc.class) {
        if ((getApproveToolsMethod = CatalogServiceGrpc.getApproveToolsMethod) == null) {
          CatalogServiceGrpc.getApproveToolsMethod = getApproveToolsMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.ApproveToolsRequest, dev.toolgate.v1.ApproveToolsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ApproveTools"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ApproveToolsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ApproveToolsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new CatalogServiceMethodDescriptorSupplier("ApproveTools"))
              .build();
        }
      }
    }
    return getApproveToolsMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static CatalogServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<CatalogServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<CatalogServiceStub>() {
        @java.lang.Override
        public CatalogServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new CatalogServiceStub(channel, callOptions);
        }
      };
    return CatalogServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static CatalogServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<CatalogServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<CatalogServiceBlockingV2Stub>() {
        @java.lang.Override
        public CatalogServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new CatalogServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return CatalogServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static CatalogServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<CatalogServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<CatalogServiceBlockingStub>() {
        @java.lang.Override
        public CatalogServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new CatalogServiceBlockingStub(channel, callOptions);
        }
      };
    return CatalogServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static CatalogServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<CatalogServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<CatalogServiceFutureStub>() {
        @java.lang.Override
        public CatalogServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new CatalogServiceFutureStub(channel, callOptions);
        }
      };
    return CatalogServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * The tools that a tenant's agents may be shown. Every change gets a new catalog revision.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Upserts one MCP server's tools, atomically. Each tool is checked alone.
     * </pre>
     */
    default void registerServer(dev.toolgate.v1.RegisterServerRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.RegisterServerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRegisterServerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Removes one MCP server and its tools.
     * </pre>
     */
    default void unregisterServer(dev.toolgate.v1.UnregisterServerRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.UnregisterServerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUnregisterServerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads one MCP server.
     * </pre>
     */
    default void getServer(dev.toolgate.v1.GetServerRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetServerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetServerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the tenant's MCP servers, by name.
     * </pre>
     */
    default void listServers(dev.toolgate.v1.ListServersRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ListServersResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListServersMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists the tenant's tools, by MCP server and name.
     * </pre>
     */
    default void listTools(dev.toolgate.v1.ListToolsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ListToolsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListToolsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams changes of the catalog as they are committed. When the stream breaks, or ends with UNAVAILABLE
     * since the service drains, the client asks again from the last revision that it has seen.
     * </pre>
     */
    default void watchCatalog(dev.toolgate.v1.WatchCatalogRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.WatchCatalogResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchCatalogMethod(), responseObserver);
    }

    /**
     * <pre>
     * Accepts tools that wait for approval, each as it was reviewed. With authentication on, for admins.
     * </pre>
     */
    default void approveTools(dev.toolgate.v1.ApproveToolsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ApproveToolsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getApproveToolsMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service CatalogService.
   * <pre>
   * The tools that a tenant's agents may be shown. Every change gets a new catalog revision.
   * </pre>
   */
  public static abstract class CatalogServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return CatalogServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service CatalogService.
   * <pre>
   * The tools that a tenant's agents may be shown. Every change gets a new catalog revision.
   * </pre>
   */
  public static final class CatalogServiceStub
      extends io.grpc.stub.AbstractAsyncStub<CatalogServiceStub> {
    private CatalogServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected CatalogServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new CatalogServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Upserts one MCP server's tools, atomically. Each tool is checked alone.
     * </pre>
     */
    public void registerServer(dev.toolgate.v1.RegisterServerRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.RegisterServerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRegisterServerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Removes one MCP server and its tools.
     * </pre>
     */
    public void unregisterServer(dev.toolgate.v1.UnregisterServerRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.UnregisterServerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUnregisterServerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads one MCP server.
     * </pre>
     */
    public void getServer(dev.toolgate.v1.GetServerRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetServerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetServerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the tenant's MCP servers, by name.
     * </pre>
     */
    public void listServers(dev.toolgate.v1.ListServersRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ListServersResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListServersMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists the tenant's tools, by MCP server and name.
     * </pre>
     */
    public void listTools(dev.toolgate.v1.ListToolsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ListToolsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListToolsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams changes of the catalog as they are committed. When the stream breaks, or ends with UNAVAILABLE
     * since the service drains, the client asks again from the last revision that it has seen.
     * </pre>
     */
    public void watchCatalog(dev.toolgate.v1.WatchCatalogRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.WatchCatalogResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchCatalogMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Accepts tools that wait for approval, each as it was reviewed. With authentication on, for admins.
     * </pre>
     */
    public void approveTools(dev.toolgate.v1.ApproveToolsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ApproveToolsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getApproveToolsMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service CatalogService.
   * <pre>
   * The tools that a tenant's agents may be shown. Every change gets a new catalog revision.
   * </pre>
   */
  public static final class CatalogServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<CatalogServiceBlockingV2Stub> {
    private CatalogServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected CatalogServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new CatalogServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Upserts one MCP server's tools, atomically. Each tool is checked alone.
     * </pre>
     */
    public dev.toolgate.v1.RegisterServerResponse registerServer(dev.toolgate.v1.RegisterServerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRegisterServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes one MCP server and its tools.
     * </pre>
     */
    public dev.toolgate.v1.UnregisterServerResponse unregisterServer(dev.toolgate.v1.UnregisterServerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUnregisterServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads one MCP server.
     * </pre>
     */
    public dev.toolgate.v1.GetServerResponse getServer(dev.toolgate.v1.GetServerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the tenant's MCP servers, by name.
     * </pre>
     */
    public dev.toolgate.v1.ListServersResponse listServers(dev.toolgate.v1.ListServersRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListServersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the tenant's tools, by MCP server and name.
     * </pre>
     */
    public dev.toolgate.v1.ListToolsResponse listTools(dev.toolgate.v1.ListToolsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListToolsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams changes of the catalog as they are committed. When the stream breaks, or ends with UNAVAILABLE
     * since the service drains, the client asks again from the last revision that it has seen.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.toolgate.v1.WatchCatalogResponse>
        watchCatalog(dev.toolgate.v1.WatchCatalogRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchCatalogMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Accepts tools that wait for approval, each as it was reviewed. With authentication on, for admins.
     * </pre>
     */
    public dev.toolgate.v1.ApproveToolsResponse approveTools(dev.toolgate.v1.ApproveToolsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getApproveToolsMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service CatalogService.
   * <pre>
   * The tools that a tenant's agents may be shown. Every change gets a new catalog revision.
   * </pre>
   */
  public static final class CatalogServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<CatalogServiceBlockingStub> {
    private CatalogServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected CatalogServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new CatalogServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Upserts one MCP server's tools, atomically. Each tool is checked alone.
     * </pre>
     */
    public dev.toolgate.v1.RegisterServerResponse registerServer(dev.toolgate.v1.RegisterServerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRegisterServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes one MCP server and its tools.
     * </pre>
     */
    public dev.toolgate.v1.UnregisterServerResponse unregisterServer(dev.toolgate.v1.UnregisterServerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUnregisterServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads one MCP server.
     * </pre>
     */
    public dev.toolgate.v1.GetServerResponse getServer(dev.toolgate.v1.GetServerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the tenant's MCP servers, by name.
     * </pre>
     */
    public dev.toolgate.v1.ListServersResponse listServers(dev.toolgate.v1.ListServersRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListServersMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists the tenant's tools, by MCP server and name.
     * </pre>
     */
    public dev.toolgate.v1.ListToolsResponse listTools(dev.toolgate.v1.ListToolsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListToolsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams changes of the catalog as they are committed. When the stream breaks, or ends with UNAVAILABLE
     * since the service drains, the client asks again from the last revision that it has seen.
     * </pre>
     */
    public java.util.Iterator<dev.toolgate.v1.WatchCatalogResponse> watchCatalog(
        dev.toolgate.v1.WatchCatalogRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchCatalogMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Accepts tools that wait for approval, each as it was reviewed. With authentication on, for admins.
     * </pre>
     */
    public dev.toolgate.v1.ApproveToolsResponse approveTools(dev.toolgate.v1.ApproveToolsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getApproveToolsMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service CatalogService.
   * <pre>
   * The tools that a tenant's agents may be shown. Every change gets a new catalog revision.
   * </pre>
   */
  public static final class CatalogServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<CatalogServiceFutureStub> {
    private CatalogServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected CatalogServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new CatalogServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Upserts one MCP server's tools, atomically. Each tool is checked alone.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.RegisterServerResponse> registerServer(
        dev.toolgate.v1.RegisterServerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRegisterServerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Removes one MCP server and its tools.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.UnregisterServerResponse> unregisterServer(
        dev.toolgate.v1.UnregisterServerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUnregisterServerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads one MCP server.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.GetServerResponse> getServer(
        dev.toolgate.v1.GetServerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetServerMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the tenant's MCP servers, by name.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.ListServersResponse> listServers(
        dev.toolgate.v1.ListServersRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListServersMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists the tenant's tools, by MCP server and name.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.ListToolsResponse> listTools(
        dev.toolgate.v1.ListToolsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListToolsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Accepts tools that wait for approval, each as it was reviewed. With authentication on, for admins.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.ApproveToolsResponse> approveTools(
        dev.toolgate.v1.ApproveToolsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getApproveToolsMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_REGISTER_SERVER = 0;
  private static final int METHODID_UNREGISTER_SERVER = 1;
  private static final int METHODID_GET_SERVER = 2;
  private static final int METHODID_LIST_SERVERS = 3;
  private static final int METHODID_LIST_TOOLS = 4;
  private static final int METHODID_WATCH_CATALOG = 5;
  private static final int METHODID_APPROVE_TOOLS = 6;

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
        case METHODID_REGISTER_SERVER:
          serviceImpl.registerServer((dev.toolgate.v1.RegisterServerRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.RegisterServerResponse>) responseObserver);
          break;
        case METHODID_UNREGISTER_SERVER:
          serviceImpl.unregisterServer((dev.toolgate.v1.UnregisterServerRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.UnregisterServerResponse>) responseObserver);
          break;
        case METHODID_GET_SERVER:
          serviceImpl.getServer((dev.toolgate.v1.GetServerRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.GetServerResponse>) responseObserver);
          break;
        case METHODID_LIST_SERVERS:
          serviceImpl.listServers((dev.toolgate.v1.ListServersRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.ListServersResponse>) responseObserver);
          break;
        case METHODID_LIST_TOOLS:
          serviceImpl.listTools((dev.toolgate.v1.ListToolsRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.ListToolsResponse>) responseObserver);
          break;
        case METHODID_WATCH_CATALOG:
          serviceImpl.watchCatalog((dev.toolgate.v1.WatchCatalogRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.WatchCatalogResponse>) responseObserver);
          break;
        case METHODID_APPROVE_TOOLS:
          serviceImpl.approveTools((dev.toolgate.v1.ApproveToolsRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.ApproveToolsResponse>) responseObserver);
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
          getRegisterServerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.RegisterServerRequest,
              dev.toolgate.v1.RegisterServerResponse>(
                service, METHODID_REGISTER_SERVER)))
        .addMethod(
          getUnregisterServerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.UnregisterServerRequest,
              dev.toolgate.v1.UnregisterServerResponse>(
                service, METHODID_UNREGISTER_SERVER)))
        .addMethod(
          getGetServerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.GetServerRequest,
              dev.toolgate.v1.GetServerResponse>(
                service, METHODID_GET_SERVER)))
        .addMethod(
          getListServersMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.ListServersRequest,
              dev.toolgate.v1.ListServersResponse>(
                service, METHODID_LIST_SERVERS)))
        .addMethod(
          getListToolsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.ListToolsRequest,
              dev.toolgate.v1.ListToolsResponse>(
                service, METHODID_LIST_TOOLS)))
        .addMethod(
          getWatchCatalogMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.toolgate.v1.WatchCatalogRequest,
              dev.toolgate.v1.WatchCatalogResponse>(
                service, METHODID_WATCH_CATALOG)))
        .addMethod(
          getApproveToolsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.ApproveToolsRequest,
              dev.toolgate.v1.ApproveToolsResponse>(
                service, METHODID_APPROVE_TOOLS)))
        .build();
  }

  private static abstract class CatalogServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    CatalogServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.toolgate.v1.Catalog.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("CatalogService");
    }
  }

  private static final class CatalogServiceFileDescriptorSupplier
      extends CatalogServiceBaseDescriptorSupplier {
    CatalogServiceFileDescriptorSupplier() {}
  }

  private static final class CatalogServiceMethodDescriptorSupplier
      extends CatalogServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    CatalogServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (CatalogServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new CatalogServiceFileDescriptorSupplier())
              .addMethod(getRegisterServerMethod())
              .addMethod(getUnregisterServerMethod())
              .addMethod(getGetServerMethod())
              .addMethod(getListServersMethod())
              .addMethod(getListToolsMethod())
              .addMethod(getWatchCatalogMethod())
              .addMethod(getApproveToolsMethod())
              .build();
        }
      }
    }
    return result;
  }
}
