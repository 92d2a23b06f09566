package toolgate

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"toolgate.dev/go/toolgatev1"
)

const maxWatchBackoff = 5 * time.Second

// WatchCatalog yields changes of the catalog as they are committed, until the caller breaks off or the context
// ends; a deadline of the context is one for the whole watch. Opening it, over as many attempts as it takes, has the
// client's timeout.
//
// When an open stream breaks, it is opened again, as often as it takes, from the last revision that was seen; a
// watch that began without a since_revision goes on from its first answer's. Any other error is yielded last. An
// answer with `reset` asks to read the catalog anew.
func (c *Client) WatchCatalog(ctx context.Context, request *toolgatev1.WatchCatalogRequest, options ...grpc.CallOption) iter.Seq2[*toolgatev1.WatchCatalogResponse, error] {
	return func(yield func(*toolgatev1.WatchCatalogResponse, error) bool) {
		if c.closed.Load() {
			yield(nil, ErrClosed)
			return
		}
		asked := copied(filled(request, "tenant", c.tenant))
		watch := &watcher{client: c, request: asked, options: options, yield: yield, openBy: time.Now().Add(c.timeout)}
		if err := watch.run(ctx); err != nil {
			yield(nil, err)
		}
	}
}

// watcher follows the catalog over as many streams as it takes.
type watcher struct {
	client  *Client
	request *toolgatev1.WatchCatalogRequest
	options []grpc.CallOption
	yield   func(*toolgatev1.WatchCatalogResponse, error) bool
	// opened is whether any stream ever was; if not, openBy is the deadline for that.
	opened bool
	openBy time.Time
	// breaks counts the streams that broke since the last answer.
	breaks int
	// refusal is how the last stream ended, if one did.
	refusal error
}

// errStopped is the end of a watch whose caller broke off.
var errStopped = errors.New("the caller stopped")

// run watches until the caller stops, which is no error, or until what can't be mended.
func (w *watcher) run(ctx context.Context) error {
	for {
		err := w.follow(ctx)
		if err == errStopped {
			return nil
		}
		failure := w.client.errorOf(err)
		w.refusal = err
		w.breaks++
		if failure.Code != codes.Unavailable || w.client.closed.Load() {
			return failure
		}
		if !w.pause(ctx, failure) {
			return w.client.interrupted(ctx, failure)
		}
	}
}

// pause waits before the next stream, and reports whether there may be one.
func (w *watcher) pause(ctx context.Context, failure *Error) bool {
	if !w.opened {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, w.openBy)
		defer cancel()
	}
	w.client.reconnect()
	return sleep(ctx, backoff(w.breaks, maxWatchBackoff, failure.RetryAfter))
}

// follow yields the answers of one stream.
func (w *watcher) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.open(ctx, cancel)
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if err == io.EOF {
			return status.Error(codes.Unavailable, "the stream ended")
		}
		if err != nil {
			return err
		}
		w.breaks = 0
		revision := answer.GetCatalogRevision()
		w.request.SinceRevision = &revision
		if !w.yield(answer, nil) {
			return errStopped
		}
	}
}

// open starts a stream and waits until the service took it, within the client's timeout.
func (w *watcher) open(ctx context.Context, cancel func()) (grpc.ServerStreamingClient[toolgatev1.WatchCatalogResponse], error) {
	left := w.client.timeout
	if !w.opened {
		left = time.Until(w.openBy)
	}
	late := time.AfterFunc(left, cancel)
	stream, err := w.client.catalog.WatchCatalog(ctx, w.request, w.options...)
	if err == nil {
		// A stream that is refused has no header, and its error is the first answer.
		header, failed := stream.Header()
		w.opened = w.opened || header != nil
		err = failed
	}
	if late.Stop() {
		return stream, err
	}
	// A service that hangs is one that is lost: an open watch tries again.
	if w.opened {
		return nil, status.Errorf(codes.Unavailable, "the watch did not open within %v", w.client.timeout)
	}
	// The time that an earlier refusal left says nothing about the service, and the refusal does.
	if w.refusal != nil {
		return nil, w.refusal
	}
	return nil, status.Errorf(codes.DeadlineExceeded, "the watch did not open within %v", w.client.timeout)
}
