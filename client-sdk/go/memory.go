package toolgate

import (
	"context"

	"google.golang.org/grpc"

	"toolgate.dev/go/toolgatev1"
)

// GetMemoryStats says how much is remembered of the tenant's calls, tool by tool.
func (c *Client) GetMemoryStats(ctx context.Context, request *toolgatev1.GetMemoryStatsRequest, options ...grpc.CallOption) (*toolgatev1.GetMemoryStatsResponse, error) {
	return invoke(ctx, c, c.memory.GetMemoryStats, request, options)
}

// ClearMemory forgets what is remembered of the tenant, of one of its MCP servers, or of one tool.
func (c *Client) ClearMemory(ctx context.Context, request *toolgatev1.ClearMemoryRequest, options ...grpc.CallOption) (*toolgatev1.ClearMemoryResponse, error) {
	return invoke(ctx, c, c.memory.ClearMemory, request, options)
}
