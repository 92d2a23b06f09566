package toolgate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"toolgate.dev/go/toolgatev1"
)

// State is an agent's state with its conversation, from which the service reads what was called and discovered.
type State struct {
	// Messages is the conversation, oldest message first: anything that encodes to a JSON list of a provider's messages,
	// such as a slice of a vendor's types, of maps or of json.RawMessage. At most 1 MiB by default. nil: none.
	Messages any
	// Snapshot is `ConversationSnapshot` of the last RouteResponse. It stands for the messages that were read for it:
	// after a compaction it goes before those that stay, and for Gate and SearchTools within the turn it is enough
	// alone. Messages that it covers may be given as well. Empty: none.
	Snapshot string
	// Scopes are OAuth-style grants that the agent holds.
	Scopes []string
	// Milestones are names of workflow milestones that were reached.
	Milestones []string
	// Attributes are what else a policy may look at.
	Attributes *structpb.Struct
}

// AgentState returns the state as Route, Gate and SearchTools take it. Messages that are json.RawMessage stay byte for
// byte. It fails for messages that don't encode to a JSON list, and for a snapshot that is no JSON.
func (s State) AgentState() (*toolgatev1.AgentState, error) {
	messages, err := s.messagesJSON()
	if err != nil {
		return nil, err
	}
	return &toolgatev1.AgentState{
		Scopes:       s.Scopes,
		Milestones:   s.Milestones,
		Attributes:   s.Attributes,
		MessagesJson: messages,
	}, nil
}

// messagesJSON is the snapshot and the messages as one list; empty without both.
func (s State) messagesJSON() (string, error) {
	var entries [][]byte
	if s.Snapshot != "" {
		if !json.Valid([]byte(s.Snapshot)) {
			return "", errors.New("toolgate: the snapshot of a conversation is no JSON")
		}
		entries = append(entries, []byte(s.Snapshot))
	}
	if s.Messages != nil {
		text, err := encoded(s.Messages)
		if err != nil {
			return "", fmt.Errorf("toolgate: the messages of a conversation: %w", err)
		}
		var messages []json.RawMessage
		if err := json.Unmarshal(text, &messages); err != nil {
			return "", fmt.Errorf("toolgate: the messages of a conversation are no JSON list: %w", err)
		}
		for _, message := range messages {
			entries = append(entries, message)
		}
	} else if len(entries) == 0 {
		return "", nil
	}
	return "[" + string(bytes.Join(entries, []byte(","))) + "]", nil
}

// encoded is a value as JSON; json.RawMessage is JSON already.
func encoded(value any) ([]byte, error) {
	if text, isJSON := value.(json.RawMessage); isJSON {
		return text, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return text.Bytes(), err
}
