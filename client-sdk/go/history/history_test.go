package history_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"toolgate.dev/go/history"
	"toolgate.dev/go/internal/conformance"
)

type scanCase struct {
	Messages []json.RawMessage `json:"messages"`
	Snapshot json.RawMessage   `json:"snapshot"`
	Expect   json.RawMessage   `json:"expect"`
}

func TestScanReadsWhatEveryClientReads(t *testing.T) {
	conformance.Run(t, "history/scan-*.json", func(t *testing.T, _ string, given scanCase) {
		seen := history.Scan(given.Messages, given.Snapshot)
		conformance.Equal(t, given.Expect, within(t, seen.Snapshot()))
		if _, err := proto.Marshal(seen.State()); err != nil {
			t.Errorf("the state can't be sent: %v", err)
		}
	})
}

// within is a snapshot without its type and version.
func within(t *testing.T, snapshot json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(snapshot, &fields); err != nil {
		t.Fatal(err)
	}
	if string(fields["type"]) != `"toolgate_snapshot"` || string(fields["version"]) != "1" {
		t.Errorf("not a snapshot: %s", snapshot)
	}
	delete(fields, "type")
	delete(fields, "version")
	return fields
}

func TestScanningAgainAfterACompactionChangesNothing(t *testing.T) {
	covered := 0
	conformance.Run(t, "history/scan-*.json", func(t *testing.T, _ string, given scanCase) {
		seen := history.Scan(given.Messages, given.Snapshot)
		ids := make(map[string]bool)
		for _, call := range seen.Calls {
			ids[call.ID] = true
		}
		if ids[""] || len(ids) < len(seen.Calls) {
			return
		}
		kept, err := history.Compacted(given.Messages, given.Messages, given.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		again := history.Scan(kept, nil)
		if !reflect.DeepEqual(again.Calls, seen.Calls) || !reflect.DeepEqual(again.Discovered, seen.Discovered) {
			t.Errorf("%v became %v", seen, again)
		}
		covered++
	})
	if covered <= 20 {
		t.Errorf("%d cases", covered)
	}
}

type stripCase struct {
	Messages   []json.RawMessage `json:"messages"`
	Available  []string          `json:"available"`
	References bool              `json:"references"`
	Expect     struct {
		Messages json.RawMessage `json:"messages"`
		Removed  []struct {
			Message            int
			Kind, Name, Reason string
		} `json:"removed"`
	} `json:"expect"`
}

func TestStripTakesOutWhatEveryClientTakesOut(t *testing.T) {
	conformance.Run(t, "history/strip.json", func(t *testing.T, _ string, given stripCase) {
		before := fmt.Sprintf("%s", given.Messages)
		stripped := strip(t, given.Messages, given.Available, given.References)
		conformance.Equal(t, given.Expect.Messages, stripped.Messages)
		want := fmt.Sprint(given.Expect.Removed)
		if got := fmt.Sprint(stripped.Removed); got != want {
			t.Errorf("removed %s, not %s", got, want)
		}
		if after := fmt.Sprintf("%s", given.Messages); after != before {
			t.Error("the history that was given was changed")
		}
		again := strip(t, stripped.Messages, given.Available, given.References)
		if len(again.Removed) > 0 || !reflect.DeepEqual(again.Messages, stripped.Messages) {
			t.Error("stripping again changed something")
		}
	})
}

func strip[M any](t *testing.T, messages []M, available []string, references bool) history.Stripped[M] {
	t.Helper()
	stripped, err := history.Strip(messages, available, references)
	if err != nil {
		t.Fatal(err)
	}
	return stripped
}

// message is a vendor's type, as far as a test needs one.
type message struct {
	Role    string           `json:"role"`
	Content []map[string]any `json:"content"`
}

func TestHistoriesMayBeOfAnyType(t *testing.T) {
	reference := map[string]any{"type": "tool_reference", "tool_name": "gone", "n": json.Number("1.50")}
	result := map[string]any{"type": "tool_result", "tool_use_id": "a", "content": []any{reference}}
	typed := []message{{Role: "user", Content: []map[string]any{result}}}
	stripped := strip(t, typed, nil, true)
	if got := fmt.Sprint(stripped.Messages); !strings.Contains(got, "no longer available") {
		t.Error(got)
	}
	if got := history.Scan(typed, nil).Discovered; !reflect.DeepEqual(got, []string{"gone"}) {
		t.Error(got)
	}
	if _, err := history.Compacted(typed, nil, nil); err == nil {
		t.Error("a message of this type can't hold a snapshot")
	}
	untyped := []any{map[string]any{"role": "user", "content": []any{result, reference}}, make(chan int)}
	left := strip(t, untyped, []string{"gone"}, true)
	if !reflect.DeepEqual(left.Messages, untyped) {
		t.Errorf("%v changed", left.Messages)
	}
	compacted, err := history.Compacted(untyped, untyped[1:], nil)
	if err != nil || len(compacted) != 2 {
		t.Fatal(compacted, err)
	}
	if got := history.Scan(compacted, nil).Discovered; !reflect.DeepEqual(got, []string{"gone"}) {
		t.Error(got)
	}
}

func TestWhatStaysIsAsItWasWritten(t *testing.T) {
	text := `{"role":"user","z":1.50,"content":[{"type":"tool_reference"},` +
		`{"type":"tool_result","b":1e400,"a":"\ud800<\u2028","content":[{"type":"tool_reference","tool_name":"\ud800"}]}]}`
	stripped := strip(t, []json.RawMessage{json.RawMessage(text)}, nil, true)
	want := `{"role":"user","z":1.50,"content":[{"type":"tool_reference"},` +
		`{"type":"tool_result","b":1e400,"a":"\ud800<` + "\u2028" + `","content":[{"type":"text",` +
		`"text":"The tools that were found here are no longer available."}]}]}`
	if got := string(stripped.Messages[0]); got != want {
		t.Errorf("%s\nis not\n%s", got, want)
	}
}

func TestALongHistoryFitsTheState(t *testing.T) {
	var messages []map[string]any
	for turn := range 10_000 {
		id := fmt.Sprintf("call_%d", turn)
		messages = append(messages,
			map[string]any{"type": "function_call", "call_id": id, "name": fmt.Sprintf("tool_%d", turn)},
			map[string]any{"type": "function_call_output", "call_id": id, "output": "ok"})
	}
	seen := history.Scan(messages, nil)
	if seen.Turns != 10_000 || seen.Discovered[len(seen.Discovered)-1] != "tool_9999" {
		t.Errorf("%d turns, %s", seen.Turns, seen.Discovered)
	}
	if size := proto.Size(seen.State()); size < 30<<10 || size > 56<<10 {
		t.Errorf("%d bytes", size)
	}
}

func TestALongAnswerToASearchIsReadWithinABound(t *testing.T) {
	tool := `{"name":"tool_%d","input_schema":{"title":"` + strings.Repeat("x", 5_000) + `"}},`
	for tools, want := range map[int]int{100: 100, 220: 0} {
		answer := `{"tools":[`
		for n := range tools {
			answer += fmt.Sprintf(tool, n)
		}
		messages := []map[string]any{
			{"type": "function_call", "call_id": "s1", "name": "toolgate_search_tools"},
			{"type": "function_call_output", "call_id": "s1", "output": strings.TrimSuffix(answer, ",") + "]}"},
		}
		if found := len(history.Scan(messages, nil).Discovered); found != want {
			t.Errorf("of %d tools %d were found, not %d", tools, found, want)
		}
	}
}
