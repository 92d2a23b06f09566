package toolgate

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// method is a unary call of a generated stub.
type method[Q, A proto.Message] func(context.Context, Q, ...grpc.CallOption) (A, error)

// invoke makes one call: with a tenant, within a deadline, retried, its failure an *Error.
func invoke[Q, A proto.Message](ctx context.Context, c *Client, send method[Q, A], request Q, options []grpc.CallOption) (A, error) {
	var answer A
	if c.closed.Load() {
		return answer, ErrClosed
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	request = filled(request, "tenant", c.tenant)
	err := c.retried(ctx, func() error {
		got, err := send(ctx, request, options...)
		if err == nil {
			answer = got
		}
		return err
	})
	return answer, err
}

// filled is the request with a text where it has none. It shares all else with the caller's, which may be in use
// by other calls and is left alone.
func filled[Q proto.Message](request Q, field protoreflect.Name, text string) Q {
	given := request.ProtoReflect()
	named := given.Descriptor().Fields().ByName(field)
	if text == "" || given.Get(named).String() != "" {
		return request
	}
	copied := given.New()
	given.Range(func(held protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.Set(held, value)
		return true
	})
	copied.SetUnknown(given.GetUnknown())
	copied.Set(named, protoreflect.ValueOfString(text))
	return copied.Interface().(Q)
}
