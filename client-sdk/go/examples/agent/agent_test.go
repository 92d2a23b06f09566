//go:build server

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"toolgate.dev/go/internal/realserver"
	"toolgate.dev/go/toolgatev1"
)

func TestTheAgentCorrectsItselfAndFindsWhatItNeeds(t *testing.T) {
	client := realserver.Client(t)
	model := script()
	if _, err := run(client, realserver.Catalog(t, "slack"), model); err != nil {
		t.Fatal(err)
	}
	if len(model.prompts) != 6 {
		t.Fatalf("%d prompts", len(model.prompts))
	}
	written, err := json.Marshal(model.prompts[4].Messages)
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
	if usage.GetRouteCalls() != 6 || usage.GetPhase1Tokens() != 0 {
		t.Errorf("the ledger counts %d tokens of the prompt in %d calls", usage.GetPhase1Tokens(), usage.GetRouteCalls())
	}
}

func TestWhatWasCalledAndDiscoveredOutlivesACompaction(t *testing.T) {
	model := script()
	conversation, err := run(realserver.Client(t), realserver.Catalog(t, "slack"), model)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{message("user", "The team was told."), message("user", "thanks")}
	if sent := model.prompts[len(model.prompts)-1].Messages; !reflect.DeepEqual(sent, want) {
		t.Errorf("%v was sent", sent)
	}
	var seen struct {
		Discovered []string
		Calls      []struct{ Status string }
	}
	if err := json.Unmarshal([]byte(conversation.snapshot), &seen); err != nil {
		t.Fatal(err)
	}
	var statuses []string
	for _, call := range seen.Calls {
		statuses = append(statuses, call.Status)
	}
	if !reflect.DeepEqual(statuses, []string{"failed", "succeeded", "succeeded", "succeeded"}) {
		t.Error(statuses)
	}
	if found := seen.Discovered; !reflect.DeepEqual(found, []string{"mcp__slack__slack_post_message", "mcp__slack__slack_get_user_profile"}) {
		t.Error(found)
	}
}
