package toolgate

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	maxAttempts  = 3
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = time.Second
)

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
		if failure.Code != codes.Unavailable || !c.throttle.failed() || attempts == maxAttempts {
			return failure
		}
		if !sleep(ctx, backoff(attempts, maxBackoff, failure.RetryAfter)) {
			return c.interrupted(ctx, failure)
		}
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
