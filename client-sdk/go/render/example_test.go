package render_test

import (
	"fmt"
	"log"

	"toolgate.dev/go/render"
	"toolgate.dev/go/toolgatev1"
)

func ExampleGemini() {
	rendered, err := render.Gemini([]*toolgatev1.ActiveTool{{
		ModelName:       "mcp__git__log",
		InputSchemaJson: `{"type":"object","properties":{"count":{"type":"integer","multipleOf":5}}}`,
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", rendered.Tools[0])
	for _, loss := range rendered.Losses {
		fmt.Println(loss.Pointer, loss.Note)
	}
	// Output:
	// {"name":"mcp__git__log","parameters":{"type":"OBJECT","properties":{"count":{"type":"INTEGER"}}}}
	// /properties/count/multipleOf dropped: Gemini has no such keyword
}
