package toolgate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"toolgate.dev/go"
	"toolgate.dev/go/internal/fake"
	"toolgate.dev/go/toolgatev1"
)

type watchStream = grpc.ServerStreamingServer[toolgatev1.WatchCatalogResponse]

// script answers each stream of a watch with the next of its steps, and keeps what was asked for.
type script struct {
	mutex sync.Mutex
	asked []string
	steps []func(watchStream) error
}

func (s *script) serve(request *toolgatev1.WatchCatalogRequest, stream watchStream) error {
	s.mutex.Lock()
	since := "nothing"
	if request.SinceRevision != nil {
		since = fmt.Sprint(*request.SinceRevision)
	}
	s.asked = append(s.asked, request.GetTenant()+" since "+since)
	step := s.steps[min(len(s.asked), len(s.steps))-1]
	s.mutex.Unlock()
	return step(stream)
}

// tells sends revisions and ends with an error.
func tells(end error, revisions ...uint64) func(watchStream) error {
	return func(stream watchStream) error {
		if err := stream.SendHeader(nil); err != nil {
			return err
		}
		for _, revision := range revisions {
			if err := stream.Send(&toolgatev1.WatchCatalogResponse{CatalogRevision: revision}); err != nil {
				return err
			}
		}
		return end
	}
}

// dialled returns a client whose connection is open, so that a short timeout is one of the watch alone.
func dialled(t *testing.T, target string, options ...toolgate.Option) *toolgate.Client {
	t.Helper()
	client := dial(t, target, options...)
	if _, err := client.Route(t.Context(), &toolgatev1.RouteRequest{}); status.Code(err) == codes.Unavailable {
		t.Fatal(err)
	}
	return client
}

// waits neither opens the stream nor ends it.
func waits(stream watchStream) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

func refuses(end error) func(watchStream) error {
	return func(watchStream) error { return end }
}

func TestAWatchGoesOnFromWhereItsStreamBroke(t *testing.T) {
	draining := status.Error(codes.Unavailable, "draining")
	told := &script{steps: []func(watchStream) error{
		tells(draining, 4, 5), refuses(draining), refuses(draining), refuses(draining), tells(nil), tells(draining, 6, 7), tells(nil, 8),
	}}
	service := fake.Start(t)
	service.Watch = told.serve
	client := dial(t, service.Target, toolgate.WithTenant("demo"))
	given := &toolgatev1.WatchCatalogRequest{}
	var seen []uint64
	for answer, err := range client.WatchCatalog(t.Context(), given) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, answer.GetCatalogRevision()); len(seen) == 5 {
			break
		}
	}
	if !reflect.DeepEqual(seen, []uint64{4, 5, 6, 7, 8}) {
		t.Error(seen)
	}
	want := []string{"demo since nothing"}
	for range 5 {
		want = append(want, "demo since 5")
	}
	if want = append(want, "demo since 7"); !reflect.DeepEqual(told.asked, want) {
		t.Errorf("%q", told.asked)
	}
	if !proto.Equal(given, &toolgatev1.WatchCatalogRequest{}) {
		t.Errorf("the request was changed: %v", given)
	}
}

func TestAWatchThatIsRefusedForGoodFailsAtOnce(t *testing.T) {
	told := &script{steps: []func(watchStream) error{refuses(status.Error(codes.PermissionDenied, "no"))}}
	service := fake.Start(t)
	service.Watch = told.serve
	client := dial(t, service.Target)
	since := &toolgatev1.WatchCatalogRequest{SinceRevision: proto.Uint64(0)}
	for answer, err := range client.WatchCatalog(t.Context(), since) {
		if failure(t, err).Code != codes.PermissionDenied || answer != nil {
			t.Error(answer, err)
		}
	}
	if !reflect.DeepEqual(told.asked, []string{" since 0"}) {
		t.Errorf("%q", told.asked)
	}
}

func TestAWatchThatDoesNotOpenInTimeFailsWithItsLastRefusal(t *testing.T) {
	refusals := refuses(status.Error(codes.Unavailable, "no"))
	for name, last := range map[string]func(watchStream) error{"refuses again": refusals, "hangs": waits} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := &script{steps: []func(watchStream) error{refusals, last}}
			service := fake.Start(t)
			service.Watch = told.serve
			client := dialled(t, service.Target, toolgate.WithTimeout(2*time.Second))
			for answer, err := range client.WatchCatalog(t.Context(), nil) {
				if failed := failure(t, err); failed.Code != codes.Unavailable || !strings.HasPrefix(failed.Message, "no;") || answer != nil {
					t.Error(answer, err)
				}
			}
		})
	}
}

func TestAnotherErrorEndsAnOpenWatch(t *testing.T) {
	told := &script{steps: []func(watchStream) error{tells(status.Error(codes.Internal, "broken"), 1)}}
	service := fake.Start(t)
	service.Watch = told.serve
	var failed *toolgate.Error
	for _, err := range dial(t, service.Target).WatchCatalog(t.Context(), nil) {
		if err != nil {
			failed = failure(t, err)
		}
	}
	if failed == nil || failed.Code != codes.Internal || len(told.asked) != 1 {
		t.Error(failed, told.asked)
	}
}

func TestAWatchMustOpenInTimeAndMayThenBeSilent(t *testing.T) {
	silent := func(stream watchStream) error {
		if err := stream.SendHeader(nil); err != nil {
			return err
		}
		return waits(stream)
	}
	service := fake.Start(t)
	service.Watch = (&script{steps: []func(watchStream) error{waits, silent}}).serve
	hurried := dial(t, service.Target, toolgate.WithTimeout(50*time.Millisecond))
	for _, err := range hurried.WatchCatalog(t.Context(), nil) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	client := dialled(t, service.Target, toolgate.WithTimeout(2*time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	for _, err := range client.WatchCatalog(ctx, nil) {
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("ended before its caller's deadline: %v", err)
		}
	}
}
