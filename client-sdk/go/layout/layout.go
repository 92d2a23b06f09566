// Package layout says where phase 1 and phase 2 stand in the prompt, so that the provider's prompt cache holds.
//
// Phase 1, one line for each tool, ends the stable prefix, at a cache breakpoint: its bytes change with the
// catalog only. Phase 2, the definitions of the active set, stands directly before the user's message. What stays
// in the history is never rewritten.
package layout

import (
	"encoding/json"
	"fmt"
	"strings"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

const (
	heading1 = "Tools that can be made available when they are needed, one on each line:"
	heading2 = "Tools that are available for the following message:"
)

// Phase1 is the summary pool as text; the same summaries in the same order give the same bytes.
func Phase1(summaries []*toolgatev1.SummaryEntry) string {
	lines := []string{heading1}
	for _, entry := range summaries {
		summary := strings.Join(strings.Fields(entry.GetSummary()), " ")
		lines = append(lines, entry.GetModelName()+": "+summary)
	}
	return strings.Join(lines, "\n")
}

// Phase2 is definitions as text, one JSON object on each line; a signature where no schema was sent. The tools are
// those that are newly promoted, as the history has the others.
func Phase2(tools []*toolgatev1.ActiveTool) string {
	lines := []string{heading2}
	for _, tool := range tools {
		lines = append(lines, definition(tool))
	}
	return strings.Join(lines, "\n")
}

// AnthropicSystem is the `system` of the Messages API: your own text, if any, then phase 1 with a cache
// breakpoint.
func AnthropicSystem(system string, summaries []*toolgatev1.SummaryEntry) json.RawMessage {
	pool := textBlock(Phase1(summaries))
	pool.Set("cache_control", ordered.New("type", "ephemeral"))
	if system == "" {
		return ordered.Write([]any{pool})
	}
	return ordered.Write([]any{textBlock(system), pool})
}

// OpenAISystem is the system message of OpenAI's APIs: your own text, if any, then phase 1. OpenAI caches the
// longest prefix that it has seen and takes no breakpoints.
func OpenAISystem(system string, summaries []*toolgatev1.SummaryEntry) json.RawMessage {
	content := Phase1(summaries)
	if system != "" {
		content = system + "\n\n" + content
	}
	return ordered.Write(ordered.New("role", "system", "content", content))
}

// UserMessage is the user's message with phase 2 directly before it, for Anthropic and Chat Completions. Keep it
// in the history as it is. The content is a string, or anything that encodes to the provider's blocks; with no tool
// to define it is the message. It fails for a content that can't be encoded.
func UserMessage(content any, tools []*toolgatev1.ActiveTool) (json.RawMessage, error) {
	said, err := parsed(content)
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		blocks := []any{textBlock(Phase2(tools))}
		switch given := said.(type) {
		case []any:
			said = append(blocks, given...)
		case string:
			said = append(blocks, textBlock(given))
		default:
			said = append(blocks, given)
		}
	}
	return ordered.Write(ordered.New("role", "user", "content", said)), nil
}

// ResponsesInput is the items of a turn for the Responses API: phase 2, if there is any, then the user's message.
// The content is as for [UserMessage].
func ResponsesInput(content any, tools []*toolgatev1.ActiveTool) ([]json.RawMessage, error) {
	message, err := UserMessage(content, nil)
	if err != nil {
		return nil, err
	}
	if len(tools) == 0 {
		return []json.RawMessage{message}, nil
	}
	developer := ordered.New("role", "developer", "content", Phase2(tools))
	return []json.RawMessage{ordered.Write(developer), message}, nil
}

func parsed(content any) (any, error) {
	text, isJSON := content.(json.RawMessage)
	var err error
	if !isJSON {
		text, err = json.Marshal(content)
	}
	var said any
	if err == nil {
		said, err = ordered.Parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("layout: the content of a message: %w", err)
	}
	return said, nil
}

func textBlock(text string) *ordered.Object {
	return ordered.New("type", "text", "text", text)
}

func definition(tool *toolgatev1.ActiveTool) string {
	if tool.GetInputSchemaJson() == "" {
		if tool.GetSignature() != "" {
			return tool.GetSignature()
		}
		return tool.GetModelName()
	}
	return string(ordered.Write(ordered.New(
		"name", tool.GetModelName(),
		"description", tool.GetDescription(),
		"input_schema", json.RawMessage(minified(tool.GetInputSchemaJson())),
	)))
}

// minified is JSON without white space between its tokens; everything else byte for byte as it was.
func minified(text string) string {
	out := make([]byte, 0, len(text))
	inText, isEscaped := false, false
	for _, char := range []byte(text) {
		if inText {
			inText = isEscaped || char != '"'
			isEscaped = !isEscaped && char == '\\'
		} else if strings.IndexByte(" \t\r\n", char) >= 0 {
			continue
		} else {
			inText = char == '"'
		}
		out = append(out, char)
	}
	return string(out)
}
