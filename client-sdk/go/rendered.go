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
