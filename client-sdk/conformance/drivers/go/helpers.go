package main

import (
	"encoding/json"
	"fmt"

	"toolgate.dev/go"
	"toolgate.dev/go/layout"
	"toolgate.dev/go/modelcall"
	"toolgate.dev/go/toolgatev1"
)

func layOut(_ *driver, asked request) (any, error) {
	var args struct {
		System    string                         `json:"system"`
		Summaries pool                           `json:"summaries"`
		Content   json.RawMessage                `json:"content"`
		Tools     []wired[toolgatev1.ActiveTool] `json:"tools"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	summaries, tools := args.Summaries.entries(), unwrapped(args.Tools)
	message, err := layout.UserMessage(args.Content, tools)
	if err != nil {
		return nil, err
	}
	items, err := layout.ResponsesInput(args.Content, tools)
	return map[string]any{
		"anthropic_system": layout.AnthropicSystem(args.System, summaries),
		"openai_system":    layout.OpenAISystem(args.System, summaries),
		"user_message":     message,
		"responses_input":  items,
	}, err
}

func announce(_ *driver, asked request) (any, error) {
	var args struct {
		Searchable pool     `json:"searchable"`
		Loaded     []string `json:"loaded"`
		Announced  []string `json:"announced"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	said := toolgate.Announce(args.Searchable.entries(), args.Loaded, args.Announced)
	return map[string]any{
		"full": said.Full, "added": poolOf(said.Added), "removed": append([]string{}, said.Removed...),
		"announced": said.Announced, "text": said.Text(),
	}, nil
}

func searchTool(*driver, request) (any, error) {
	tool := toolgate.SearchTool()
	return map[string]any{
		"name": tool.GetName(), "model_name": tool.GetModelName(), "description": tool.GetDescription(),
		"input_schema": json.RawMessage(tool.GetInputSchemaJson()),
		"annotations":  json.RawMessage(tool.GetAnnotationsJson()),
		"signature":    tool.GetSignature(), "signature_lossy": tool.GetSignatureLossy(),
		"schema_tokens": tool.GetSchemaTokens(),
	}, nil
}

type foundArgs struct {
	Found wired[toolgatev1.SearchToolsResponse] `json:"found"`
}

func searchAnswer(_ *driver, asked request) (any, error) {
	var args foundArgs
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	answer := toolgate.AnswerWith(args.Found.M)
	return map[string]any{"text": answer.Text, "failed": answer.Failed}, nil
}

func searchReferences(_ *driver, asked request) (any, error) {
	var args foundArgs
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	return map[string]any{"content": toolgate.ToolReferences(args.Found.M)}, nil
}

func toolError(_ *driver, asked request) (any, error) {
	var args struct {
		Verdict wired[toolgatev1.GateVerdict] `json:"verdict"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	return toolgate.ToolError(args.Verdict.M)
}

func readCall(_ *driver, asked request) (any, error) {
	var args struct {
		Provider string          `json:"provider"`
		Call     json.RawMessage `json:"call"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	readers := map[string]func(any) (*toolgatev1.RequestedCall, error){
		"anthropic": modelcall.FromAnthropic, "openai": modelcall.FromOpenAI,
		"openai_responses": modelcall.FromOpenAIResponses, "gemini": modelcall.FromGemini,
	}
	by := readers[args.Provider]
	if by == nil {
		return nil, badRequest{fmt.Errorf("no provider %q", args.Provider)}
	}
	call, err := by(args.Call)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"tool": call.GetTool(), "arguments_json": call.GetArgumentsJson(), "call_id": call.GetCallId(),
	}, nil
}

func applyPool(_ *driver, asked request) (any, error) {
	var args struct {
		Pool wired[toolgatev1.SummaryPoolDelta] `json:"pool"`
		Held pool                               `json:"held"`
	}
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	return map[string]any{"held": poolOf(toolgate.ApplyPool(args.Held.entries(), args.Pool.M))}, nil
}
