package dev.toolgate.examples;

import dev.toolgate.Registration;
import dev.toolgate.ToolgateClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * An agent that posts a message: it routes, shows the model what fits, gates the model's calls, and
 * runs those that may run. The model is scripted: it makes a mistake and corrects it, and searches
 * for a tool that it was not shown.
 */
public final class AgentLoop {
    private AgentLoop() {}

    /**
     * Runs the loop against a service, from the repository's root.
     *
     * @param arguments the target; none: {@code 127.0.0.1:7070}
     */
    public static void main(String[] arguments) throws IOException {
        String target = arguments.length > 0 ? arguments[0] : "127.0.0.1:7070";
        byte[] toolsList = Files.readAllBytes(Path.of("tests/data/servers/slack.json"));
        run(target, "agent-loop", toolsList, new ScriptedModel()).forEach(System.out::println);
    }

    /** Registers the tools, has the conversation, and tells what was run and said. */
    public static List<String> run(
            String target, String tenant, byte[] toolsList, Conversation.Model model) {
        List<String> told = new ArrayList<>();
        try (ToolgateClient client =
                ToolgateClient.builder().target(target).tenant(tenant).build()) {
            client.withTimeout(Duration.ofMinutes(1))
                    .registerServer(Registration.of("slack", toolsList).build());
            Conversation.Tools tools =
                    (server, name, argumentsJson) -> {
                        told.add("runs " + server + "/" + name + " " + argumentsJson);
                        return "{\"ok\": true}";
                    };
            Conversation conversation = new Conversation(client, model, tools);
            String said =
                    conversation.say("post in the team's channel that I'll be ten minutes late");
            told.add("says " + said);
        }
        return told;
    }
}
