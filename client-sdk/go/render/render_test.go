package render_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"toolgate.dev/go/internal/conformance"
	"toolgate.dev/go/render"
	"toolgate.dev/go/toolgatev1"
)

type renderCase struct {
	Tools   []caseTool `json:"tools"`
	Options struct {
		Deferred        []caseTool      `json:"deferred"`
		Model           string          `json:"model"`
		SearchTool      json.RawMessage `json:"search_tool"`
		Unsupported     []string        `json:"unsupported"`
		CacheBreakpoint bool            `json:"cache_breakpoint"`
	} `json:"options"`
	Expect struct {
		Tools  json.RawMessage `json:"tools"`
		Losses []render.Loss   `json:"losses"`
	} `json:"expect"`
}

type caseTool struct {
	ModelName    string          `json:"model_name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Annotations  json.RawMessage `json:"annotations"`
}

func active(tools []caseTool) []*toolgatev1.ActiveTool {
	var active []*toolgatev1.ActiveTool
	for _, tool := range tools {
		active = append(active, &toolgatev1.ActiveTool{
			ModelName: tool.ModelName, Description: tool.Description,
			InputSchemaJson: string(tool.InputSchema), OutputSchemaJson: string(tool.OutputSchema),
			AnnotationsJson: string(tool.Annotations),
		})
	}
	return active
}

type renderer func([]*toolgatev1.ActiveTool) (*render.Rendered, error)

var renderers = map[string]renderer{
	"gemini": render.Gemini, "mcp": render.MCP,
	"openai_chat": render.OpenAIChat, "openai_responses": render.OpenAIResponses,
}

func rendered(t *testing.T, provider string, given renderCase) *render.Rendered {
	t.Helper()
	by := renderers[provider]
	if provider == "anthropic" {
		options := render.AnthropicOptions{
			Deferred: active(given.Options.Deferred), Model: given.Options.Model,
			Unsupported: given.Options.Unsupported, CacheBreakpoint: given.Options.CacheBreakpoint,
		}
		switch string(given.Options.SearchTool) {
		case "null":
			options.SearchTool = render.SearchNone
		case `"regex"`:
			options.SearchTool = render.SearchRegex
		}
		by = func(tools []*toolgatev1.ActiveTool) (*render.Rendered, error) {
			return render.Anthropic(tools, options)
		}
	}
	if by == nil {
		t.Fatalf("no renderer for %s", provider)
	}
	got, err := by(active(given.Tools))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestToolsAreRenderedAsEveryClientRendersThem(t *testing.T) {
	ran := make(map[string]bool)
	conformance.Run(t, filepath.Join("render", "*.json"), func(t *testing.T, provider string, given renderCase) {
		ran[provider] = true
		got := rendered(t, provider, given)
		conformance.Equal(t, given.Expect.Tools, got.Tools)
		byPlace := func(a, b render.Loss) int {
			return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Note, b.Note))
		}
		slices.SortFunc(got.Losses, byPlace)
		slices.SortFunc(given.Expect.Losses, byPlace)
		if fmt.Sprint(got.Losses) != fmt.Sprint(given.Expect.Losses) {
			t.Errorf("lost %v, not %v", got.Losses, given.Expect.Losses)
		}
	})
	if len(ran) != 5 {
		t.Errorf("cases of %v", ran)
	}
}

func TestASchemaKeepsItsOrderAndItsNumbers(t *testing.T) {
	schema := `{"type":"object","properties":{"z":{"type":"number","maximum":1.50,"default":1e400},` +
		`"a":{"type":"integer","minimum":12345678901234567890,"description":"<\ud800>"}},"required":["z"]}`
	tool := &toolgatev1.ActiveTool{ModelName: "t", InputSchemaJson: schema}
	for name, by := range renderers {
		got, err := by([]*toolgatev1.ActiveTool{tool})
		if err != nil {
			t.Fatal(err)
		}
		want := schema
		if name == "gemini" {
			want = `{"type":"OBJECT","properties":{"z":{"type":"NUMBER","default":1e400,"maximum":1.50},` +
				`"a":{"type":"INTEGER","description":"<\ud800>","minimum":12345678901234567890}},"required":["z"]}`
		}
		if !strings.Contains(string(got.Tools[0]), want) {
			t.Errorf("%s: %s", name, got.Tools[0])
		}
	}
}

func TestAToolWithoutItsSchemaIsAnErrorThatSaysWhatToDo(t *testing.T) {
	for schema, want := range map[string]string{
		"":  "render: a came without its schema: route with DETAIL_SCHEMAS",
		"{": "render: the inputSchema of a is not JSON: unexpected end of JSON input",
	} {
		tools := []*toolgatev1.ActiveTool{{ModelName: "a", InputSchemaJson: schema}}
		for name, by := range renderers {
			if _, err := by(tools); err == nil || err.Error() != want {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := render.Anthropic(nil, render.AnthropicOptions{Deferred: tools}); err == nil || err.Error() != want {
			t.Errorf("anthropic: %v", err)
		}
	}
}

func TestAToolThatCameAsASignatureHasItForADescription(t *testing.T) {
	brief := &toolgatev1.ActiveTool{ModelName: "mcp__git__log", Signature: "mcp__git__log() - Shows commits."}
	got, err := render.MCP([]*toolgatev1.ActiveTool{brief})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"mcp__git__log","description":"mcp__git__log() - Shows commits.","inputSchema":{"type":"object"}}`
	if string(got.Tools[0]) != want {
		t.Errorf("%s", got.Tools[0])
	}
}

func TestASchemaThatGrowsWhenItIsWrittenOutStaysBounded(t *testing.T) {
	// Each level names the next one twice: 2^40 schemas, written out.
	var levels []string
	for level := range 40 {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, level+1)
		levels = append(levels, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":%s,"b":%s}}`, level, next, next))
	}
	schema := `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(levels, ",") + `}}`
	got, err := render.Gemini([]*toolgatev1.ActiveTool{{ModelName: "bomb", InputSchemaJson: schema}})
	if err != nil {
		t.Fatal(err)
	}
	isTooLarge := func(loss render.Loss) bool { return strings.HasPrefix(loss.Note, "too large") }
	if len(got.Tools[0]) > 1_000_000 || !slices.ContainsFunc(got.Losses, isTooLarge) {
		t.Errorf("%d bytes", len(got.Tools[0]))
	}
}

func TestCanDeferGoesByAList(t *testing.T) {
	got := []bool{
		render.CanDefer("claude-opus-5", nil), render.CanDefer("claude-HAIKU-5", nil),
		render.CanDefer("claude-haiku-5", []string{}), render.CanDefer("mine", []string{"MINE"}),
	}
	if !reflect.DeepEqual(got, []bool{true, false, true, false}) {
		t.Error(got)
	}
}
