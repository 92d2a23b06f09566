package toolgate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toolgate.dev/go/toolgatev1"
)

// RenderedTools returns the definitions of a rendered answer as JSON objects, to send as `tools` of a provider's
// request. The same tools give the same bytes, so that prompt caches hold. `rendered` is the field of that name of
// a Route, SearchTools or BatchGetToolSchemas answer; its losses say what the provider's format can't. Gate still
// holds calls to the registered schema. It fails if the request had no `Render`.
func RenderedTools(rendered *toolgatev1.RenderedTools) ([]json.RawMessage, error) {
	if rendered == nil {
		return nil, errors.New("toolgate: the tools were not rendered: set Render in the request")
	}
	var tools []json.RawMessage
	if err := json.Unmarshal([]byte(rendered.GetToolsJson()), &tools); err != nil {
		return nil, fmt.Errorf("toolgate: reading the rendered tools: %w", err)
	}
	return tools, nil
}

// ModelRequest is what to send to the model in one turn.
type ModelRequest struct {
	// Tools are the definitions, for `tools`; the agent's own first. For Gemini they are `functionDeclarations`.
	Tools []json.RawMessage
	// Messages are the agent's, with what was added in its place. The agent keeps its own without the additions.
	Messages []json.RawMessage
	// Betas are names for the header `anthropic-beta`; empty for none.
	Betas []string
	// Ledger says what was added, and where: `Ledger` of the next turn's RenderOptions. Opaque.
	Ledger string
	// Strategy is the one that was used.
	Strategy toolgatev1.PromptStrategy
	// Reason says why that one.
	Reason toolgatev1.StrategyReason
	// ReasonMessage says the same for a reader.
	ReasonMessage string
}

// ModelRequestOf returns what to send to the model in one turn. `rendered` is the field of that name of Route's answer.
// The agent's messages and tools come back byte for byte. It fails if the request's `Render` had no `Strategy`.
func ModelRequestOf(rendered *toolgatev1.RenderedTools) (*ModelRequest, error) {
	if rendered.GetMessagesJson() == "" {
		return nil, errors.New("toolgate: no strategy was asked for: set Render.Strategy in the request")
	}
	tools, err := RenderedTools(rendered)
	if err != nil {
		return nil, err
	}
	var messages []json.RawMessage
	if err := json.Unmarshal([]byte(rendered.GetMessagesJson()), &messages); err != nil {
		return nil, fmt.Errorf("toolgate: reading the messages: %w", err)
	}
	return &ModelRequest{
		Tools:         tools,
		Messages:      messages,
		Betas:         rendered.GetBetas(),
		Ledger:        rendered.GetLedger(),
		Strategy:      rendered.GetStrategy(),
		Reason:        rendered.GetReason(),
		ReasonMessage: rendered.GetReasonMessage(),
	}, nil
}

// UnsupportedModels returns parts of the names of models that take no `defer_loading`. A model not named here takes
// it.
func UnsupportedModels() []string {
	return []string{"haiku", "claude-2", "claude-3", "claude-instant"}
}

// CanDefer reports whether a model takes `defer_loading` and `tool_reference`. `unsupported` lists parts of the
// names of those that don't; nil for [UnsupportedModels].
func CanDefer(model string, unsupported []string) bool {
	if unsupported == nil {
		unsupported = UnsupportedModels()
	}
	return !slices.ContainsFunc(unsupported, func(part string) bool {
		return strings.Contains(strings.ToLower(model), strings.ToLower(part))
	})
}
