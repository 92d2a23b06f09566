package main

import (
	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

// loss is a loss as the cases have it.
type loss struct {
	Tool    string `json:"tool"`
	Pointer string `json:"pointer"`
	Keyword string `json:"keyword"`
	Note    string `json:"note"`
}

// rendered routes, and gives the rendered tools of the answer.
func rendered(d *driver, asked request) (any, error) {
	var args callArgs[toolgatev1.RouteRequest]
	if err := read(asked.Args, &args); err != nil {
		return nil, err
	}
	client, err := d.clients.of(asked.Client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(args.Timeout)
	defer cancel()
	turn, err := client.Route(ctx, args.Request.M)
	if err != nil {
		return nil, err
	}
	tools, err := toolgate.RenderedTools(turn.GetRendered())
	if err != nil {
		return nil, err
	}
	losses := []loss{}
	for _, one := range turn.GetRendered().GetLosses() {
		losses = append(losses, loss{one.GetModelName(), one.GetPointer(), one.GetKeyword(), one.GetMessage()})
	}
	return map[string]any{"tools": tools, "losses": losses}, nil
}
