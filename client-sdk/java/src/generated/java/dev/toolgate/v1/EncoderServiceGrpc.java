package dev.toolgate.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Turns texts into embeddings. Served by encoder workers, not by the server.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class EncoderServiceGrpc {

  private EncoderServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "toolgate.v1.EncoderService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.EmbedRequest,
      dev.toolgate.v1.EmbedResponse> getEmbedMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Embed",
      requestType = dev.toolgate.v1.EmbedRequest.class,
      responseType = dev.toolgate.v1.EmbedResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.EmbedRequest,
      dev.toolgate.v1.EmbedResponse> getEmbedMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.EmbedRequest, dev.toolgate.v1.EmbedResponse> getEmbedMethod;
    if ((getEmbedMethod = EncoderServiceGrpc.getEmbedMethod) == null) {
      synchronized (EncoderServiceGrpc.class) {
        if ((getEmbedMethod = EncoderServiceGrpc.getEmbedMethod) == null) {
          EncoderServiceGrpc.getEmbedMethod = getEmbedMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.EmbedRequest, dev.toolgate.v1.EmbedResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Embed"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.EmbedRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.EmbedResponse.getDefaultInstance()))
              .setSchemaDescriptor(new EncoderServiceMethodDescriptorSupplier("Embed"))
              .build();
        }
      }
    }
    return getEmbedMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.DescribeRequest,
      dev.toolgate.v1.DescribeResponse> getDescribeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Describe",
      requestType = dev.toolgate.v1.DescribeRequest.class,
      responseType = dev.toolgate.v1.DescribeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.DescribeRequest,
      dev.toolgate.v1.DescribeResponse> getDescribeMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.DescribeRequest, dev.toolgate.v1.DescribeResponse> getDescribeMethod;
    if ((getDescribeMethod = EncoderServiceGrpc.getDescribeMethod) == null) {
      synchronized (EncoderServiceGrpc.class) {
        if ((getDescribeMethod = EncoderServiceGrpc.getDescribeMethod) == null) {
          EncoderServiceGrpc.getDescribeMethod = getDescribeMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.DescribeRequest, dev.toolgate.v1.DescribeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Describe"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.DescribeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.DescribeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new EncoderServiceMethodDescriptorSupplier("Describe"))
              .build();
        }
      }
    }
    return getDescribeMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static EncoderServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EncoderServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EncoderServiceStub>() {
        @java.lang.Override
        public EncoderServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EncoderServiceStub(channel, callOptions);
        }
      };
    return EncoderServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static EncoderServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EncoderServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EncoderServiceBlockingV2Stub>() {
        @java.lang.Override
        public EncoderServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EncoderServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return EncoderServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static EncoderServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EncoderServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EncoderServiceBlockingStub>() {
        @java.lang.Override
        public EncoderServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EncoderServiceBlockingStub(channel, callOptions);
        }
      };
    return EncoderServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static EncoderServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<EncoderServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<EncoderServiceFutureStub>() {
        @java.lang.Override
        public EncoderServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new EncoderServiceFutureStub(channel, callOptions);
        }
      };
    return EncoderServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Turns texts into embeddings. Served by encoder workers, not by the server.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Embeds texts.
     * </pre>
     */
    default void embed(dev.toolgate.v1.EmbedRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.EmbedResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getEmbedMethod(), responseObserver);
    }

    /**
     * <pre>
     * Says which model is loaded, and on what.
     * </pre>
     */
    default void describe(dev.toolgate.v1.DescribeRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.DescribeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDescribeMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service EncoderService.
   * <pre>
   * Turns texts into embeddings. Served by encoder workers, not by the server.
   * </pre>
   */
  public static abstract class EncoderServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return EncoderServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service EncoderService.
   * <pre>
   * Turns texts into embeddings. Served by encoder workers, not by the server.
   * </pre>
   */
  public static final class EncoderServiceStub
      extends io.grpc.stub.AbstractAsyncStub<EncoderServiceStub> {
    private EncoderServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EncoderServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EncoderServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Embeds texts.
     * </pre>
     */
    public void embed(dev.toolgate.v1.EmbedRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.EmbedResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getEmbedMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Says which model is loaded, and on what.
     * </pre>
     */
    public void describe(dev.toolgate.v1.DescribeRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.DescribeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDescribeMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service EncoderService.
   * <pre>
   * Turns texts into embeddings. Served by encoder workers, not by the server.
   * </pre>
   */
  public static final class EncoderServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<EncoderServiceBlockingV2Stub> {
    private EncoderServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EncoderServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EncoderServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Embeds texts.
     * </pre>
     */
    public dev.toolgate.v1.EmbedResponse embed(dev.toolgate.v1.EmbedRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getEmbedMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Says which model is loaded, and on what.
     * </pre>
     */
    public dev.toolgate.v1.DescribeResponse describe(dev.toolgate.v1.DescribeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDescribeMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service EncoderService.
   * <pre>
   * Turns texts into embeddings. Served by encoder workers, not by the server.
   * </pre>
   */
  public static final class EncoderServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<EncoderServiceBlockingStub> {
    private EncoderServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EncoderServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EncoderServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Embeds texts.
     * </pre>
     */
    public dev.toolgate.v1.EmbedResponse embed(dev.toolgate.v1.EmbedRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getEmbedMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Says which model is loaded, and on what.
     * </pre>
     */
    public dev.toolgate.v1.DescribeResponse describe(dev.toolgate.v1.DescribeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDescribeMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service EncoderService.
   * <pre>
   * Turns texts into embeddings. Served by encoder workers, not by the server.
   * </pre>
   */
  public static final class EncoderServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<EncoderServiceFutureStub> {
    private EncoderServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected EncoderServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new EncoderServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Embeds texts.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.EmbedResponse> embed(
        dev.toolgate.v1.EmbedRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getEmbedMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Says which model is loaded, and on what.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.DescribeResponse> describe(
        dev.toolgate.v1.DescribeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDescribeMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_EMBED = 0;
  private static final int METHODID_DESCRIBE = 1;

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
        case METHODID_EMBED:
          serviceImpl.embed((dev.toolgate.v1.EmbedRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.EmbedResponse>) responseObserver);
          break;
        case METHODID_DESCRIBE:
          serviceImpl.describe((dev.toolgate.v1.DescribeRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.DescribeResponse>) responseObserver);
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
          getEmbedMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.EmbedRequest,
              dev.toolgate.v1.EmbedResponse>(
                service, METHODID_EMBED)))
        .addMethod(
          getDescribeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.DescribeRequest,
              dev.toolgate.v1.DescribeResponse>(
                service, METHODID_DESCRIBE)))
        .build();
  }

  private static abstract class EncoderServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    EncoderServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.toolgate.v1.Encoder.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("EncoderService");
    }
  }

  private static final class EncoderServiceFileDescriptorSupplier
      extends EncoderServiceBaseDescriptorSupplier {
    EncoderServiceFileDescriptorSupplier() {}
  }

  private static final class EncoderServiceMethodDescriptorSupplier
      extends EncoderServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    EncoderServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (EncoderServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new EncoderServiceFileDescriptorSupplier())
              .addMethod(getEmbedMethod())
              .addMethod(getDescribeMethod())
              .build();
        }
      }
    }
    return result;
  }
}
