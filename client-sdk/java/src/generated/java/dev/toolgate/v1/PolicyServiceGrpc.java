package dev.toolgate.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * The tenant's policy: which tools may be seen and called when, and how they are chosen. The document's
 * JSON schema is printed by `toolgate policy schema`.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class PolicyServiceGrpc {

  private PolicyServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "toolgate.v1.PolicyService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.SetPolicyRequest,
      dev.toolgate.v1.SetPolicyResponse> getSetPolicyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SetPolicy",
      requestType = dev.toolgate.v1.SetPolicyRequest.class,
      responseType = dev.toolgate.v1.SetPolicyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.SetPolicyRequest,
      dev.toolgate.v1.SetPolicyResponse> getSetPolicyMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.SetPolicyRequest, dev.toolgate.v1.SetPolicyResponse> getSetPolicyMethod;
    if ((getSetPolicyMethod = PolicyServiceGrpc.getSetPolicyMethod) == null) {
      synchronized (PolicyServiceGrpc.class) {
        if ((getSetPolicyMethod = PolicyServiceGrpc.getSetPolicyMethod) == null) {
          PolicyServiceGrpc.getSetPolicyMethod = getSetPolicyMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.SetPolicyRequest, dev.toolgate.v1.SetPolicyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SetPolicy"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.SetPolicyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.SetPolicyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new PolicyServiceMethodDescriptorSupplier("SetPolicy"))
              .build();
        }
      }
    }
    return getSetPolicyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.GetPolicyRequest,
      dev.toolgate.v1.GetPolicyResponse> getGetPolicyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetPolicy",
      requestType = dev.toolgate.v1.GetPolicyRequest.class,
      responseType = dev.toolgate.v1.GetPolicyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.GetPolicyRequest,
      dev.toolgate.v1.GetPolicyResponse> getGetPolicyMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.GetPolicyRequest, dev.toolgate.v1.GetPolicyResponse> getGetPolicyMethod;
    if ((getGetPolicyMethod = PolicyServiceGrpc.getGetPolicyMethod) == null) {
      synchronized (PolicyServiceGrpc.class) {
        if ((getGetPolicyMethod = PolicyServiceGrpc.getGetPolicyMethod) == null) {
          PolicyServiceGrpc.getGetPolicyMethod = getGetPolicyMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.GetPolicyRequest, dev.toolgate.v1.GetPolicyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetPolicy"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetPolicyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.GetPolicyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new PolicyServiceMethodDescriptorSupplier("GetPolicy"))
              .build();
        }
      }
    }
    return getGetPolicyMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.toolgate.v1.CheckPolicyRequest,
      dev.toolgate.v1.CheckPolicyResponse> getCheckPolicyMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CheckPolicy",
      requestType = dev.toolgate.v1.CheckPolicyRequest.class,
      responseType = dev.toolgate.v1.CheckPolicyResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.toolgate.v1.CheckPolicyRequest,
      dev.toolgate.v1.CheckPolicyResponse> getCheckPolicyMethod() {
    io.grpc.MethodDescriptor<dev.toolgate.v1.CheckPolicyRequest, dev.toolgate.v1.CheckPolicyResponse> getCheckPolicyMethod;
    if ((getCheckPolicyMethod = PolicyServiceGrpc.getCheckPolicyMethod) == null) {
      synchronized (PolicyServiceGrpc.class) {
        if ((getCheckPolicyMethod = PolicyServiceGrpc.getCheckPolicyMethod) == null) {
          PolicyServiceGrpc.getCheckPolicyMethod = getCheckPolicyMethod =
              io.grpc.MethodDescriptor.<dev.toolgate.v1.CheckPolicyRequest, dev.toolgate.v1.CheckPolicyResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CheckPolicy"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.CheckPolicyRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.toolgate.v1.CheckPolicyResponse.getDefaultInstance()))
              .setSchemaDescriptor(new PolicyServiceMethodDescriptorSupplier("CheckPolicy"))
              .build();
        }
      }
    }
    return getCheckPolicyMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static PolicyServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<PolicyServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<PolicyServiceStub>() {
        @java.lang.Override
        public PolicyServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new PolicyServiceStub(channel, callOptions);
        }
      };
    return PolicyServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static PolicyServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<PolicyServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<PolicyServiceBlockingV2Stub>() {
        @java.lang.Override
        public PolicyServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new PolicyServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return PolicyServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static PolicyServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<PolicyServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<PolicyServiceBlockingStub>() {
        @java.lang.Override
        public PolicyServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new PolicyServiceBlockingStub(channel, callOptions);
        }
      };
    return PolicyServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static PolicyServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<PolicyServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<PolicyServiceFutureStub>() {
        @java.lang.Override
        public PolicyServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new PolicyServiceFutureStub(channel, callOptions);
        }
      };
    return PolicyServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * The tenant's policy: which tools may be seen and called when, and how they are chosen. The document's
   * JSON schema is printed by `toolgate policy schema`.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Replaces the tenant's policy document. It is checked whole before anything is stored: a mistake is
     * INVALID_FIELD with its place, an etag that does not match is ETAG_MISMATCH.
     * </pre>
     */
    default void setPolicy(dev.toolgate.v1.SetPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.SetPolicyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSetPolicyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads the tenant's policy document; an empty one when none was ever set.
     * </pre>
     */
    default void getPolicy(dev.toolgate.v1.GetPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetPolicyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetPolicyMethod(), responseObserver);
    }

    /**
     * <pre>
     * Shows, for a state, what the policy decides of each tool.
     * </pre>
     */
    default void checkPolicy(dev.toolgate.v1.CheckPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.CheckPolicyResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCheckPolicyMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service PolicyService.
   * <pre>
   * The tenant's policy: which tools may be seen and called when, and how they are chosen. The document's
   * JSON schema is printed by `toolgate policy schema`.
   * </pre>
   */
  public static abstract class PolicyServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return PolicyServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service PolicyService.
   * <pre>
   * The tenant's policy: which tools may be seen and called when, and how they are chosen. The document's
   * JSON schema is printed by `toolgate policy schema`.
   * </pre>
   */
  public static final class PolicyServiceStub
      extends io.grpc.stub.AbstractAsyncStub<PolicyServiceStub> {
    private PolicyServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected PolicyServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new PolicyServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Replaces the tenant's policy document. It is checked whole before anything is stored: a mistake is
     * INVALID_FIELD with its place, an etag that does not match is ETAG_MISMATCH.
     * </pre>
     */
    public void setPolicy(dev.toolgate.v1.SetPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.SetPolicyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSetPolicyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads the tenant's policy document; an empty one when none was ever set.
     * </pre>
     */
    public void getPolicy(dev.toolgate.v1.GetPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.GetPolicyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetPolicyMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Shows, for a state, what the policy decides of each tool.
     * </pre>
     */
    public void checkPolicy(dev.toolgate.v1.CheckPolicyRequest request,
        io.grpc.stub.StreamObserver<dev.toolgate.v1.CheckPolicyResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCheckPolicyMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service PolicyService.
   * <pre>
   * The tenant's policy: which tools may be seen and called when, and how they are chosen. The document's
   * JSON schema is printed by `toolgate policy schema`.
   * </pre>
   */
  public static final class PolicyServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<PolicyServiceBlockingV2Stub> {
    private PolicyServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected PolicyServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new PolicyServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Replaces the tenant's policy document. It is checked whole before anything is stored: a mistake is
     * INVALID_FIELD with its place, an etag that does not match is ETAG_MISMATCH.
     * </pre>
     */
    public dev.toolgate.v1.SetPolicyResponse setPolicy(dev.toolgate.v1.SetPolicyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSetPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the tenant's policy document; an empty one when none was ever set.
     * </pre>
     */
    public dev.toolgate.v1.GetPolicyResponse getPolicy(dev.toolgate.v1.GetPolicyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Shows, for a state, what the policy decides of each tool.
     * </pre>
     */
    public dev.toolgate.v1.CheckPolicyResponse checkPolicy(dev.toolgate.v1.CheckPolicyRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCheckPolicyMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service PolicyService.
   * <pre>
   * The tenant's policy: which tools may be seen and called when, and how they are chosen. The document's
   * JSON schema is printed by `toolgate policy schema`.
   * </pre>
   */
  public static final class PolicyServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<PolicyServiceBlockingStub> {
    private PolicyServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected PolicyServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new PolicyServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Replaces the tenant's policy document. It is checked whole before anything is stored: a mistake is
     * INVALID_FIELD with its place, an etag that does not match is ETAG_MISMATCH.
     * </pre>
     */
    public dev.toolgate.v1.SetPolicyResponse setPolicy(dev.toolgate.v1.SetPolicyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSetPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the tenant's policy document; an empty one when none was ever set.
     * </pre>
     */
    public dev.toolgate.v1.GetPolicyResponse getPolicy(dev.toolgate.v1.GetPolicyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetPolicyMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Shows, for a state, what the policy decides of each tool.
     * </pre>
     */
    public dev.toolgate.v1.CheckPolicyResponse checkPolicy(dev.toolgate.v1.CheckPolicyRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCheckPolicyMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service PolicyService.
   * <pre>
   * The tenant's policy: which tools may be seen and called when, and how they are chosen. The document's
   * JSON schema is printed by `toolgate policy schema`.
   * </pre>
   */
  public static final class PolicyServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<PolicyServiceFutureStub> {
    private PolicyServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected PolicyServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new PolicyServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Replaces the tenant's policy document. It is checked whole before anything is stored: a mistake is
     * INVALID_FIELD with its place, an etag that does not match is ETAG_MISMATCH.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.SetPolicyResponse> setPolicy(
        dev.toolgate.v1.SetPolicyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSetPolicyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads the tenant's policy document; an empty one when none was ever set.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.GetPolicyResponse> getPolicy(
        dev.toolgate.v1.GetPolicyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetPolicyMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Shows, for a state, what the policy decides of each tool.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.toolgate.v1.CheckPolicyResponse> checkPolicy(
        dev.toolgate.v1.CheckPolicyRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCheckPolicyMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_SET_POLICY = 0;
  private static final int METHODID_GET_POLICY = 1;
  private static final int METHODID_CHECK_POLICY = 2;

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
        case METHODID_SET_POLICY:
          serviceImpl.setPolicy((dev.toolgate.v1.SetPolicyRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.SetPolicyResponse>) responseObserver);
          break;
        case METHODID_GET_POLICY:
          serviceImpl.getPolicy((dev.toolgate.v1.GetPolicyRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.GetPolicyResponse>) responseObserver);
          break;
        case METHODID_CHECK_POLICY:
          serviceImpl.checkPolicy((dev.toolgate.v1.CheckPolicyRequest) request,
              (io.grpc.stub.StreamObserver<dev.toolgate.v1.CheckPolicyResponse>) responseObserver);
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
          getSetPolicyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.SetPolicyRequest,
              dev.toolgate.v1.SetPolicyResponse>(
                service, METHODID_SET_POLICY)))
        .addMethod(
          getGetPolicyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.GetPolicyRequest,
              dev.toolgate.v1.GetPolicyResponse>(
                service, METHODID_GET_POLICY)))
        .addMethod(
          getCheckPolicyMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.toolgate.v1.CheckPolicyRequest,
              dev.toolgate.v1.CheckPolicyResponse>(
                service, METHODID_CHECK_POLICY)))
        .build();
  }

  private static abstract class PolicyServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    PolicyServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.toolgate.v1.PolicyOuterClass.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("PolicyService");
    }
  }

  private static final class PolicyServiceFileDescriptorSupplier
      extends PolicyServiceBaseDescriptorSupplier {
    PolicyServiceFileDescriptorSupplier() {}
  }

  private static final class PolicyServiceMethodDescriptorSupplier
      extends PolicyServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    PolicyServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (PolicyServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new PolicyServiceFileDescriptorSupplier())
              .addMethod(getSetPolicyMethod())
              .addMethod(getGetPolicyMethod())
              .addMethod(getCheckPolicyMethod())
              .build();
        }
      }
    }
    return result;
  }
}
