package history

import (
	"bytes"
	"encoding/json"

	"toolgate.dev/go/internal/ordered"
)

// parsed is a message as JSON, whichever type it has.
func parsed[M any](message M) (any, error) {
	text, isJSON := any(message).(json.RawMessage)
	if !isJSON {
		var err error
		if text, err = json.Marshal(message); err != nil {
			return nil, err
		}
	}
	return ordered.Parse(text)
}

// decoded is JSON as a message. Numbers in an interface stay as they were written.
func decoded[M any](text json.RawMessage) (M, error) {
	var message M
	if raw, isJSON := any(&message).(*json.RawMessage); isJSON {
		*raw = text
		return message, nil
	}
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	err := reader.Decode(&message)
	return message, err
}
