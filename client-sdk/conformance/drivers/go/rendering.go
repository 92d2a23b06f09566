package main

import (
	"strings"

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

func route(d *driver, asked request) (*toolgatev1.RouteResponse, error) {
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
	return client.Route(ctx, args.Request.M)
}

// modelRequest routes, and gives what to send to the model.
func modelRequest(d *driver, asked request) (any, error) {
	turn, err := route(d, asked)
	if err != nil {
		return nil, err
	}
	request, err := toolgate.ModelRequestOf(turn.GetRendered())
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"tools":          request.Tools,
		"messages":       request.Messages,
		"betas":          request.Betas,
		"ledger":         request.Ledger,
		"strategy":       strings.TrimPrefix(request.Strategy.String(), "PROMPT_STRATEGY_"),
		"reason":         strings.TrimPrefix(request.Reason.String(), "STRATEGY_REASON_"),
		"reason_message": request.ReasonMessage,
		"handle":         turn.GetActiveSetHandle(),
	}, nil
}

// rendered routes, and gives the rendered tools of the answer.
func rendered(d *driver, asked request) (any, error) {
	turn, err := route(d, asked)
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
