package dev.toolgate.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.toolgate.CatalogWatch;
import dev.toolgate.Registration;
import dev.toolgate.ToolgateClient;
import dev.toolgate.ToolgateException;
import dev.toolgate.examples.AgentLoop;
import dev.toolgate.examples.Conversation;
import dev.toolgate.examples.ScriptedModel;
import dev.toolgate.v1.ErrorReason;
import dev.toolgate.v1.GetServerRequest;
import dev.toolgate.v1.GetUsageRequest;
import dev.toolgate.v1.GetUsageResponse;
import dev.toolgate.v1.ListToolsRequest;
import dev.toolgate.v1.UnregisterServerRequest;
import dev.toolgate.v1.WatchCatalogRequest;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Against a real service, which TOOLGATE_TARGET names. Each test has a tenant of its own. */
@Tag("server")
@Timeout(120)
class ServerTest {
    private static final Path REPOSITORY = Path.of("..", "..").toAbsolutePath().normalize();
    private static final Pattern CODE =
            Pattern.compile("## Quickstart\n.*?```java\n(.*?)```", Pattern.DOTALL);

    private static String target;
    private final String tenant = "java-" + UUID.randomUUID();

    @BeforeAll
    static void findServer() {
        target = System.getenv("TOOLGATE_TARGET");
        assertTrue(
                target != null && !target.isEmpty(),
                "TOOLGATE_TARGET must name a running service, as host:port");
    }

    @Test
    void theQuickstartOfTheReadmeRunsAsItStands(@TempDir Path folder) throws Exception {
        Matcher code = CODE.matcher(Files.readString(Path.of("README.md")));
        assertTrue(code.find());
        String source = code.group(1);
        assertTrue(source.contains("127.0.0.1:7070") && source.contains("\"demo\""));
        Path file = folder.resolve("Quickstart.java");
        Files.writeString(
                file,
                source.replace("127.0.0.1:7070", target).replace("\"demo\"", "\"" + tenant + "\""));
        String said = run(file);
        assertTrue(said.contains("tokens saved"), said);
        assertTrue(said.contains("send it to slack as slack_post_message"), said);
    }

    private static String run(Path source) throws IOException, InterruptedException {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process =
                new ProcessBuilder(java.toString(), "-cp", classPath(), source.toString())
                        .directory(REPOSITORY.toFile())
                        .redirectErrorStream(true)
                        .start();
        String said = new String(process.getInputStream().readAllBytes());
        assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, process.exitValue(), said);
        return said;
    }

    private static String classPath() {
        String given =
                System.getProperty(
                        "surefire.test.class.path", System.getProperty("java.class.path"));
        return String.join(
                File.pathSeparator,
                List.of(given.split(File.pathSeparator)).stream()
                        .map(p -> Path.of(p).toAbsolutePath().toString())
                        .toList());
    }

    @Test
    void theAgentOfTheExampleCorrectsItselfAndSearches() throws IOException {
        ScriptedModel model = new ScriptedModel();
        List<String> told = AgentLoop.run(target, tenant, slack(), model);
        assertEquals(
                List.of(
                        "runs slack/slack_post_message {\"channel_id\":\"C1\",\"text\":\"10 min late\"}",
                        "runs slack/slack_add_reaction {\"channel_id\":\"C1\",\"timestamp\":\"1.2\",\"reaction\":\"wave\"}",
                        "says They know."),
                told);
        String refused = model.requests().get(1).getAsJsonArray("messages").get(2).toString();
        assertTrue(
                refused.contains("arguments_invalid") && refused.contains("\"is_error\":true"),
                refused);
        assertEquals("toolgate_search_tools", model.defined(0).get(0));
        assertTrue(model.defined(3).contains("mcp__slack__slack_add_reaction"));
        for (JsonObject request : model.requests()) {
            assertFalse(request.get("system").toString().contains("mcp__slack__"));
        }
        try (ToolgateClient client =
                ToolgateClient.builder().target(target).tenant(tenant).build()) {
            GetUsageResponse usage = client.getUsage(GetUsageRequest.getDefaultInstance());
            assertEquals(5, usage.getRouteCalls());
            assertEquals(0, usage.getPhase1Tokens(), "the prompt lists nothing of the catalog");
        }
    }

    @Test
    void whatWasCalledAndDiscoveredOutlivesACompaction() throws IOException {
        ScriptedModel model = new ScriptedModel();
        try (ToolgateClient client =
                ToolgateClient.builder().target(target).tenant(tenant).build()) {
            client.withTimeout(Duration.ofMinutes(1))
                    .registerServer(Registration.of("slack", slack()).build());
            Conversation conversation =
                    new Conversation(client, model, (server, name, arguments) -> "{}");
            conversation.say("post in the team's channel that I'll be ten minutes late");
            conversation.compact("The team was told.");
            assertEquals("You're welcome.", conversation.say("thanks"));
            assertEquals(2, model.requests().get(5).getAsJsonArray("messages").size());
            JsonObject snapshot = JsonParser.parseString(conversation.snapshot()).getAsJsonObject();
            assertEquals(
                    "[\"mcp__slack__slack_post_message\",\"mcp__slack__slack_add_reaction\"]",
                    snapshot.get("discovered").toString());
            List<String> statuses =
                    snapshot.getAsJsonArray("calls").asList().stream()
                            .map(call -> call.getAsJsonObject().get("status").getAsString())
                            .toList();
            assertEquals(List.of("failed", "succeeded", "succeeded", "succeeded"), statuses);
        }
    }

    @Test
    void aWatchSeesWhatIsRegisteredAndListingsHaveIt() throws IOException {
        try (ToolgateClient client =
                        ToolgateClient.builder().target(target).tenant(tenant).build();
                CatalogWatch watch =
                        client.watchCatalog(WatchCatalogRequest.getDefaultInstance())) {
            long before = watch.next().getCatalogRevision();
            client.withTimeout(Duration.ofMinutes(1))
                    .registerServer(Registration.of("slack", slack()).build());
            var change = watch.next();
            assertTrue(change.getCatalogRevision() > before);
            assertEquals(List.of("slack"), change.getServersList());
            ListToolsRequest tools =
                    ListToolsRequest.newBuilder().setServer("slack").setPageSize(3).build();
            assertEquals(8, client.allTools(tools).stream().distinct().count());
            client.unregisterServer(
                    UnregisterServerRequest.newBuilder().setServer("slack").build());
            assertEquals(List.of("slack"), watch.next().getServersList());
        }
    }

    @Test
    void aFailureCarriesTheServicesReason() {
        try (ToolgateClient client =
                ToolgateClient.builder().target(target).tenant(tenant).build()) {
            client.registerServer(
                    Registration.of("empty", JsonParser.parseString("{\"tools\": []}")).build());
            GetServerRequest request = GetServerRequest.newBuilder().setServer("none").build();
            ToolgateException failed =
                    assertThrows(ToolgateException.class, () -> client.getServer(request));
            assertEquals(ErrorReason.ERROR_REASON_SERVER_NOT_FOUND, failed.reason());
        }
    }

    private static byte[] slack() throws IOException {
        return Files.readAllBytes(REPOSITORY.resolve("tests/data/servers/slack.json"));
    }
}
