package toolgate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

func Example() {
	client, err := toolgate.New("127.0.0.1:7070", toolgate.WithTenant("demo"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	turn, err := client.Route(context.Background(), &toolgatev1.RouteRequest{
		Intents: []*toolgatev1.Intent{{Text: "what changed in the repo today?"}},
	})
	var failed *toolgate.Error
	switch {
	case errors.As(err, &failed) && failed.Reason == toolgate.ReasonTenantNotFound:
		log.Fatal("register an MCP server first")
	case err != nil:
		log.Fatal(err)
	}
	for _, tool := range turn.GetActiveTools() {
		fmt.Println(tool.GetModelName())
	}
}

func ExampleTLSFiles() {
	config, err := toolgate.TLSFiles{CA: "ca.pem", Cert: "agent.pem", Key: "agent-key.pem"}.Config()
	if err != nil {
		log.Fatal(err)
	}
	client, err := toolgate.New("https://tools.example:7070", toolgate.WithTLS(config))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
}

func ExampleClient_AllTools() {
	client, err := toolgate.New(toolgate.DefaultTarget)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for tool, err := range client.AllTools(context.Background(), &toolgatev1.ListToolsRequest{Server: "slack"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.GetModelName())
	}
}

func ExampleClient_WatchCatalog() {
	client, err := toolgate.New(toolgate.DefaultTarget)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for change, err := range client.WatchCatalog(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("revision", change.GetCatalogRevision(), change.GetServers())
	}
}

func ExampleAllOf() {
	condition := toolgate.AllOf(
		toolgate.IsAuthenticated("chat:write"),
		toolgate.Not(toolgate.MilestoneReached("read_only")),
	)
	fmt.Println(len(condition.GetAll().GetPreconditions()))
	// Output: 2
}

func ExampleAnnounce() {
	searchable := []*toolgatev1.SummaryEntry{{ModelName: "mcp__git__log", Summary: "Shows commits."}}
	first := toolgate.Announce(searchable, nil, nil)
	fmt.Println(first.Text())
	next := toolgate.Announce(nil, nil, first.Announced)
	fmt.Println(next.Text())
	// Output:
	// <searchable-tools>
	// mcp__git__log: Shows commits.
	// </searchable-tools>
	// <searchable-tools-removed>
	// mcp__git__log
	// </searchable-tools-removed>
}

func ExampleToolError() {
	refusal, err := toolgate.ToolError(&toolgatev1.GateVerdict{
		Code:        toolgatev1.RefusalCode_REFUSAL_CODE_TOOL_NOT_AVAILABLE,
		Message:     "mcp__jira__create_issue is not loaded: search for it first.",
		SearchQuery: "select:mcp__jira__create_issue",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(refusal))
	// Output: {"error":"tool_not_available","message":"mcp__jira__create_issue is not loaded: search for it first.","available":[],"search":"select:mcp__jira__create_issue"}
}
