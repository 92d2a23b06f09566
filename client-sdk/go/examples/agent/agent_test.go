//go:build server

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"toolgate.dev/go/history"
	"toolgate.dev/go/internal/realserver"
	"toolgate.dev/go/toolgatev1"
)

func TestTheAgentCorrectsItselfAndFindsWhatItNeeds(t *testing.T) {
	client := realserver.Client(t)
	model := script()
	if err := run(client, realserver.Catalog(t, "slack"), model); err != nil {
		t.Fatal(err)
	}
	if len(model.prompts) != 5 {
		t.Fatalf("%d prompts", len(model.prompts))
	}
	last := model.prompts[4].Messages
	written, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`arguments_invalid`, `"is_error":true`, `\"tools\":[{\"name\":\"mcp__slack__slack_get_user_profile\"}]`} {
		if !strings.Contains(string(written), want) {
			t.Errorf("no %s in %s", want, written)
		}
	}
	for _, prompt := range model.prompts {
		if strings.Contains(fmt.Sprint(prompt.System), "mcp__slack__") {
			t.Errorf("the prompt lists tools: %v", prompt.System)
		}
	}
	usage, err := client.GetUsage(t.Context(), &toolgatev1.GetUsageRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if usage.GetRouteCalls() != 5 || usage.GetPhase1Tokens() != 0 {
		t.Errorf("the ledger counts %d tokens of the prompt in %d calls", usage.GetPhase1Tokens(), usage.GetRouteCalls())
	}
	var statuses []string
	seen := history.Scan(last, nil)
	for _, call := range seen.Calls {
		statuses = append(statuses, strings.ToLower(strings.TrimPrefix(call.Status.String(), "CALL_STATUS_")))
	}
	if !reflect.DeepEqual(statuses, []string{"failed", "succeeded", "succeeded", "succeeded"}) {
		t.Error(statuses)
	}
	if found := seen.Discovered; !reflect.DeepEqual(found, []string{"mcp__slack__slack_post_message", "mcp__slack__slack_get_user_profile"}) {
		t.Error(found)
	}
}
