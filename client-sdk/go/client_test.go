package toolgate_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"toolgate.dev/go"
	"toolgate.dev/go/internal/fake"
	"toolgate.dev/go/toolgatev1"
)

const (
	route    = toolgatev1.RouterService_Route_FullMethodName
	register = toolgatev1.CatalogService_RegisterServer_FullMethodName
	approve  = toolgatev1.CatalogService_ApproveTools_FullMethodName
)

func dial(t *testing.T, target string, options ...toolgate.Option) *toolgate.Client {
	t.Helper()
	client, err := toolgate.New(target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// failure is the error of a call that must fail.
func failure(t *testing.T, err error) *toolgate.Error {
	t.Helper()
	var failed *toolgate.Error
	if !errors.As(err, &failed) {
		t.Fatalf("no toolgate.Error: %v", err)
	}
	return failed
}

// sendsAway closes every connection that comes, as a proxy does whose service is gone, until the
// function that it returns is called. The port stays the test's own all the time.
func sendsAway(t *testing.T, listener *net.TCPListener) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	return func() {
		if err := listener.SetDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		<-ended
		if err := listener.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}

func unavailable(context.Context, fake.Call) (proto.Message, error) {
	return nil, status.Error(codes.Unavailable, "not now")
}

func TestTheCallAfterAServiceIsBackFindsIt(t *testing.T) {
	listener := fake.Listen(t)
	stop := sendsAway(t, listener)
	client := dial(t, listener.Addr().String())
	request := &toolgatev1.RouteRequest{Intents: []*toolgatev1.Intent{{Text: "x"}}}
	if _, err := client.Route(t.Context(), request); failure(t, err).Code != codes.Unavailable {
		t.Fatal(err)
	}
	// By then gRPC's own tries are a second apart.
	time.Sleep(2 * time.Second)
	stop()
	fake.StartOn(t, listener).Answer(route, &toolgatev1.RouteResponse{})
	if _, err := client.Route(t.Context(), request); err != nil {
		t.Error(err)
	}
}

func TestARequestGetsTheTenantAndIsLeftAlone(t *testing.T) {
	service := fake.Start(t)
	service.Answer(route, &toolgatev1.RouteResponse{CatalogRevision: 7})
	client := dial(t, "http://"+service.Target+"/", toolgate.WithTenant("demo"))
	given := &toolgatev1.RouteRequest{Intents: []*toolgatev1.Intent{{Text: "x"}}, TurnId: "t"}
	before := proto.CloneOf(given)
	answer, err := client.Route(t.Context(), given)
	if err != nil || answer.GetCatalogRevision() != 7 {
		t.Fatal(answer, err)
	}
	if !proto.Equal(given, before) {
		t.Errorf("the request was changed: %v", given)
	}
	if _, err := client.Route(t.Context(), &toolgatev1.RouteRequest{Tenant: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Route(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	calls := service.Calls(route)
	before.Tenant = "demo"
	if !proto.Equal(calls[0].Request, before) {
		t.Errorf("%v came", calls[0].Request)
	}
	for i, want := range []string{"demo", "other", "demo"} {
		if got := calls[i].Request.(*toolgatev1.RouteRequest).GetTenant(); got != want {
			t.Errorf("tenant %q, not %q", got, want)
		}
	}
}

func TestEveryCallHasADeadline(t *testing.T) {
	service := fake.Start(t)
	service.Answer(route, &toolgatev1.RouteResponse{})
	client := dial(t, service.Target, toolgate.WithTimeout(40*time.Second))
	longer, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, ctx := range []context.Context{t.Context(), longer} {
		if _, err := client.Route(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	calls := service.Calls(route)
	if left := calls[0].Left; left <= 20*time.Second || left > 40*time.Second {
		t.Errorf("the default was %v", left)
	}
	if left := calls[1].Left; left <= 40*time.Second {
		t.Errorf("the context's deadline was %v", left)
	}
}

func TestADeadlineThatPassesIsOneOfTheContext(t *testing.T) {
	service := fake.Start(t)
	service.Handle(route, func(ctx context.Context, _ fake.Call) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	client := dial(t, service.Target, toolgate.WithTimeout(50*time.Millisecond))
	_, err := client.Route(t.Context(), nil)
	if !errors.Is(err, context.DeadlineExceeded) || failure(t, err).Code != codes.DeadlineExceeded {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Route(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestEveryDetailIsParsed(t *testing.T) {
	service := fake.Start(t)
	service.Handle(route, func(context.Context, fake.Call) (proto.Message, error) {
		return nil, fake.Fail(codes.InvalidArgument, "an intent is empty",
			&errdetails.ErrorInfo{Reason: "INVALID_FIELD", Domain: "toolgate", Metadata: map[string]string{"limit": "intents"}},
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
				{Field: "intents[0].text", Description: "must not be empty"},
			}},
			&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)})
	})
	_, err := dial(t, service.Target).Route(t.Context(), nil)
	failed := failure(t, err)
	want := "InvalidArgument INVALID_FIELD an intent is empty map[limit:intents] [{intents[0].text must not be empty}] 1.5s"
	got := fmt.Sprint(failed.Code, " ", failed.Reason, " ", failed.Message, " ", failed.Metadata, " ", failed.FieldViolations, " ", failed.RetryAfter)
	if got != want {
		t.Errorf("%s\nis not\n%s", got, want)
	}
	if text := err.Error(); text != "toolgate: INVALID_FIELD: an intent is empty; intents[0].text: must not be empty" {
		t.Error(text)
	}
	if status.Code(errors.Unwrap(err)) != codes.InvalidArgument {
		t.Error("it does not unwrap to gRPC's error")
	}
}

func TestAReasonOfAnotherVersionIsKeptAndOneOfAnotherDomainIsNot(t *testing.T) {
	service := fake.Start(t)
	for domain, want := range map[string]toolgate.Reason{"toolgate": "BRAND_NEW", "example.com": ""} {
		service.Handle(route, func(context.Context, fake.Call) (proto.Message, error) {
			return nil, fake.Fail(codes.Aborted, "no", &errdetails.ErrorInfo{Reason: "BRAND_NEW", Domain: domain})
		})
		_, err := dial(t, service.Target).Route(t.Context(), nil)
		if got := failure(t, err).Reason; got != want {
			t.Errorf("of %s: %q", domain, got)
		}
	}
}

func TestGarbledDetailsDoNotHideTheStatus(t *testing.T) {
	service := fake.Start(t)
	for _, garbled := range []string{"\xff\xff", "no protobuf at all", "", "\x08\x03"} {
		service.Handle(route, func(ctx context.Context, _ fake.Call) (proto.Message, error) {
			if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-status-details-bin", garbled)); err != nil {
				t.Error(err)
			}
			return nil, status.Error(codes.FailedPrecondition, `"broken", he said`)
		})
		_, err := dial(t, service.Target).Route(t.Context(), nil)
		if failed := failure(t, err); failed.Code != codes.FailedPrecondition || failed.Message != `"broken", he said` || failed.Reason != "" {
			t.Errorf("%q: %v", garbled, failed)
		}
	}
}

func TestReasonsAreThoseOfTheContract(t *testing.T) {
	known := []toolgate.Reason{
		toolgate.ReasonInvalidField, toolgate.ReasonLimitExceeded, toolgate.ReasonMalformedCatalog,
		toolgate.ReasonTenantNotFound, toolgate.ReasonServerNotFound, toolgate.ReasonEtagMismatch,
		toolgate.ReasonRequestIDReused, toolgate.ReasonToolsRejected, toolgate.ReasonHandleInvalid,
		toolgate.ReasonPageTokenInvalid, toolgate.ReasonOverloaded, toolgate.ReasonDeadlineExceeded,
		toolgate.ReasonEncoderUnavailable, toolgate.ReasonStoreUnavailable, toolgate.ReasonDraining,
		toolgate.ReasonNotImplemented, toolgate.ReasonRevisionNotReached, toolgate.ReasonUnauthenticated,
		toolgate.ReasonPermissionDenied, toolgate.ReasonInternal, toolgate.ReasonFingerprintMismatch,
		toolgate.ReasonTenantLimited,
	}
	if len(known) != len(toolgatev1.ErrorReason_name)-1 {
		t.Errorf("%d reasons of %d", len(known), len(toolgatev1.ErrorReason_name)-1)
	}
	for _, reason := range known {
		if _, ok := toolgatev1.ErrorReason_value["ERROR_REASON_"+string(reason)]; !ok {
			t.Errorf("%s is not in the contract", reason)
		}
	}
}

func TestNobodyListeningIsSaidSoon(t *testing.T) {
	target := "127.0.0.1:1"
	started := time.Now()
	_, err := dial(t, target, toolgate.WithTimeout(time.Minute)).Route(t.Context(), nil)
	failed := failure(t, err)
	if failed.Code != codes.Unavailable || !strings.HasSuffix(failed.Message, "; is `toolgate serve` running at "+target+"?") {
		t.Error(failed)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestOnlyUnavailableIsRetried(t *testing.T) {
	service := fake.Start(t)
	for code, attempts := range map[codes.Code]int{
		codes.Unavailable: 3, codes.ResourceExhausted: 1, codes.Aborted: 1, codes.Internal: 1,
	} {
		before := len(service.Calls(route))
		service.Handle(route, func(context.Context, fake.Call) (proto.Message, error) { return nil, status.Error(code, "no") })
		_, err := dial(t, service.Target).Route(t.Context(), nil)
		if failure(t, err).Code != code {
			t.Error(err)
		}
		if got := len(service.Calls(route)) - before; got != attempts {
			t.Errorf("%v: %d attempts", code, got)
		}
	}
}

func TestARetryWaitsAsLongAsTheServiceAsks(t *testing.T) {
	service := fake.Start(t)
	service.Handle(route, func(_ context.Context, call fake.Call) (proto.Message, error) {
		if call.Number == 1 {
			return nil, fake.Fail(codes.Unavailable, "draining",
				&errdetails.RetryInfo{RetryDelay: durationpb.New(400 * time.Millisecond)})
		}
		return &toolgatev1.RouteResponse{CatalogRevision: 7}, nil
	})
	answer, err := dial(t, service.Target).Route(t.Context(), nil)
	if err != nil || answer.GetCatalogRevision() != 7 {
		t.Fatal(answer, err)
	}
	calls := service.Calls(route)
	if pause := calls[1].At.Sub(calls[0].At); pause < 400*time.Millisecond {
		t.Errorf("it waited %v", pause)
	}
}

func TestARetryThatCanNotBeInTimeIsNotMade(t *testing.T) {
	service := fake.Start(t)
	service.Handle(route, func(context.Context, fake.Call) (proto.Message, error) {
		return nil, fake.Fail(codes.Unavailable, "later", &errdetails.ErrorInfo{Reason: "DRAINING", Domain: "toolgate"},
			&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Minute)})
	})
	started := time.Now()
	_, err := dial(t, service.Target, toolgate.WithTimeout(time.Minute)).Route(t.Context(), nil)
	if failed := failure(t, err); failed.Reason != toolgate.ReasonDraining || failed.Error() != "toolgate: DRAINING: later" {
		t.Error(failed)
	}
	if took := time.Since(started); took > 30*time.Second || len(service.Calls(route)) != 1 {
		t.Errorf("%v and %d attempts", took, len(service.Calls(route)))
	}
}

func TestACallerThatLeavesDuringAPauseIsToldSo(t *testing.T) {
	service := fake.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	service.Handle(route, func(context.Context, fake.Call) (proto.Message, error) {
		time.AfterFunc(50*time.Millisecond, cancel)
		return nil, fake.Fail(codes.Unavailable, "later", &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
	})
	if _, err := dial(t, service.Target).Route(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAServiceInTroubleIsNotRetriedOnAndOn(t *testing.T) {
	service := fake.Start(t)
	service.Handle(route, unavailable)
	client := dial(t, service.Target)
	for range 4 {
		if _, err := client.Route(t.Context(), nil); err == nil {
			t.Fatal("it must fail")
		}
	}
	// Ten tokens: the first two calls take three attempts each, less one when half of the tokens are gone.
	if got := len(service.Calls(route)); got != 3+2+1+1 {
		t.Errorf("%d attempts", got)
	}
}

func TestAServiceThatDrainsGetsNoCalls(t *testing.T) {
	service := fake.Start(t)
	service.Answer(route, &toolgatev1.RouteResponse{})
	client := dial(t, service.Target)
	if _, err := client.Route(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	service.Health.Shutdown()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, err := client.Route(t.Context(), nil); err != nil {
			if failed := failure(t, err); failed.Code != codes.Unavailable {
				t.Error(failed)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("calls went on")
}

func TestARegistrationHasARequestIDThatItsRetriesKeep(t *testing.T) {
	service := fake.Start(t)
	service.Handle(register, func(ctx context.Context, call fake.Call) (proto.Message, error) {
		if call.Number == 1 {
			return unavailable(ctx, call)
		}
		return &toolgatev1.RegisterServerResponse{}, nil
	})
	client := dial(t, service.Target)
	given := &toolgatev1.RegisterServerRequest{Server: "notes"}
	for _, request := range []*toolgatev1.RegisterServerRequest{given, given, {RequestId: "mine"}} {
		if _, err := client.RegisterServer(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, call := range service.Calls(register) {
		ids = append(ids, call.Request.(*toolgatev1.RegisterServerRequest).GetRequestId())
	}
	if len(ids[0]) < 20 || ids[1] != ids[0] || ids[2] == ids[0] || ids[3] != "mine" || given.RequestId != "" {
		t.Error(ids)
	}
}

func TestAnApprovalCarriesWhatWasReviewedAndTellsWhatWasNotAccepted(t *testing.T) {
	service := fake.Start(t)
	answer := &toolgatev1.ApproveToolsResponse{CatalogRevision: 7, Refusals: []*toolgatev1.ApprovalRefusal{
		{Name: "moon", Code: toolgatev1.RefusalCode_REFUSAL_CODE_SCHEMA_CHANGED},
	}}
	service.Handle(approve, func(ctx context.Context, call fake.Call) (proto.Message, error) {
		if call.Number == 1 {
			return unavailable(ctx, call)
		}
		return answer, nil
	})
	request := &toolgatev1.ApproveToolsRequest{Server: "sea", Approvals: []*toolgatev1.ToolApproval{
		{Name: "tides", Hash: "0f"}, {Name: "moon", Hash: "f0"},
	}}
	got, err := dial(t, service.Target, toolgate.WithTenant("demo")).ApproveTools(t.Context(), request)
	if err != nil || !proto.Equal(got, answer) {
		t.Fatal(got, err)
	}
	request.Tenant = "demo"
	calls := service.Calls(approve)
	if len(calls) != 2 || !proto.Equal(calls[1].Request, request) {
		t.Error(calls)
	}
}

func TestALargeAnswerIsTaken(t *testing.T) {
	service := fake.Start(t)
	service.Answer(route, &toolgatev1.RouteResponse{ActiveSetHandle: strings.Repeat("x", 20<<20)})
	if _, err := dial(t, service.Target).Route(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestAClosedClientSaysSo(t *testing.T) {
	client := dial(t, "127.0.0.1:1")
	for range 2 {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.Route(t.Context(), nil); !errors.Is(err, toolgate.ErrClosed) {
		t.Error(err)
	}
	for _, err := range client.WatchCatalog(t.Context(), nil) {
		if !errors.Is(err, toolgate.ErrClosed) {
			t.Error(err)
		}
	}
	for _, err := range client.AllTools(t.Context(), nil) {
		if !errors.Is(err, toolgate.ErrClosed) {
			t.Error(err)
		}
	}
}
