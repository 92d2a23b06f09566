package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

func allOperations() map[string]operation {
	return map[string]operation{
		"Route":               rpc((*toolgate.Client).Route),
		"Gate":                rpc((*toolgate.Client).Gate),
		"SearchTools":         rpc((*toolgate.Client).SearchTools),
		"GetSummaryPool":      rpc((*toolgate.Client).GetSummaryPool),
		"BatchGetToolSchemas": rpc((*toolgate.Client).BatchGetToolSchemas),
		"RegisterServer":      rpc((*toolgate.Client).RegisterServer),
		"UnregisterServer":    rpc((*toolgate.Client).UnregisterServer),
		"ApproveTools":        rpc((*toolgate.Client).ApproveTools),
		"GetServer":           rpc((*toolgate.Client).GetServer),
		"SetPolicy":           rpc((*toolgate.Client).SetPolicy),
		"GetPolicy":           rpc((*toolgate.Client).GetPolicy),
		"GetUsage":            rpc((*toolgate.Client).GetUsage),
		"GetMemoryStats":      rpc((*toolgate.Client).GetMemoryStats),
		"ClearMemory":         rpc((*toolgate.Client).ClearMemory),
		"list_servers":        listing((*toolgate.Client).AllServers),
		"list_tools":          listing((*toolgate.Client).AllTools),
		"check_policy":        listing((*toolgate.Client).AllPolicyVerdicts),
		"watch_start":         watchStart,
		"watch_take":          watchTake,
		"watch_stop":          watchStop,
		"answer_search":       answerSearch,
		"rendered":            rendered,
		"model_request":       modelRequest,
		"layout":              layOut,
		"announce":            announce,
		"search_tool":         searchTool,
		"search_answer":       searchAnswer,
		"search_references":   searchReferences,
		"tool_error":          toolError,
		"read_call":           readCall,
		"apply_pool":          applyPool,
		"precondition":        precondition,
		"soak":                soak,
		"open_close":          openClose,
		"bench":               bench,
		"versions":            versions,
	}
}

func versions(*driver, request) (any, error) {
	return map[string]string{"sdk": toolgate.Version, "runtime": runtime.Version()}, nil
}

func precondition(_ *driver, asked request) (any, error) {
	var args struct {
		Expr expression `json:"expr"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	return message(args.Expr.built)
}

// expression is a precondition, built with the SDK's builders.
type expression struct{ built *toolgatev1.Precondition }

// UnmarshalJSON reads an object of one key.
func (e *expression) UnmarshalJSON(text []byte) error {
	var parts struct {
		IsAuthenticated    *string      `json:"is_authenticated"`
		HasPriorToolOutput *string      `json:"has_prior_tool_output"`
		MilestoneReached   *string      `json:"milestone_reached"`
		AllOf              []expression `json:"all_of"`
		AnyOf              []expression `json:"any_of"`
		Not                *expression  `json:"not"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	switch {
	case parts.IsAuthenticated != nil:
		e.built = toolgate.IsAuthenticated(*parts.IsAuthenticated)
	case parts.HasPriorToolOutput != nil:
		e.built = toolgate.HasPriorToolOutput(*parts.HasPriorToolOutput)
	case parts.MilestoneReached != nil:
		e.built = toolgate.MilestoneReached(*parts.MilestoneReached)
	case parts.AllOf != nil:
		e.built = toolgate.AllOf(operands(parts.AllOf)...)
	case parts.AnyOf != nil:
		e.built = toolgate.AnyOf(operands(parts.AnyOf)...)
	case parts.Not != nil:
		e.built = toolgate.Not(parts.Not.built)
	default:
		return fmt.Errorf("no precondition: %s", text)
	}
	return nil
}

func operands(expressions []expression) []*toolgatev1.Precondition {
	var built []*toolgatev1.Precondition
	for _, one := range expressions {
		built = append(built, one.built)
	}
	return built
}
