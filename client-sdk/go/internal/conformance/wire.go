package conformance

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"

	"toolgate.dev/go/toolgatev1"
)

// Pool is summaries that a case holds as pairs.
type Pool []*toolgatev1.SummaryEntry

// UnmarshalJSON reads a list of pairs of a name and a summary.
func (p *Pool) UnmarshalJSON(text []byte) error {
	var pairs [][2]string
	if err := json.Unmarshal(text, &pairs); err != nil {
		return err
	}
	for _, pair := range pairs {
		*p = append(*p, &toolgatev1.SummaryEntry{ModelName: pair[0], Summary: pair[1]})
	}
	return nil
}

// Tools are tools that a case holds as on the wire.
type Tools []*toolgatev1.ActiveTool

// UnmarshalJSON reads a list of messages.
func (t *Tools) UnmarshalJSON(text []byte) error {
	var listed []json.RawMessage
	if err := json.Unmarshal(text, &listed); err != nil {
		return err
	}
	for _, one := range listed {
		tool := &toolgatev1.ActiveTool{}
		if err := protojson.Unmarshal(one, tool); err != nil {
			return err
		}
		*t = append(*t, tool)
	}
	return nil
}
