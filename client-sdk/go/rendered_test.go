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

func TestAStrategysRequestIsReadByteForByte(t *testing.T) {
	request, err := toolgate.ModelRequestOf(&toolgatev1.RenderedTools{
		ToolsJson:     `[{"name":"own"}]`,
		MessagesJson:  `[{"role": "user", "n": 1.50},{"role":"system"}]`,
		Betas:         []string{"b"},
		Ledger:        "{}",
		Strategy:      toolgatev1.PromptStrategy_PROMPT_STRATEGY_NATIVE,
		Reason:        toolgatev1.StrategyReason_STRATEGY_REASON_CHEAPEST,
		ReasonMessage: "native, because",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(request.Tools) != 1 || len(request.Messages) != 2 || string(request.Messages[0]) != `{"role": "user", "n": 1.50}` {
		t.Errorf("%s %s", request.Tools, request.Messages)
	}
	if len(request.Betas) != 1 || request.Ledger != "{}" || request.ReasonMessage != "native, because" {
		t.Errorf("%+v", request)
	}
	if request.Strategy != toolgatev1.PromptStrategy_PROMPT_STRATEGY_NATIVE ||
		request.Reason != toolgatev1.StrategyReason_STRATEGY_REASON_CHEAPEST {
		t.Errorf("%+v", request)
	}
}

func TestARequestWithoutAStrategySaysWhatToDo(t *testing.T) {
	for _, rendered := range []*toolgatev1.RenderedTools{nil, {ToolsJson: "[]"}} {
		if _, err := toolgate.ModelRequestOf(rendered); err == nil || !strings.Contains(err.Error(), "set Render.Strategy") {
			t.Error(err)
		}
	}
	for _, broken := range []*toolgatev1.RenderedTools{
		{ToolsJson: "[", MessagesJson: "[]"},
		{ToolsJson: "[]", MessagesJson: "["},
	} {
		if _, err := toolgate.ModelRequestOf(broken); err == nil {
			t.Errorf("%v was taken", broken)
		}
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
