package toolgate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const errorDomain = "toolgate"

// Error is a call that failed. Get it with [errors.As] and switch on Reason; texts may change at any time. It
// unwraps to gRPC's status error, and is [context.DeadlineExceeded] or [context.Canceled] where its code says so.
type Error struct {
	// Code is the gRPC status code.
	Code codes.Code
	// Reason is why; empty when the failure did not come from Toolgate itself: nobody listens, a proxy answered,
	// the deadline passed on this side.
	Reason Reason
	// Message is for a reader.
	Message string
	// Metadata is what else the service said about the reason, such as "limit", "maximum" and "actual".
	Metadata map[string]string
	// FieldViolations are the fields at fault.
	FieldViolations []FieldViolation
	// RetryAfter is how long the service asked to wait before another try; 0 when it did not ask.
	RetryAfter time.Duration

	cause error
}

// FieldViolation is one field at fault.
type FieldViolation struct {
	// Field is its path, such as "intents[0].text".
	Field string
	// Description says what was wrong and what would be right.
	Description string
}

// Error says the reason (or the code), the message, and the violations that the message leaves out.
func (e *Error) Error() string {
	name := string(e.Reason)
	if name == "" {
		name = e.Code.String()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "toolgate: %s: %s", name, e.Message)
	for _, violation := range e.FieldViolations {
		// The service's message says its violations already, unless they are many.
		said := strings.Contains(e.Message, violation.Field) && strings.Contains(e.Message, violation.Description)
		if !said {
			fmt.Fprintf(&text, "; %s: %s", violation.Field, violation.Description)
		}
	}
	return text.String()
}

// Unwrap gives gRPC's status error.
func (e *Error) Unwrap() error {
	return e.cause
}

// Is reports whether the error is a context's: [context.DeadlineExceeded] or [context.Canceled].
func (e *Error) Is(target error) bool {
	return target == context.DeadlineExceeded && e.Code == codes.DeadlineExceeded ||
		target == context.Canceled && e.Code == codes.Canceled
}

// errorOf reads what gRPC returned.
func (c *Client) errorOf(err error) *Error {
	answered := unhidden(status.Convert(err))
	failure := &Error{Code: answered.Code(), Message: answered.Message(), cause: err}
	details := answered.Details()
	// A detail that can't be read is an error in the list, and passed over.
	for _, detail := range details {
		failure.take(detail)
	}
	if failure.Code == codes.Unavailable && len(details) == 0 {
		failure.Message = fmt.Sprintf("%s; is `toolgate serve` running at %s?", failure.Message, c.target)
	}
	return failure
}

// mismatch is how grpc-go words details that contradict the status, behind which it hides the status itself.
var mismatch = regexp.MustCompile(`^grpc-status-details-bin mismatch: grpc-status=(\w+), grpc-message=("(?:[^"\\]|\\.)*"), `)

// unhidden is the status that the service answered with, where its details were garbled.
func unhidden(answered *status.Status) *status.Status {
	parts := mismatch.FindStringSubmatch(answered.Message())
	if answered.Code() != codes.Internal || parts == nil {
		return answered
	}
	message, err := strconv.Unquote(parts[2])
	for code := codes.OK; err == nil && code <= codes.Unauthenticated; code++ {
		if code.String() == parts[1] {
			return status.New(code, message)
		}
	}
	return answered
}

func (e *Error) take(detail any) {
	switch detail := detail.(type) {
	case *errdetails.ErrorInfo:
		if detail.GetDomain() == errorDomain {
			e.Reason = Reason(detail.GetReason())
			e.Metadata = maps.Clone(detail.GetMetadata())
		}
	case *errdetails.BadRequest:
		for _, violation := range detail.GetFieldViolations() {
			found := FieldViolation{Field: violation.GetField(), Description: violation.GetDescription()}
			e.FieldViolations = append(e.FieldViolations, found)
		}
	case *errdetails.RetryInfo:
		e.RetryAfter = max(detail.GetRetryDelay().AsDuration(), 0)
	}
}
