package toolgate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"toolgate.dev/go"
	"toolgate.dev/go/internal/conformance"
	"toolgate.dev/go/internal/fake"
	"toolgate.dev/go/toolgatev1"
)

const search = toolgatev1.RouterService_SearchTools_FullMethodName

func pairs(entries []*toolgatev1.SummaryEntry) [][2]string {
	listed := [][2]string{}
	for _, entry := range entries {
		listed = append(listed, [2]string{entry.GetModelName(), entry.GetSummary()})
	}
	return listed
}

func listed(names []string) []string {
	return append([]string{}, names...)
}

type announceCase struct {
	Searchable conformance.Pool `json:"searchable"`
	Loaded     []string         `json:"loaded"`
	Announced  []string         `json:"announced"`
	Expect     json.RawMessage  `json:"expect"`
}

func TestAnnouncementsAreWhatEveryClientAnnounces(t *testing.T) {
	conformance.Run(t, "prompt/announce.json", func(t *testing.T, _ string, given announceCase) {
		said := toolgate.Announce(given.Searchable, given.Loaded, given.Announced)
		conformance.Equal(t, given.Expect, map[string]any{
			"full": said.Full, "added": pairs(said.Added), "removed": listed(said.Removed),
			"announced": said.Announced, "text": said.Text(),
		})
	})
}

func TestTheSearchIsDefinedAsEveryClientDefinesIt(t *testing.T) {
	conformance.Run(t, "search/tool.json", func(t *testing.T, _ string, given struct{ Expect json.RawMessage }) {
		tool := toolgate.SearchTool()
		conformance.Equal(t, given.Expect, map[string]any{
			"name": tool.GetName(), "model_name": tool.GetModelName(), "description": tool.GetDescription(),
			"input_schema": json.RawMessage(tool.GetInputSchemaJson()),
			"annotations":  json.RawMessage(tool.GetAnnotationsJson()),
			"signature":    tool.GetSignature(), "signature_lossy": tool.GetSignatureLossy(),
			"schema_tokens": tool.GetSchemaTokens(),
		})
	})
}

type answerCase struct {
	Found  json.RawMessage `json:"found"`
	Expect json.RawMessage `json:"expect"`
}

func TestSearchesAreAnsweredAsEveryClientAnswersThem(t *testing.T) {
	conformance.Run(t, "search/answer.json", func(t *testing.T, _ string, given answerCase) {
		found := &toolgatev1.SearchToolsResponse{}
		if err := protojson.Unmarshal(given.Found, found); err != nil {
			t.Fatal(err)
		}
		answer := toolgate.AnswerWith(found)
		conformance.Equal(t, given.Expect, json.RawMessage(answer.Text))
		if answer.Failed {
			t.Error("it failed")
		}
	})
}

type mistakeCase struct {
	Arguments json.RawMessage `json:"arguments"`
	Expect    json.RawMessage `json:"expect"`
}

func TestAMistakenSearchIsToldAsEveryClientTellsIt(t *testing.T) {
	// Nothing is sent.
	client := dial(t, "127.0.0.1:1")
	conformance.Run(t, "search/mistake.json", func(t *testing.T, _ string, given mistakeCase) {
		arguments := string(given.Arguments)
		if arguments[0] == '"' {
			if err := json.Unmarshal(given.Arguments, &arguments); err != nil {
				t.Fatal(err)
			}
		}
		call := &toolgatev1.RequestedCall{Tool: toolgate.SearchToolName, ArgumentsJson: arguments}
		answer, err := client.AnswerSearch(t.Context(), call, &toolgatev1.SearchToolsRequest{ActiveSetHandle: "h"})
		if err != nil {
			t.Fatal(err)
		}
		conformance.Equal(t, given.Expect, json.RawMessage(answer.Text))
		if !answer.Failed || answer.Handle != "h" || answer.Found != nil || answer.Tools() != nil {
			t.Error(answer)
		}
	})
}

