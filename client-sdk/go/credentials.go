package toolgate

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// bearer sends what a source gives with each attempt of a call.
type bearer struct {
	source func(context.Context) (string, error)
	// secure is whether gRPC refuses to send it without encryption.
	secure bool
}

// GetRequestMetadata gives the header of one attempt. gRPC's health checks have it too, since what stands before
// the service may ask for it; they go on without one, so that the call itself tells what is wrong.
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	header, err := b.header(ctx)
	about, _ := credentials.RequestInfoFromContext(ctx)
	if about.Method == healthpb.Health_Watch_FullMethodName {
		return header, nil
	}
	return header, err
}

func (b bearer) header(ctx context.Context) (map[string]string, error) {
	token, err := b.source(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "the token source failed: %v", err)
	}
	if err := checkToken(token); err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "the token %v", err)
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity tells gRPC to refuse an unencrypted connection.
func (b bearer) RequireTransportSecurity() bool {
	return b.secure
}

// checkToken says what is wrong with a credential, without repeating it.
func checkToken(token string) error {
	if token == "" {
		return errors.New("is empty")
	}
	for _, char := range []byte(token) {
		if char <= ' ' || char > '~' {
			return errors.New("holds white space or characters that a header can't carry")
		}
	}
	return nil
}

// checkCredentials refuses credentials that others could read on their way.
func checkCredentials(s *settings, to target) error {
	if s.credential == nil || to.secure || s.allowInsecure || to.isLoopback() {
		return nil
	}
	return fmt.Errorf("toolgate: credentials for %s would be sent unencrypted: use https://%[1]s, or allow it with WithAllowInsecureCredentials", to.address)
}
