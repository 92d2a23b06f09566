package toolgate

import (
	"context"

	"google.golang.org/grpc"

	"toolgate.dev/go/toolgatev1"
)

// Route decides, before the model is called, which tools it is shown this turn.
func (c *Client) Route(ctx context.Context, request *toolgatev1.RouteRequest, options ...grpc.CallOption) (*toolgatev1.RouteResponse, error) {
	return invoke(ctx, c, c.router.Route, request, options)
}

// Gate decides, after the model was called, which of its calls may run. A refused call is a verdict, not an error.
func (c *Client) Gate(ctx context.Context, request *toolgatev1.GateRequest, options ...grpc.CallOption) (*toolgatev1.GateResponse, error) {
	return invoke(ctx, c, c.router.Gate, request, options)
}

// SearchTools finds tools by name, by MCP server, by keywords or in natural language.
func (c *Client) SearchTools(ctx context.Context, request *toolgatev1.SearchToolsRequest, options ...grpc.CallOption) (*toolgatev1.SearchToolsResponse, error) {
	return invoke(ctx, c, c.router.SearchTools, request, options)
}

// GetSummaryPool gives the summaries of the catalog, whole or as a delta since a revision; see [ApplyPool].
func (c *Client) GetSummaryPool(ctx context.Context, request *toolgatev1.GetSummaryPoolRequest, options ...grpc.CallOption) (*toolgatev1.GetSummaryPoolResponse, error) {
	return invoke(ctx, c, c.router.GetSummaryPool, request, options)
}

// BatchGetToolSchemas gives full schemas by tool name, and adds the tools to an active set.
func (c *Client) BatchGetToolSchemas(ctx context.Context, request *toolgatev1.BatchGetToolSchemasRequest, options ...grpc.CallOption) (*toolgatev1.BatchGetToolSchemasResponse, error) {
	return invoke(ctx, c, c.router.BatchGetToolSchemas, request, options)
}
