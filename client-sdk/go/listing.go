package toolgate

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"toolgate.dev/go/toolgatev1"
)

// defaultPageSize is how many items a listing fetches at a time when the request does not say.
const defaultPageSize = 100

// page is one answer of a listing.
type page[T any] struct {
	items []T
	next  string
}

// paged yields the items of all pages, fetching each page when it is needed. An error ends it.
func paged[T any](fetch func(token string) (page[T], error), first string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token := first; ; {
			got, err := fetch(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range got.items {
				if !yield(item, nil) {
					return
				}
			}
			if token = got.next; token == "" {
				return
			}
		}
	}
}

// AllServers yields the tenant's MCP servers by name, fetching pages as it goes. Each page has a deadline of its
// own unless the context has one. An error is yielded last.
func (c *Client) AllServers(ctx context.Context, request *toolgatev1.ListServersRequest, options ...grpc.CallOption) iter.Seq2[*toolgatev1.McpServer, error] {
	return paged(func(token string) (page[*toolgatev1.McpServer], error) {
		asked := copied(request)
		asked.PageSize, asked.PageToken = pageSize(asked.PageSize), token
		got, err := c.ListServers(ctx, asked, options...)
		return page[*toolgatev1.McpServer]{got.GetServers(), got.GetNextPageToken()}, err
	}, request.GetPageToken())
}

// AllTools yields the tenant's tools by MCP server and name, as [Client.AllServers] does.
func (c *Client) AllTools(ctx context.Context, request *toolgatev1.ListToolsRequest, options ...grpc.CallOption) iter.Seq2[*toolgatev1.Tool, error] {
	return paged(func(token string) (page[*toolgatev1.Tool], error) {
		asked := copied(request)
		asked.PageSize, asked.PageToken = pageSize(asked.PageSize), token
		got, err := c.ListTools(ctx, asked, options...)
		return page[*toolgatev1.Tool]{got.GetTools(), got.GetNextPageToken()}, err
	}, request.GetPageToken())
}

// AllPolicyVerdicts yields what a policy decides of each tool, by MCP server and name, as [Client.AllServers]
// does.
func (c *Client) AllPolicyVerdicts(ctx context.Context, request *toolgatev1.CheckPolicyRequest, options ...grpc.CallOption) iter.Seq2[*toolgatev1.PolicyVerdict, error] {
	return paged(func(token string) (page[*toolgatev1.PolicyVerdict], error) {
		asked := copied(request)
		asked.PageSize, asked.PageToken = pageSize(asked.PageSize), token
		got, err := c.CheckPolicy(ctx, asked, options...)
		return page[*toolgatev1.PolicyVerdict]{got.GetVerdicts(), got.GetNextPageToken()}, err
	}, request.GetPageToken())
}

func pageSize(asked int32) int32 {
	if asked == 0 {
		return defaultPageSize
	}
	return asked
}

// copied is a request that may be changed; an empty one for nil.
func copied[Q proto.Message](request Q) Q {
	if !request.ProtoReflect().IsValid() {
		return request.ProtoReflect().New().Interface().(Q)
	}
	return proto.CloneOf(request)
}
