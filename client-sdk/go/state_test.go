package toolgate_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"toolgate.dev/go"
	"toolgate.dev/go/internal/fake"
	"toolgate.dev/go/toolgatev1"
)

const snapshot = `{"type":"toolgate_snapshot","version":1,"turns":1,"discovered":[],"calls":[]}`

// state is the state on the wire.
func state(t *testing.T, given toolgate.State) *toolgatev1.AgentState {
	t.Helper()
	written, err := given.AgentState()
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func TestAConversationIsItsSnapshotThenItsMessages(t *testing.T) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	for name, given := range map[string]struct {
		state toolgate.State
		want  string
	}{
		"nothing":                {toolgate.State{}, ``},
		"a snapshot alone":       {toolgate.State{Snapshot: snapshot}, `[` + snapshot + `]`},
		"types":                  {toolgate.State{Messages: []message{{"user", "a<b"}}}, `[{"role":"user","content":"a<b"}]`},
		"no messages yet":        {toolgate.State{Messages: []any{}}, `[]`},
		"a nil slice":            {toolgate.State{Messages: []message(nil)}, `[]`},
		"snapshot and no others": {toolgate.State{Messages: []any{}, Snapshot: snapshot}, `[` + snapshot + `]`},
		"JSON": {
			toolgate.State{Messages: json.RawMessage(` [ {"n": 1.50} , {"z":1,"a":2} ] `), Snapshot: snapshot},
			`[` + snapshot + `,{"n": 1.50},{"z":1,"a":2}]`,
		},
	} {
		if got := state(t, given.state).GetMessagesJson(); got != given.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAStateHasWhatNoConversationCanSay(t *testing.T) {
	attributes, err := structpb.NewStruct(map[string]any{"plan": "pro"})
	if err != nil {
		t.Fatal(err)
	}
	given := toolgate.State{Scopes: []string{"a"}, Milestones: []string{"b"}, Attributes: attributes}
	want := &toolgatev1.AgentState{Scopes: []string{"a"}, Milestones: []string{"b"}, Attributes: attributes}
	if got := state(t, given); !proto.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestWhatIsNoConversationIsRefused(t *testing.T) {
	for _, given := range []toolgate.State{
		{Messages: map[string]any{"role": "user"}},
		{Messages: json.RawMessage(`[`)},
		{Messages: make(chan int)},
		{Snapshot: "{"},
	} {
		if got, err := given.AgentState(); err == nil {
			t.Errorf("%v became %v", given, got)
		}
	}
}

func TestASnapshotOfOneTurnStandsForItsMessagesInTheNextCall(t *testing.T) {
	service := fake.Start(t)
	service.Answer(toolgatev1.RouterService_Route_FullMethodName, &toolgatev1.RouteResponse{
		ConversationSnapshot: snapshot, Servers: []string{"slack", "git"},
	})
	const gate = toolgatev1.RouterService_Gate_FullMethodName
	service.Answer(gate, &toolgatev1.GateResponse{})
	client := dial(t, service.Target)
	turn, err := client.Route(t.Context(), &toolgatev1.RouteRequest{
		State: state(t, toolgate.State{Messages: json.RawMessage(`[{"role":"user"}]`)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if servers := turn.GetServers(); !reflect.DeepEqual(servers, []string{"slack", "git"}) {
		t.Error(servers)
	}
	next := state(t, toolgate.State{Snapshot: turn.GetConversationSnapshot()})
	if _, err := client.Gate(t.Context(), &toolgatev1.GateRequest{State: next}); err != nil {
		t.Fatal(err)
	}
	sent := service.Calls(gate)[0].Request.(*toolgatev1.GateRequest)
	if got := sent.GetState().GetMessagesJson(); got != `[`+snapshot+`]` {
		t.Error(got)
	}
}