func TestASearchIsTheModelsInTheTurnsSet(t *testing.T) {
	service := fake.Start(t)
	service.Answer(search, &toolgatev1.SearchToolsResponse{
		Tools:           []*toolgatev1.ActiveTool{{ModelName: "mcp__git__log"}},
		ActiveSetHandle: "h2",
	})
	client := dial(t, service.Target, toolgate.WithTenant("demo"))
	call := &toolgatev1.RequestedCall{ArgumentsJson: `{"query":"git","max_results":7,"more":1}`}
	given := &toolgatev1.SearchToolsRequest{ActiveSetHandle: "h", State: &toolgatev1.AgentState{Scopes: []string{"a"}}}
	answer, err := client.AnswerSearch(t.Context(), call, given)
	if err != nil || answer.Text != `{"tools":[{"name":"mcp__git__log"}]}` || answer.Handle != "h2" || len(answer.Tools()) != 1 {
		t.Fatal(answer, err)
	}
	want := &toolgatev1.SearchToolsRequest{
		Tenant: "demo", Query: "git", MaxResults: proto.Uint32(7), ActiveSetHandle: "h", State: given.State,
		Detail: toolgatev1.Detail_DETAIL_REFERENCES,
	}
	if got := service.Calls(search)[0].Request; !proto.Equal(got, want) {
		t.Errorf("%v came", got)
	}
	if string(toolgate.ToolReferences(answer.Found)) != `[{"type":"tool_reference","tool_name":"mcp__git__log"}]` {
		t.Errorf("%s", toolgate.ToolReferences(answer.Found))
	}
}

func TestWhatTheServiceSaysOfTheModelsWordsIsForTheModel(t *testing.T) {
	service := fake.Start(t)
	client := dial(t, service.Target)
	call := &toolgatev1.RequestedCall{ArgumentsJson: `{"query":"x"}`}
	for field, isTheModels := range map[string]bool{"query": true, "state.scopes[0]": false} {
		service.Handle(search, func(context.Context, fake.Call) (proto.Message, error) {
			violation := &errdetails.BadRequest_FieldViolation{Field: field, Description: "no"}
			return nil, fake.Fail(codes.InvalidArgument, field+": no",
				&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{violation}})
		})
		answer, err := client.AnswerSearch(t.Context(), call, nil)
		if (err == nil) != isTheModels {
			t.Errorf("%s: %v %v", field, answer, err)
		}
		if isTheModels && answer.Text != `{"error":"arguments_invalid","message":"query: no"}` {
			t.Error(answer.Text)
		}
	}
}

func TestAPoolFollowsItsChanges(t *testing.T) {
	entry := func(name, summary string) *toolgatev1.SummaryEntry {
		return &toolgatev1.SummaryEntry{ModelName: name, Summary: summary}
	}
	held := []*toolgatev1.SummaryEntry{entry("a", "1"), entry("b", "2"), entry("c", "3")}
	change := &toolgatev1.SummaryPoolDelta{
		Added:   []*toolgatev1.SummaryEntry{entry("d", "4"), entry("a", "5"), entry("d", "6"), entry("c", "7")},
		Removed: []string{"c", "x"},
	}
	want := [][2]string{{"b", "2"}, {"a", "5"}, {"d", "6"}, {"c", "7"}}
	if got := pairs(toolgate.ApplyPool(held, change)); !reflect.DeepEqual(got, want) {
		t.Error(got)
	}
	change.Full = true
	if got := pairs(toolgate.ApplyPool(held, change)); !reflect.DeepEqual(got, want[1:]) {
		t.Error(got)
	}
	if got := pairs(toolgate.ApplyPool(held, nil)); !reflect.DeepEqual(got, pairs(held)) {
		t.Error(got)
	}
}

