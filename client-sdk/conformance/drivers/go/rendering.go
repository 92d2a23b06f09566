package main

import (
	"encoding/json"
	"fmt"

	"toolgate.dev/go/render"
	"toolgate.dev/go/toolgatev1"
)

// tool is a definition as render/*.json have it, or an ActiveTool message.
type tool struct {
	active *toolgatev1.ActiveTool
}

// UnmarshalJSON reads either form: the first one has its schemas as JSON values.
func (t *tool) UnmarshalJSON(text []byte) error {
	var parts struct {
		ModelName    string          `json:"model_name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		OutputSchema json.RawMessage `json:"output_schema"`
		Annotations  json.RawMessage `json:"annotations"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if parts.InputSchema == nil {
		var message wired[toolgatev1.ActiveTool]
		err := message.UnmarshalJSON(text)
		t.active = message.M
		return err
	}
	t.active = &toolgatev1.ActiveTool{
		ModelName: parts.ModelName, Description: parts.Description, InputSchemaJson: string(parts.InputSchema),
		OutputSchemaJson: string(parts.OutputSchema), AnnotationsJson: string(parts.Annotations),
	}
	return nil
}

func active(tools []tool) []*toolgatev1.ActiveTool {
	var found []*toolgatev1.ActiveTool
	for _, one := range tools {
		found = append(found, one.active)
	}
	return found
}

type renderArgs struct {
	Provider string `json:"provider"`
	Tools    []tool `json:"tools"`
	Options  struct {
		Deferred        []tool          `json:"deferred"`
		Model           string          `json:"model"`
		SearchTool      json.RawMessage `json:"search_tool"`
		Unsupported     []string        `json:"unsupported"`
		CacheBreakpoint bool            `json:"cache_breakpoint"`
	} `json:"options"`
}

func renderTools(_ *driver, asked request) (any, error) {
	var args renderArgs
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	rendered, err := args.render()
	if err != nil {
		return nil, err
	}
	losses := append([]render.Loss{}, rendered.Losses...)
	return map[string]any{"tools": rendered.Tools, "losses": losses}, nil
}

func (a renderArgs) render() (*render.Rendered, error) {
	tools := active(a.Tools)
	switch a.Provider {
	case "anthropic":
		return render.Anthropic(tools, a.anthropic())
	case "openai_chat":
		return render.OpenAIChat(tools)
	case "openai_responses":
		return render.OpenAIResponses(tools)
	case "gemini":
		return render.Gemini(tools)
	case "mcp":
		return render.MCP(tools)
	}
	return nil, noProvider(a.Provider)
}

func (a renderArgs) anthropic() render.AnthropicOptions {
	options := render.AnthropicOptions{
		Deferred: active(a.Options.Deferred), Model: a.Options.Model, Unsupported: a.Options.Unsupported,
		CacheBreakpoint: a.Options.CacheBreakpoint,
	}
	switch string(a.Options.SearchTool) {
	case "null":
		options.SearchTool = render.SearchNone
	case `"regex"`:
		options.SearchTool = render.SearchRegex
	}
	return options
}

func noProvider(name string) error {
	return badRequest{fmt.Errorf("no provider %q", name)}
}
