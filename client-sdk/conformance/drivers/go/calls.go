package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

// callArgs are the arguments of a call of an RPC.
type callArgs[M any] struct {
	Request wired[M] `json:"request"`
	Timeout *float64 `json:"timeout"`
}

// rpc is a method of the client as an operation.
func rpc[Q any, A proto.Message](method func(*toolgate.Client, context.Context, *Q, ...grpc.CallOption) (A, error)) operation {
	return func(d *driver, asked request) (any, error) {
		var args callArgs[Q]
		if err := read(asked.Args, &args); err != nil {
			return nil, err
		}
		client, err := d.clients.of(asked.Client)
		if err != nil {
			return nil, err
		}
		ctx, cancel := within(args.Timeout)
		defer cancel()
		answer, err := method(client, ctx, args.Request.M)
		if err != nil {
			return nil, err
		}
		return message(answer)
	}
}

// listing is a listing of the client as an operation.
func listing[Q any, T proto.Message](method func(*toolgate.Client, context.Context, *Q, ...grpc.CallOption) iter.Seq2[T, error]) operation {
	return func(d *driver, asked request) (any, error) {
		var args callArgs[Q]
		if err := read(asked.Args, &args); err != nil {
			return nil, err
		}
		client, err := d.clients.of(asked.Client)
		if err != nil {
			return nil, err
		}
		ctx, cancel := within(args.Timeout)
		defer cancel()
		var items []T
		for item, err := range method(client, ctx, args.Request.M) {
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		written, err := messages(items)
		return map[string]any{"items": written}, err
	}
}

func answerSearch(d *driver, asked request) (any, error) {
	var args struct {
		Call struct {
			Tool      string          `json:"tool"`
			Arguments json.RawMessage `json:"arguments"`
			CallID    string          `json:"call_id"`
		} `json:"call"`
		Handle  string                       `json:"handle"`
		State   wired[toolgatev1.AgentState] `json:"state"`
		Detail  detail                       `json:"detail"`
		Timeout *float64                     `json:"timeout"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	client, err := d.clients.of(asked.Client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(args.Timeout)
	defer cancel()
	arguments := string(args.Call.Arguments)
	if len(arguments) > 0 && arguments[0] == '"' {
		if err := read(args.Call.Arguments, &arguments); err != nil {
			return nil, err
		}
	}
	call := &toolgatev1.RequestedCall{Tool: args.Call.Tool, CallId: args.Call.CallID, ArgumentsJson: arguments}
	answer, err := client.AnswerSearch(ctx, call, &toolgatev1.SearchToolsRequest{
		ActiveSetHandle: args.Handle, State: args.State.M, Detail: toolgatev1.Detail(args.Detail),
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"text": answer.Text, "failed": answer.Failed, "handle": answer.Handle, "tools": named(answer.Tools()),
	}, nil
}

// detail is a detail by its name on the wire.
type detail toolgatev1.Detail

// UnmarshalJSON reads the name.
func (d *detail) UnmarshalJSON(text []byte) error {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	value, ok := toolgatev1.Detail_value[name]
	if !ok {
		return fmt.Errorf("no detail %q", name)
	}
	*d = detail(value)
	return nil
}
