// Package modelcall reads the calls that a model made from the shapes of providers' APIs, for Gate and for
// AnswerSearch.
//
// Each function takes a block as json.RawMessage, or as anything that encodes to the provider's JSON: its SDK's
// type, a map. Arguments are passed on as the JSON text that they came as.
package modelcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// FromAnthropic reads a `tool_use` content block of Anthropic's Messages API. It fails for one without a name.
func FromAnthropic(block any) (*toolgatev1.RequestedCall, error) {
	fields, err := fieldsOf(block)
	if err != nil {
		return nil, err
	}
	return made(fields, "input", "id")
}

// FromOpenAI reads one of the `tool_calls` of OpenAI's Chat Completions API. It fails for one without a function.
func FromOpenAI(call any) (*toolgatev1.RequestedCall, error) {
	fields, err := fieldsOf(call)
	if err != nil {
		return nil, err
	}
	var function map[string]json.RawMessage
	if err := json.Unmarshal(fields["function"], &function); err != nil {
		return nil, fmt.Errorf("modelcall: a tool call needs a function: %w", err)
	}
	read, err := made(function, "arguments", "")
	if err == nil {
		read.CallId = textOf(fields["id"])
	}
	return read, err
}

// FromOpenAIResponses reads a `function_call` item of OpenAI's Responses API. It fails for one without a name.
func FromOpenAIResponses(item any) (*toolgatev1.RequestedCall, error) {
	fields, err := fieldsOf(item)
	if err != nil {
		return nil, err
	}
	return made(fields, "arguments", "call_id")
}

// FromGemini reads a `functionCall` of Gemini's API; older models give it no identifier. It fails for one without
// a name.
func FromGemini(call any) (*toolgatev1.RequestedCall, error) {
	fields, err := fieldsOf(call)
	if err != nil {
		return nil, err
	}
	return made(fields, "args", "id")
}

func fieldsOf(value any) (map[string]json.RawMessage, error) {
	text, isJSON := value.(json.RawMessage)
	if !isJSON {
		var err error
		if text, err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("modelcall: %T: %w", value, err)
		}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("modelcall: a call is a JSON object: %w", err)
	}
	return fields, nil
}

// made is a call. Arguments that came as a JSON string are its text; those that are an object, its JSON.
func made(fields map[string]json.RawMessage, arguments, id string) (*toolgatev1.RequestedCall, error) {
	name := textOf(fields["name"])
	if name == "" {
		return nil, errors.New("modelcall: a call needs a name")
	}
	call := &toolgatev1.RequestedCall{Tool: name, CallId: textOf(fields[id]), ArgumentsJson: "{}"}
	switch given := fields[arguments]; {
	case len(given) == 0 || string(given) == "null":
	case given[0] == '"':
		call.ArgumentsJson = textOf(given)
	default:
		call.ArgumentsJson = string(given)
	}
	return call, nil
}

// textOf is a JSON string's text, as far as it can be sent: a lone surrogate becomes U+FFFD. "" for anything else.
func textOf(text json.RawMessage) string {
	value, err := ordered.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(ordered.AsText(value), "\ufffd")
}
