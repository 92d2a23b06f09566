// Package toolgate is the client of Toolgate, which decides which tools a model is shown each turn (Route) and
// whether the calls that it makes may run (Gate).
//
//	client, err := toolgate.New("127.0.0.1:7070", toolgate.WithTenant("demo"))
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	turn, err := client.Route(ctx, &toolgatev1.RouteRequest{
//		Intents: []*toolgatev1.Intent{{Text: "what changed in the repo today?"}},
//	})
//
// Requests and answers are the messages of package toolgatev1, whose comments give units, limits and defaults. A
// [Client] has a method for each RPC that the service answers; it fills in the tenant, sets a deadline, retries
// what may be retried and turns failures into an [*Error].
//
// For a conversation: [State] gives its messages to the service, which reads from them what was discovered and called,
// and answers Route with a snapshot that stands for them; package layout and [Announce] keep prompt caches;
// [SearchTool] is a search to define for the model, whose calls [Client.AnswerSearch] runs; package modelcall reads a
// model's calls. None of them but AnswerSearch calls anything. A request with `Render` is answered with tools in the
// format of a provider's API; [RenderedTools] reads them. With a `Render.Strategy` it is answered with the whole
// request to the model; [ModelRequestOf] reads it.
package toolgate

// Version is the version of this module.
const Version = "0.1.0"
