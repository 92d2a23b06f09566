package toolgate

import (
	"context"
	"crypto/rand"

	"google.golang.org/grpc"

	"toolgate.dev/go/toolgatev1"
)

// RegisterServer upserts one MCP server's tools; [ToolsList] makes its body. A rejected tool is an outcome, not an
// error. A request without a request_id gets a fresh one, so that a retry after a lost answer changes nothing.
// Registering hundreds of new tools takes longer than the default timeout: give the context a minute.
func (c *Client) RegisterServer(ctx context.Context, request *toolgatev1.RegisterServerRequest, options ...grpc.CallOption) (*toolgatev1.RegisterServerResponse, error) {
	request = filled(request, "request_id", rand.Text())
	return invoke(ctx, c, c.catalog.RegisterServer, request, options)
}

// UnregisterServer removes one MCP server and its tools.
func (c *Client) UnregisterServer(ctx context.Context, request *toolgatev1.UnregisterServerRequest, options ...grpc.CallOption) (*toolgatev1.UnregisterServerResponse, error) {
	return invoke(ctx, c, c.catalog.UnregisterServer, request, options)
}

// ApproveTools accepts tools that wait for approval, each with the hash that was reviewed. One that has another hash by
// now is not accepted: it is among the answer's Refusals, and no error. What is approved already stays so.
func (c *Client) ApproveTools(ctx context.Context, request *toolgatev1.ApproveToolsRequest, options ...grpc.CallOption) (*toolgatev1.ApproveToolsResponse, error) {
	return invoke(ctx, c, c.catalog.ApproveTools, request, options)
}

// GetServer reads one MCP server.
func (c *Client) GetServer(ctx context.Context, request *toolgatev1.GetServerRequest, options ...grpc.CallOption) (*toolgatev1.GetServerResponse, error) {
	return invoke(ctx, c, c.catalog.GetServer, request, options)
}

// ListServers gives a page of the tenant's MCP servers, by name; see [Client.AllServers].
func (c *Client) ListServers(ctx context.Context, request *toolgatev1.ListServersRequest, options ...grpc.CallOption) (*toolgatev1.ListServersResponse, error) {
	return invoke(ctx, c, c.catalog.ListServers, request, options)
}

// ListTools gives a page of the tenant's tools, by MCP server and name; see [Client.AllTools].
func (c *Client) ListTools(ctx context.Context, request *toolgatev1.ListToolsRequest, options ...grpc.CallOption) (*toolgatev1.ListToolsResponse, error) {
	return invoke(ctx, c, c.catalog.ListTools, request, options)
}
