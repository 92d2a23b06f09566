package layout_test

import (
	"encoding/json"
	"testing"

	"toolgate.dev/go/internal/conformance"
	"toolgate.dev/go/layout"
	"toolgate.dev/go/toolgatev1"
)

type layoutCase struct {
	System    string            `json:"system"`
	Summaries conformance.Pool  `json:"summaries"`
	Content   json.RawMessage   `json:"content"`
	Tools     conformance.Tools `json:"tools"`
	Expect    json.RawMessage   `json:"expect"`
}

func TestPromptsAreLaidOutAsEveryClientLaysThemOut(t *testing.T) {
	conformance.Run(t, "prompt/layout.json", func(t *testing.T, _ string, given layoutCase) {
		message, err := layout.UserMessage(given.Content, given.Tools)
		if err != nil {
			t.Fatal(err)
		}
		items, err := layout.ResponsesInput(given.Content, given.Tools)
		if err != nil {
			t.Fatal(err)
		}
		conformance.Equal(t, given.Expect, map[string]any{
			"anthropic_system": layout.AnthropicSystem(given.System, given.Summaries),
			"openai_system":    layout.OpenAISystem(given.System, given.Summaries),
			"user_message":     message,
			"responses_input":  items,
		})
	})
}

func TestTextsAreWrittenWithAsFewEscapesAsJSONAsksFor(t *testing.T) {
	tool := &toolgatev1.ActiveTool{
		ModelName: "a", Description: "<&> \u2028 \x7f \b\x01 😀",
		InputSchemaJson: "{ \"x\" : [ 1.50 , \"\\\" \\\\\" , \" \\u003c \" ] }",
	}
	want := "Tools that are available for the following message:\n" +
		"{\"name\":\"a\",\"description\":\"<&> \u2028 \x7f \\b\\u0001 😀\",\"input_schema\":{\"x\":[1.50,\"\\\" \\\\\",\" \\u003c \"]}}"
	if got := layout.Phase2([]*toolgatev1.ActiveTool{tool}); got != want {
		t.Errorf("%s\nis not\n%s", got, want)
	}
}

func TestContentMayBeOfAnyType(t *testing.T) {
	tools := []*toolgatev1.ActiveTool{{ModelName: "a"}}
	block := `{"type":"text","text":"Tools that are available for the following message:\na"}`
	for want, content := range map[string]any{
		`{"role":"user","content":[` + block + `,{"type":"text","text":"Hi."}]}`: "Hi.",
		`{"role":"user","content":[` + block + `,{"n":1}]}`:                      []map[string]int{{"n": 1}},
		`{"role":"user","content":[` + block + `,{"n":2}]}`:                      map[string]int{"n": 2},
	} {
		got, err := layout.UserMessage(content, tools)
		if err != nil || string(got) != want {
			t.Errorf("%s (%v)\nis not\n%s", got, err, want)
		}
	}
	if _, err := layout.ResponsesInput(make(chan int), tools); err == nil {
		t.Error("a channel is no content")
	}
}
