package toolgate_test

import (
	"strings"
	"testing"

	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

func TestRenderedToolsAreTheDefinitionsByteForByte(t *testing.T) {
	rendered := &toolgatev1.RenderedTools{ToolsJson: `[{"z":1.50,"a":2},{"name":"b"}]`}
	tools, err := toolgate.RenderedTools(rendered)
	if err != nil {
		t.Fatal(err)
	}
	if len(tools) != 2 || string(tools[0]) != `{"z":1.50,"a":2}` || string(tools[1]) != `{"name":"b"}` {
		t.Errorf("%s", tools)
	}
}

func TestToolsThatWereNotRenderedSayWhatToDo(t *testing.T) {
	if _, err := toolgate.RenderedTools(nil); err == nil || !strings.Contains(err.Error(), "set Render in the request") {
		t.Error(err)
	}
	if _, err := toolgate.RenderedTools(&toolgatev1.RenderedTools{ToolsJson: "["}); err == nil {
		t.Error("no JSON was taken")
	}
}

func TestModelsThatCanNotDeferAreKnownByPartsOfTheirNames(t *testing.T) {
	for model, want := range map[string]bool{"claude-sonnet-4-5": true, "claude-3-5-Haiku-20241022": false, "": true} {
		if got := toolgate.CanDefer(model, nil); got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
	if toolgate.CanDefer("my-proxy/sonnet", []string{"PROXY"}) {
		t.Error("the caller's list was not taken")
	}
}
