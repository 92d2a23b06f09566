package render

import (
	"slices"
	"strings"

	"toolgate.dev/go/internal/ordered"
	"toolgate.dev/go/toolgatev1"
)

// UnsupportedModels gives parts of the names of models that take no `defer_loading`. A model not named here takes
// it.
func UnsupportedModels() []string {
	return []string{"haiku", "claude-2", "claude-3", "claude-instant"}
}

// CanDefer reports whether a model takes `defer_loading` and `tool_reference`, by a list of those that don't; nil
// for [UnsupportedModels].
func CanDefer(model string, unsupported []string) bool {
	if unsupported == nil {
		unsupported = UnsupportedModels()
	}
	return !slices.ContainsFunc(unsupported, func(part string) bool {
		return strings.Contains(strings.ToLower(model), strings.ToLower(part))
	})
}

// SearchTool is which of Anthropic's own searches to send with deferred tools.
type SearchTool int

const (
	// SearchBM25 searches by words. It is the default.
	SearchBM25 SearchTool = iota
	// SearchRegex searches by pattern.
	SearchRegex
	// SearchNone is for callers that have a search of their own.
	SearchNone
)

// AnthropicOptions say how to render for Anthropic. The zero value is the default.
type AnthropicOptions struct {
	// Deferred are tools that the model sees once a search or a `tool_reference` has loaded them.
	Deferred []*toolgatev1.ActiveTool
	// Model is the one that will see the tools. Empty: unknown, which can defer.
	Model string
	// SearchTool is which search to send with deferred tools.
	SearchTool SearchTool
	// Unsupported are parts of the names of models that can't defer; nil for [UnsupportedModels].
	Unsupported []string
	// CacheBreakpoint is whether the last loaded tool ends a cached prefix; deferred tools are outside of it.
	CacheBreakpoint bool
}

var anthropicFormat = format{
	canName: func(name string) bool { return isName(name, 128, "_-") },
	define:  defineForAnthropic,
}

// Anthropic gives the active set as `tools` of the Messages API: the tool search, loaded tools, deferred ones.
//
// Where the model can't defer, deferred tools are sent as loaded ones and no tool search is sent: rather too much
// than a tool too few. A tool that is in both lists is loaded. It fails for a tool that came without its schema.
func Anthropic(tools []*toolgatev1.ActiveTool, options AnthropicOptions) (*Rendered, error) {
	loaded, err := anthropicFormat.each(tools)
	if err != nil {
		return nil, err
	}
	isLoaded := make(map[string]bool)
	for _, tool := range tools {
		isLoaded[tool.GetModelName()] = true
	}
	isTwice := func(tool *toolgatev1.ActiveTool) bool { return isLoaded[tool.GetModelName()] }
	later, err := anthropicFormat.each(slices.DeleteFunc(slices.Clone(options.Deferred), isTwice))
	if err != nil {
		return nil, err
	}
	defers := CanDefer(options.Model, options.Unsupported)
	var seen []*ordered.Object
	if defers && len(later.tools) > 0 && options.SearchTool != SearchNone {
		seen = append(seen, options.SearchTool.definition())
	}
	seen = append(seen, loaded.tools...)
	if !defers {
		seen = append(seen, later.tools...)
	}
	if options.CacheBreakpoint && len(seen) > 0 {
		seen[len(seen)-1].Set("cache_control", ordered.New("type", "ephemeral"))
	}
	if defers {
		for _, tool := range later.tools {
			tool.Set("defer_loading", true)
			seen = append(seen, tool)
		}
	}
	return definitions{tools: seen, losses: append(loaded.losses, later.losses...)}.rendered(), nil
}

func (s SearchTool) definition() *ordered.Object {
	name := "tool_search_tool_bm25"
	if s == SearchRegex {
		name = "tool_search_tool_regex"
	}
	return ordered.New("type", name+"_20251119", "name", name)
}

func defineForAnthropic(tool *toolgatev1.ActiveTool, lost *losses) (*ordered.Object, error) {
	schema, err := inputSchema(tool)
	if err != nil {
		return nil, err
	}
	schema = withoutRefusedProperties(plainRoot(schema, nil, lost), lost)
	return named(tool).With("input_schema", schema), nil
}

func withoutRefusedProperties(schema *ordered.Object, lost *losses) *ordered.Object {
	properties := ordered.AsObject(schema.Get("properties"))
	var refused []string
	for _, name := range properties.Keys() {
		if !isName(name, 64, "_.-") {
			refused = append(refused, name)
			lost.add(pointer("/properties", name), "properties", "dropped: not taken as a name")
		}
	}
	if len(refused) == 0 {
		return schema
	}
	required := []any{}
	for _, name := range listAt(schema, "required") {
		if text, isText := name.(string); !isText || !slices.Contains(refused, text) {
			required = append(required, name)
		}
	}
	return schema.With("properties", properties.Without(refused...)).With("required", required)
}
