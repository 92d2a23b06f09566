package modelcall_test

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	"toolgate.dev/go/modelcall"
	"toolgate.dev/go/toolgatev1"
)

type reader func(any) (*toolgatev1.RequestedCall, error)

func TestCallsAreReadFromProvidersShapes(t *testing.T) {
	for text, by := range map[string]reader{
		`{"type":"tool_use","id":"i","name":"n","input":{"b":1.50,"a":"\ud800"}}`:                                 modelcall.FromAnthropic,
		`{"id":"i","type":"function","function":{"name":"n","arguments":"{\"b\":1.50,\"a\":\"\\ud800\"}"}}`:       modelcall.FromOpenAI,
		`{"type":"function_call","call_id":"i","id":"x","name":"n","arguments":"{\"b\":1.50,\"a\":\"\\ud800\"}"}`: modelcall.FromOpenAIResponses,
		`{"name":"n","args":{"b":1.50,"a":"\ud800"},"id":"i"}`:                                                    modelcall.FromGemini,
	} {
		want := &toolgatev1.RequestedCall{CallId: "i", Tool: "n", ArgumentsJson: `{"b":1.50,"a":"\ud800"}`}
		if got, err := by(json.RawMessage(text)); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	got, err := modelcall.FromGemini(map[string]any{"name": "n"})
	if err != nil || !proto.Equal(got, &toolgatev1.RequestedCall{Tool: "n", ArgumentsJson: "{}"}) {
		t.Error(got, err)
	}
}

func TestWhatIsNoCallIsRefused(t *testing.T) {
	for _, by := range []reader{modelcall.FromAnthropic, modelcall.FromOpenAI, modelcall.FromOpenAIResponses, modelcall.FromGemini} {
		for _, given := range []any{nil, 7, "x", []int{1}, map[string]any{}, map[string]any{"function": 7}, make(chan int), json.RawMessage("{")} {
			if call, err := by(given); err == nil {
				t.Errorf("%v became %v", given, call)
			}
		}
	}
}

func TestATextThatCanNotBeSentIsMended(t *testing.T) {
	got, err := modelcall.FromAnthropic(json.RawMessage(`{"name":"a\ud800","id":"\udc00","input":"{"}`))
	if err != nil || got.GetTool() != "a\ufffd" || got.GetCallId() != "\ufffd" || got.GetArgumentsJson() != "{" {
		t.Error(got, err)
	}
}
