package toolgate

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	maxAttempts  = 3
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = time.Second
)

// A service that comes back is found within a second or so; gRPC's own backoff grows to two minutes.
var reconnecting = grpc.ConnectParams{
	Backoff:           grpcbackoff.Config{BaseDelay: firstBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
	MinConnectTimeout: 20 * time.Second,
}

// As gRPC's own throttling of retries has it: each failure takes a token and each success gives a tenth of one
// back. With half of them gone, nothing is retried.
const (
	maxTokens  = 10.0
	tokenRatio = 0.1
)

// throttle keeps a client from multiplying the calls of a service that is in trouble.
type throttle struct {
	mutex  sync.Mutex
	tokens float64
}

func (t *throttle) succeeded() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.tokens = min(t.tokens+tokenRatio, maxTokens)
}

// failed notes a failure and reports whether it may be followed by a retry.
func (t *throttle) failed() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.tokens = max(t.tokens-1, 0)
	return t.tokens > maxTokens/2
}

// backoff is the pause before the next attempt after so many: doubled each time, with a random half of it left
// away, and never less than the service asked for.
func backoff(attempts int, longest, asked time.Duration) time.Duration {
	pause := longest
	// The tenth is more than any longest; later ones would overflow.
	if attempts <= 10 {
		pause = min(firstBackoff<<(attempts-1), longest)
	}
	jittered := time.Duration(float64(pause) * (0.5 + 0.5*rand.Float64()))
	return max(jittered, asked)
}

// retried makes attempts until one succeeds, fails for good, or no time is left for another.
func (c *Client) retried(ctx context.Context, attempt func() error) error {
	for attempts := 1; ; attempts++ {
		err := attempt()
		if err == nil {
			c.throttle.succeeded()
			return nil
		}
		failure := c.errorOf(err)
		if failure.Code != codes.Unavailable {
			return failure
		}
		c.reconnect()
		if !c.throttle.failed() || attempts == maxAttempts {
			return failure
		}
		if !sleep(ctx, backoff(attempts, maxBackoff, failure.RetryAfter)) {
			return c.interrupted(ctx, failure)
		}
	}
}

// reconnect lets lost connections be tried again now: until gRPC tries by itself, every attempt would fail with
// what the last try met, though the service may be back. Callers in a hurry get a try per firstBackoff together.
func (c *Client) reconnect() {
	now, last := time.Now().UnixNano(), c.reconnected.Load()
	if now-last >= int64(firstBackoff) && c.reconnected.CompareAndSwap(last, now) {
		c.conn.ResetConnectBackoff()
	}
}

// interrupted is why there is no other attempt: the context's end, or what failed before there was too little time.
func (c *Client) interrupted(ctx context.Context, failure *Error) *Error {
	if ctx.Err() != nil {
		return c.errorOf(status.FromContextError(ctx.Err()).Err())
	}
	return failure
}

// sleep waits, and reports whether there is time left after it. When there would not be, it returns at once.
func sleep(ctx context.Context, pause time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