func TestARefusalIsToldToTheModel(t *testing.T) {
	for want, verdict := range map[string]*toolgatev1.GateVerdict{
		`{"error":"unknown_tool","message":"No such tool.","available":[],"search":"select:x"}`: {
			Code: toolgatev1.RefusalCode_REFUSAL_CODE_UNKNOWN_TOOL, Message: "No such tool.", SearchQuery: "select:x",
		},
		`{"error":"arguments_invalid","message":"<no>","violations":[{"pointer":"/n","message":"m"}],"input_schema":{"maximum":1.50}}`: {
			Code: toolgatev1.RefusalCode_REFUSAL_CODE_ARGUMENTS_INVALID, Message: "<no>",
			Violations:      []*toolgatev1.ArgumentViolation{{Pointer: "/n", Message: "m"}},
			InputSchemaJson: `{"maximum":1.50}`,
		},
		`{"error":"unspecified","message":"","unlock":["u"]}`: {Code: 99, Unlock: []string{"u"}},
	} {
		if got, err := toolgate.ToolError(verdict); err != nil || string(got) != want {
			t.Errorf("%s (%v)\nis not\n%s", got, err, want)
		}
	}
	if _, err := toolgate.ToolError(&toolgatev1.GateVerdict{Allowed: true}); err == nil {
		t.Error("an allowed call has no error")
	}
}

func TestPreconditionsCombine(t *testing.T) {
	a, b, c := toolgate.IsAuthenticated("a"), toolgate.HasPriorToolOutput("b"), toolgate.MilestoneReached("c")
	built := toolgate.AllOf(toolgate.AllOf(a, toolgate.Not(toolgate.Not(b))), toolgate.AnyOf(toolgate.AnyOf(b), toolgate.Not(c), toolgate.CEL("true")))
	want := `{"all":{"preconditions":[{"isAuthenticated":"a"},{"hasPriorToolOutput":"b"},{"any":{"preconditions":[` +
		`{"hasPriorToolOutput":"b"},{"not":{"milestoneReached":"c"}},{"cel":"true"}]}}]}}`
	got, err := protojson.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	conformance.Equal(t, json.RawMessage(want), json.RawMessage(got))
}

func TestAnAnswerToToolsListStaysAsItCame(t *testing.T) {
	for _, answer := range []any{[]byte(`{"tools": []}`), json.RawMessage(`{"tools": []}`), `{"tools": []}`} {
		if got, err := toolgate.ToolsList(answer); err != nil || string(got) != `{"tools": []}` {
			t.Errorf("%s %v", got, err)
		}
	}
	got, err := toolgate.ToolsList([]map[string]any{{"name": "<a>", "n": json.Number("1.50")}})
	if err != nil || string(got) != `[{"n":1.50,"name":"<a>"}]`+"\n" {
		t.Errorf("%s %v", got, err)
	}
	if _, err := toolgate.ToolsList(make(chan int)); err == nil {
		t.Error("a channel is no answer")
	}
}

func TestListingsFetchTheirPagesAsTheyGo(t *testing.T) {
	const list = toolgatev1.CatalogService_ListTools_FullMethodName
	service := fake.Start(t)
	service.Handle(list, func(_ context.Context, call fake.Call) (proto.Message, error) {
		answer := &toolgatev1.ListToolsResponse{Tools: []*toolgatev1.Tool{{Name: fmt.Sprint(call.Number)}}}
		if call.Number < 3 {
			answer.NextPageToken = fmt.Sprint("after ", call.Number)
		}
		return answer, nil
	})
	client := dial(t, service.Target, toolgate.WithTenant("demo"))
	var names []string
	for tool, err := range client.AllTools(t.Context(), &toolgatev1.ListToolsRequest{Server: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.GetName())
		if got := len(service.Calls(list)); got != len(names) {
			t.Errorf("%d pages for %d tools", got, len(names))
		}
	}
	if !reflect.DeepEqual(names, []string{"1", "2", "3"}) {
		t.Error(names)
	}
	want := &toolgatev1.ListToolsRequest{Tenant: "demo", Server: "s", PageSize: 100, PageToken: "after 1"}
	if got := service.Calls(list)[1].Request; !proto.Equal(got, want) {
		t.Errorf("%v came", got)
	}
	for range client.AllTools(t.Context(), nil) {
		break
	}
	for server, err := range client.AllServers(t.Context(), nil) {
		if failure(t, err).Code != codes.Unimplemented || server != nil {
			t.Error(server, err)
		}
	}
	for verdict, err := range client.AllPolicyVerdicts(t.Context(), nil) {
		if failure(t, err).Code != codes.Unimplemented || verdict != nil {
			t.Error(verdict, err)
		}
	}
}
