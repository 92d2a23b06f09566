package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

// errorValue is an error as the protocol has it.
func errorValue(err error) map[string]any {
	var failed *toolgate.Error
	switch {
	case errors.As(err, &failed):
		return callError(failed)
	case isBadRequest(err):
		return map[string]any{"kind": "driver", "message": err.Error()}
	}
	return map[string]any{"kind": "usage", "message": err.Error()}
}

func callError(failed *toolgate.Error) map[string]any {
	violations := []map[string]string{}
	for _, violation := range failed.FieldViolations {
		violations = append(violations, map[string]string{"field": violation.Field, "description": violation.Description})
	}
	metadata := map[string]string{}
	for key, value := range failed.Metadata {
		metadata[key] = value
	}
	var retryAfter any
	if failed.RetryAfter > 0 {
		retryAfter = failed.RetryAfter.Seconds()
	}
	return map[string]any{
		"kind": "call", "code": code.Code(failed.Code).String(), "reason": string(failed.Reason), "message": failed.Message,
		"metadata": metadata, "field_violations": violations, "retry_after": retryAfter,
	}
}

// message is a wire message as JSON.
func message(value proto.Message) (json.RawMessage, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(value)
}

func messages[M proto.Message](values []M) ([]json.RawMessage, error) {
	written := []json.RawMessage{}
	for _, value := range values {
		text, err := message(value)
		if err != nil {
			return nil, err
		}
		written = append(written, text)
	}
	return written, nil
}

// wired is a wire message within a request.
type wired[M any] struct{ M *M }

// UnmarshalJSON reads proto3 JSON.
func (w *wired[M]) UnmarshalJSON(text []byte) error {
	w.M = new(M)
	into, ok := any(w.M).(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", w.M)
	}
	return protojson.Unmarshal(text, into)
}

func unwrapped[M any](list []wired[M]) []*M {
	var values []*M
	for _, one := range list {
		values = append(values, one.M)
	}
	return values
}

// pool is summaries as pairs of a name and a text.
type pool [][2]string

func (p pool) entries() []*toolgatev1.SummaryEntry {
	var entries []*toolgatev1.SummaryEntry
	for _, pair := range p {
		entries = append(entries, &toolgatev1.SummaryEntry{ModelName: pair[0], Summary: pair[1]})
	}
	return entries
}

func poolOf(entries []*toolgatev1.SummaryEntry) pool {
	pairs := pool{}
	for _, entry := range entries {
		pairs = append(pairs, [2]string{entry.GetModelName(), entry.GetSummary()})
	}
	return pairs
}

func named(tools []*toolgatev1.ActiveTool) []string {
	names := []string{}
	for _, tool := range tools {
		names = append(names, tool.GetModelName())
	}
	return names
}
