// Command agent is an agent's loop: it routes before each call of the model, gates what the model calls, and
// answers its searches. The model is a script, so that it runs without a provider; [Conversation] is what an agent
// of yours would have.
//
//	go run ./examples/agent -catalog ../../tests/data/servers/slack.json
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"toolgate.dev/go"
	"toolgate.dev/go/toolgatev1"
)

func main() {
	log.SetFlags(0)
	target := flag.String("target", toolgate.DefaultTarget, "where `toolgate serve` listens")
	catalog := flag.String("catalog", "slack.json", "what Slack's MCP server answers to tools/list")
	flag.Parse()
	client, err := toolgate.New(*target, toolgate.WithTenant("demo"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := run(client, *catalog, script()); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

// run registers the catalog, and has the conversation.
func run(client *toolgate.Client, catalog string, model Model) (*Conversation, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	definitions, err := os.ReadFile(catalog)
	if err != nil {
		return nil, err
	}
	registered, err := client.RegisterServer(ctx, &toolgatev1.RegisterServerRequest{
		Server:        "slack",
		ToolsListJson: definitions,
		ToolSettings: []*toolgatev1.ToolSettings{{
			Name:         "slack_post_message",
			Precondition: toolgate.IsAuthenticated("chat:write"),
		}},
	})
	if err != nil {
		return nil, err
	}
	fmt.Printf("%d tools registered\n", registered.GetServer().GetToolCount())
	conversation := NewConversation(client, model, runTool, []string{"chat:write"})
	answer, err := conversation.Say(ctx, "post in the team's channel that I'll be ten minutes late")
	if err != nil {
		return nil, err
	}
	fmt.Println("the model:", answer)
	conversation.Compact("The team was told.")
	answer, err = conversation.Say(ctx, "thanks")
	if err != nil {
		return nil, err
	}
	fmt.Println("the model:", answer)
	return conversation, nil
}

// runTool stands for the MCP client that runs what was allowed.
func runTool(server, name, arguments string) string {
	fmt.Printf("%s runs %s with %s\n", server, name, arguments)
	return `{"ok":true}`
}
