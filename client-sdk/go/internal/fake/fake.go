// Package fake is a service in the test's own process that answers what a test tells it to, over real gRPC.
package fake

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"toolgate.dev/go/toolgatev1"
)

// Handler answers one call. The header is what the client sent.
type Handler func(ctx context.Context, call Call) (proto.Message, error)

// Call is one call that came.
type Call struct {
	// Request is the message.
	Request proto.Message
	// Header is what came with it.
	Header metadata.MD
	// Number is which call of its method it is, from 1.
	Number int
	// Left is the time that the caller gave.
	Left time.Duration
	// At is when it came.
	At time.Time
}

// Service answers each method with the handler that a test set, and keeps the calls that came.
type Service struct {
	toolgatev1.UnimplementedCatalogServiceServer
	// Target is its address.
	Target string
	// Health says whether it takes calls; at first it does.
	Health *health.Server
	// Watch answers WatchCatalog; nil: UNIMPLEMENTED.
	Watch func(*toolgatev1.WatchCatalogRequest, grpc.ServerStreamingServer[toolgatev1.WatchCatalogResponse]) error

	mutex    sync.Mutex
	handlers map[string]Handler
	calls    map[string][]Call
}

// Start serves until the test ends.
func Start(t *testing.T, options ...grpc.ServerOption) *Service {
	t.Helper()
	return StartOn(t, Listen(t), options...)
}

// Listen listens on a free port.
func Listen(t *testing.T) *net.TCPListener {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// StartOn serves those who come to a listener until the test ends.
func StartOn(t *testing.T, listener net.Listener, options ...grpc.ServerOption) *Service {
	t.Helper()
	service := &Service{Health: health.NewServer(), handlers: make(map[string]Handler), calls: make(map[string][]Call)}
	service.Target = listener.Addr().String()
	server := grpc.NewServer(append(options, grpc.UnaryInterceptor(service.serve))...)
	service.Health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, service.Health)
	toolgatev1.RegisterRouterServiceServer(server, toolgatev1.UnimplementedRouterServiceServer{})
	toolgatev1.RegisterCatalogServiceServer(server, service)
	toolgatev1.RegisterPolicyServiceServer(server, toolgatev1.UnimplementedPolicyServiceServer{})
	toolgatev1.RegisterUsageServiceServer(server, toolgatev1.UnimplementedUsageServiceServer{})
	toolgatev1.RegisterMemoryServiceServer(server, toolgatev1.UnimplementedMemoryServiceServer{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("the fake service: %v", err)
		}
	})
	return service
}

// Handle sets the handler of a method, by its full name.
func (s *Service) Handle(method string, handler Handler) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.handlers[method] = handler
}

// Answer sets a method's answer.
func (s *Service) Answer(method string, answer proto.Message) {
	s.Handle(method, func(context.Context, Call) (proto.Message, error) { return answer, nil })
}

// Calls are the calls of a method that came.
func (s *Service) Calls(method string) []Call {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.calls[method]
}

// WatchCatalog streams what the test says.
func (s *Service) WatchCatalog(request *toolgatev1.WatchCatalogRequest, stream grpc.ServerStreamingServer[toolgatev1.WatchCatalogResponse]) error {
	if s.Watch == nil {
		return status.Error(codes.Unimplemented, "no watch")
	}
	return s.Watch(request, stream)
}

func (s *Service) serve(ctx context.Context, request any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	call := Call{Request: request.(proto.Message), At: time.Now()}
	call.Header, _ = metadata.FromIncomingContext(ctx)
	if end, ok := ctx.Deadline(); ok {
		call.Left = time.Until(end)
	}
	s.mutex.Lock()
	call.Number = len(s.calls[info.FullMethod]) + 1
	s.calls[info.FullMethod] = append(s.calls[info.FullMethod], call)
	handler := s.handlers[info.FullMethod]
	s.mutex.Unlock()
	if handler == nil {
		return nil, status.Errorf(codes.Unimplemented, "no handler for %s", info.FullMethod)
	}
	return handler(ctx, call)
}

// Fail is an error as the real service answers with: its details in the trailer.
func Fail(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	detailed, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return detailed.Err()
}
