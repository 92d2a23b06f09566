package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// scripted stands for a model: it answers what its script says, whatever it is asked, and keeps the prompts.
type scripted struct {
	answers [][]Block
	prompts []Prompt
}

func (s *scripted) Ask(_ context.Context, prompt Prompt) ([]Block, error) {
	s.prompts = append(s.prompts, prompt)
	if len(s.prompts) > len(s.answers) {
		return nil, errors.New("the script is at its end")
	}
	answer := s.answers[len(s.prompts)-1]
	for _, block := range answer {
		if block.Type == "tool_use" && !strings.Contains(fmt.Sprintf("%s", prompt.Tools), `"name":"`+block.Name+`"`) {
			return nil, fmt.Errorf("the script calls %s, which it was not shown", block.Name)
		}
	}
	return answer, nil
}

func calls(id, name, input string) []Block {
	return []Block{{Type: "tool_use", ID: id, Name: name, Input: json.RawMessage(input)}}
}

// script posts a message, at first without its text, and looks for another tool.
func script() *scripted {
	const post, users = "mcp__slack__slack_post_message", "mcp__slack__slack_get_user_profile"
	return &scripted{answers: [][]Block{
		calls("1", post, `{"channel_id":"C1"}`),
		calls("2", post, `{"channel_id":"C1","text":"I'll be ten minutes late."}`),
		calls("3", "toolgate_search_tools", `{"query":"select:`+users+`"}`),
		calls("4", users, `{"user_id":"U1"}`),
		{{Type: "text", Text: "Your team knows."}},
		{{Type: "text", Text: "You're welcome."}},
	}}
}
