package dev.toolgate.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * What is remembered of a tenant's calls: embeddings of intents with the tools that were called for them. Texts,
 * arguments and names of principals are not remembered. Off unless the server's configuration names the tenant.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class MemoryServiceGrpc {

  private MemoryServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "toolgate.v1.MemoryService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.GetMemoryStatsRequest,
      dev.toolgate.v1.GetMemoryStatsResponse> getGetMemoryStatsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetMemoryStats",
      requestType = dev.toolgate.v1.GetMemoryStatsRequest.class,
      responseType = dev.toolgate.v1.GetMemoryStatsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.GetMemoryStatsRequest,
      dev.toolgate.v1.GetMemoryStatsResponse> getGetMemoryStatsMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.GetMemoryStatsRequest, dev.toolgate.v1.GetMemoryStatsResponse> getGetMemoryStatsMethod;
    if ((getGetMemoryStatsMethod = MemoryServiceGrpc.getGetMemoryStatsMethod) == null) {
      synchronized (MemoryServiceGrpc.class) {
        if ((getGetMemoryStatsMethod = MemoryServiceGrpc.getGetMemoryStatsMethod) == null) {
          MemoryServiceGrpc.getGetMemoryStatsMethod = getGetMemoryStatsMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.GetMemoryStatsRequest, dev.toolgate.v1.GetMemoryStatsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetMemoryStats"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetMemoryStatsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetMemoryStatsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new MemoryServiceMethodDescriptorSupplier("GetMemoryStats"))
              .build();
        }
      }
    }
    return getGetMemoryStatsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.ClearMemoryRequest,
      dev.toolgate.v1.ClearMemoryResponse> getClearMemoryMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ClearMemory",
      requestType = dev.toolgate.v1.ClearMemoryRequest.class,
      responseType = dev.toolgate.v1.ClearMemoryResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.ClearMemoryRequest,
      dev.toolgate.v1.ClearMemoryResponse> getClearMemoryMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.ClearMemoryRequest, dev.toolgate.v1.ClearMemoryResponse> getClearMemoryMethod;
    if ((getClearMemoryMethod = MemoryServiceGrpc.getClearMemoryMethod) == null) {
      synchronized (MemoryServiceGrpc.class) {
        if ((getClearMemoryMethod = MemoryServiceGrpc.getClearMemoryMethod) == null) {
          MemoryServiceGrpc.getClearMemoryMethod = getClearMemoryMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.ClearMemoryRequest, dev.toolgate.v1.ClearMemoryResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ClearMemory"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ClearMemoryRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.ClearMemoryResponse.getDefaultInstance()))
              .setSchemaDescriptor(new MemoryServiceMethodDescriptorSupplier("ClearMemory"))
              .build();
        }
      }
    }
    return getClearMemoryMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static MemoryServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<MemoryServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<MemoryServiceStub>() {
        @java.lang.Override
        public MemoryServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new MemoryServiceStub(channel, callOptions);
        }
      };
    return MemoryServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static MemoryServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<MemoryServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<MemoryServiceBlockingV2Stub>() {
        @java.lang.Override
        public MemoryServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new MemoryServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return MemoryServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static MemoryServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<MemoryServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<MemoryServiceBlockingStub>() {
        @java.lang.Override
        public MemoryServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new MemoryServiceBlockingStub(channel, callOptions);
        }
      };
    return MemoryServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static MemoryServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<MemoryServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<MemoryServiceFutureStub>() {
        @java.lang.Override
        public MemoryServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new MemoryServiceFutureStub(channel, callOptions);
        }
      };
    return MemoryServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * What is remembered of a tenant's calls: embeddings of intents with the tools that were called for them. Texts,
   * arguments and names of principals are not remembered. Off unless the server's configuration names the tenant.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Says how much is remembered, tool by tool.
     * </pre>
     */
    default void getMemoryStats(dev.toolgate.v1.GetMemoryStatsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetMemoryStatsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMemoryStatsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Forgets what is remembered of the tenant, of one of its MCP servers, or of one tool. It is gone for good when
     * this returns; what other replicas have seen and not written yet may follow within their
     * `memory.refresh_interval`.
     * </pre>
     */
    default void clearMemory(dev.toolgate.v1.ClearMemoryRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ClearMemoryResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getClearMemoryMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service MemoryService.
   * <pre>
   * What is remembered of a tenant's calls: embeddings of intents with the tools that were called for them. Texts,
   * arguments and names of principals are not remembered. Off unless the server's configuration names the tenant.
   * </pre>
   */
  public static abstract class MemoryServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return MemoryServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service MemoryService.
   * <pre>
   * What is remembered of a tenant's calls: embeddings of intents with the tools that were called for them. Texts,
   * arguments and names of principals are not remembered. Off unless the server's configuration names the tenant.
   * </pre>
   */
  public static final class MemoryServiceStub
      extends io.grpc.stub.AbstractAsyncStub<MemoryServiceStub> {
    private MemoryServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected MemoryServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new MemoryServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Says how much is remembered, tool by tool.
     * </pre>
     */
    public void getMemoryStats(dev.toolgate.v1.GetMemoryStatsRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetMemoryStatsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMemoryStatsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Forgets what is remembered of the tenant, of one of its MCP servers, or of one tool. It is gone for good when
     * this returns; what other replicas have seen and not written yet may follow within their
     * `memory.refresh_interval`.
     * </pre>
     */
    public void clearMemory(dev.toolgate.v1.ClearMemoryRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.ClearMemoryResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getClearMemoryMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service MemoryService.
   * <pre>
   * What is remembered of a tenant's calls: embeddings of intents with the tools that were called for them. Texts,
   * arguments and names of principals are not remembered. Off unless the server's configuration names the tenant.
   * </pre>
   */
  public static final class MemoryServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<MemoryServiceBlockingV2Stub> {
    private MemoryServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected MemoryServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new MemoryServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Says how much is remembered, tool by tool.
     * </pre>
     */
    public dev.toolgate.v1.GetMemoryStatsResponse getMemoryStats(dev.toolgate.v1.GetMemoryStatsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMemoryStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Forgets what is remembered of the tenant, of one of its MCP servers, or of one tool. It is gone for good when
     * this returns; what other replicas have seen and not written yet may follow within their
     * `memory.refresh_interval`.
     * </pre>
     */
    public dev.toolgate.v1.ClearMemoryResponse clearMemory(dev.toolgate.v1.ClearMemoryRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getClearMemoryMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service MemoryService.
   * <pre>
   * What is remembered of a tenant's calls: embeddings of intents with the tools that were called for them. Texts,
   * arguments and names of principals are not remembered. Off unless the server's configuration names the tenant.
   * </pre>
   */
  public static final class MemoryServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<MemoryServiceBlockingStub> {
    private MemoryServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected MemoryServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new MemoryServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Says how much is remembered, tool by tool.
     * </pre>
     */
    public dev.toolgate.v1.GetMemoryStatsResponse getMemoryStats(dev.toolgate.v1.GetMemoryStatsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMemoryStatsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Forgets what is remembered of the tenant, of one of its MCP servers, or of one tool. It is gone for good when
     * this returns; what other replicas have seen and not written yet may follow within their
     * `memory.refresh_interval`.
     * </pre>
     */
    public dev.toolgate.v1.ClearMemoryResponse clearMemory(dev.toolgate.v1.ClearMemoryRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getClearMemoryMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service MemoryService.
   * <pre>
   * What is remembered of a tenant's calls: embeddings of intents with the tools that were called for them. Texts,
   * arguments and names of principals are not remembered. Off unless the server's configuration names the tenant.
   * </pre>
   */
  public static final class MemoryServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<MemoryServiceFutureStub> {
    private MemoryServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected MemoryServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new MemoryServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Says how much is remembered, tool by tool.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.GetMemoryStatsResponse> getMemoryStats(
        dev.toolgate.v1.GetMemoryStatsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMemoryStatsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Forgets what is remembered of the tenant, of one of its MCP servers, or of one tool. It is gone for good when
     * this returns; what other replicas have seen and not written yet may follow within their
     * `memory.refresh_interval`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.ClearMemoryResponse> clearMemory(
        dev.toolgate.v1.ClearMemoryRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getClearMemoryMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET_MEMORY_STATS = 0;
  private static final int METHODID_CLEAR_MEMORY = 1;

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
        case METHODID_GET_MEMORY_STATS:
          serviceImpl.getMemoryStats((dev.toolgate.v1.GetMemoryStatsRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.GetMemoryStatsResponse>) responseObserver);
          break;
        case METHODID_CLEAR_MEMORY:
          serviceImpl.clearMemory((dev.toolgate.v1.ClearMemoryRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.ClearMemoryResponse>) responseObserver);
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
          getGetMemoryStatsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.GetMemoryStatsRequest,
              dev.toolgate.v1.GetMemoryStatsResponse>(
                service, METHODID_GET_MEMORY_STATS)))
        .addMethod(
          getClearMemoryMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.ClearMemoryRequest,
              dev.toolgate.v1.ClearMemoryResponse>(
                service, METHODID_CLEAR_MEMORY)))
        .build();
  }

  private static abstract class MemoryServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    MemoryServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.toolgate.v1.Memory.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("MemoryService");
    }
  }

  private static final class MemoryServiceFileDescriptorSupplier
      extends MemoryServiceBaseDescriptorSupplier {
    MemoryServiceFileDescriptorSupplier() {}
  }

  private static final class MemoryServiceMethodDescriptorSupplier
      extends MemoryServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    MemoryServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (MemoryServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new MemoryServiceFileDescriptorSupplier())
              .addMethod(getGetMemoryStatsMethod())
              .addMethod(getClearMemoryMethod())
              .build();
        }
      }
    }
    return result;
  }
}
