package main

import (
	"context"
	"encoding/json"
	"strings"

	"toolgate.dev/go"
	"toolgate.dev/go/modelcall"
	"toolgate.dev/go/toolgatev1"
)

// Conversation is one dialogue of a user with a model that has Toolgate's tools.
type Conversation struct {
	client  *toolgate.Client
	model   Model
	runTool func(server, name, arguments string) string
	// scopes are what the agent may do; a conversation can't say them.
	scopes   []string
	messages []any
	// snapshot is what was called and discovered, up to the last Route.
	snapshot string
	handle   string
}

// NewConversation begins a dialogue.
func NewConversation(client *toolgate.Client, model Model, runTool func(server, name, arguments string) string, scopes []string) *Conversation {
	return &Conversation{client: client, model: model, runTool: runTool, scopes: scopes}
}

// Say gives the model's answer to what the user says, after all the calls that it makes.
func (c *Conversation) Say(ctx context.Context, text string) (string, error) {
	c.messages = append(c.messages, message("user", text))
	for {
		// The service reads what was called and discovered, for preconditions and for the set.
		state, err := toolgate.State{Messages: c.messages, Snapshot: c.snapshot, Scopes: c.scopes}.AgentState()
		if err != nil {
			return "", err
		}
		turn, err := c.client.Route(ctx, &toolgatev1.RouteRequest{
			Intents:         []*toolgatev1.Intent{{Text: text}},
			State:           state,
			ActiveSetHandle: c.handle,
			Render: &toolgatev1.RenderOptions{
				Format: toolgatev1.ToolFormat_TOOL_FORMAT_ANTHROPIC,
				// The search stands first, so that the cached prefix holds: it makes any other tool callable.
				SearchTool: true,
			},
		})
		if err != nil {
			return "", err
		}
		c.handle = turn.GetActiveSetHandle()
		c.snapshot = turn.GetConversationSnapshot()
		answer, err := c.ask(ctx, turn)
		if err != nil {
			return "", err
		}
		c.messages = append(c.messages, message("assistant", answer))
		results, err := c.results(ctx, answer)
		if err != nil || len(results) == 0 {
			return said(answer), err
		}
		c.messages = append(c.messages, message("user", results))
	}
}

// ask calls the model with the tools of this turn.
func (c *Conversation) ask(ctx context.Context, turn *toolgatev1.RouteResponse) ([]Block, error) {
	tools, err := toolgate.RenderedTools(turn.GetRendered())
	if err != nil {
		return nil, err
	}
	return c.model.Ask(ctx, Prompt{System: "Be brief.", Tools: tools, Messages: c.messages})
}

// results answers the model's calls.
func (c *Conversation) results(ctx context.Context, answer []Block) ([]Block, error) {
	// Within the turn the snapshot stands for all messages.
	state, err := toolgate.State{Snapshot: c.snapshot, Scopes: c.scopes}.AgentState()
	if err != nil {
		return nil, err
	}
	var results []Block
	for _, block := range answer {
		if block.Type != "tool_use" {
			continue
		}
		call, err := modelcall.FromAnthropic(block)
		if err != nil {
			return nil, err
		}
		content, failed, err := c.result(ctx, call, state)
		if err != nil {
			return nil, err
		}
		results = append(results, Block{Type: "tool_result", ToolUseID: call.GetCallId(), Content: content, IsError: failed})
	}
	return results, nil
}

func (c *Conversation) result(ctx context.Context, call *toolgatev1.RequestedCall, state *toolgatev1.AgentState) (content string, failed bool, err error) {
	if call.GetTool() == toolgate.SearchToolName {
		found, err := c.client.AnswerSearch(ctx, call, &toolgatev1.SearchToolsRequest{ActiveSetHandle: c.handle, State: state})
		if err != nil {
			return "", false, err
		}
		// The next Route keeps what was found, with its schemas.
		c.handle = found.Handle
		return found.Text, found.Failed, nil
	}
	gated, err := c.client.Gate(ctx, &toolgatev1.GateRequest{
		ActiveSetHandle: c.handle, Calls: []*toolgatev1.RequestedCall{call}, State: state,
	})
	if err != nil {
		return "", false, err
	}
	verdict := gated.GetVerdicts()[0]
	if !verdict.GetAllowed() {
		// The refusal says what to do instead: the model corrects itself.
		refusal, err := toolgate.ToolError(verdict)
		return string(refusal), true, err
	}
	arguments := call.GetArgumentsJson()
	if verdict.GetArgumentsJson() != "" {
		arguments = verdict.GetArgumentsJson()
	}
	return c.runTool(verdict.GetServer(), verdict.GetName(), arguments), false, nil
}

// Compact puts a summary in place of all messages. What was called and discovered outlives them in the snapshot.
func (c *Conversation) Compact(summary string) {
	c.messages = []any{message("user", summary)}
}

func message(role string, content any) map[string]any {
	return map[string]any{"role": role, "content": content}
}

func said(answer []Block) string {
	var texts []string
	for _, block := range answer {
		if block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Model is what a conversation needs of a provider's client.
type Model interface {
	// Ask gives the content of the model's answer.
	Ask(ctx context.Context, prompt Prompt) ([]Block, error)
}

// Prompt is a request of Anthropic's Messages API, as far as this example needs it.
type Prompt struct {
	System   string
	Tools    []json.RawMessage
	Messages []any
}

// Block is a content block of Anthropic's Messages API, as far as this example needs it.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}
