package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** What the README shows is what is compiled. */
class ReadmeTest {
    @Test
    void theConversationIsThatOfTheExamples() throws IOException {
        String source =
                Files.readString(Path.of("examples/dev/toolgate/examples/Conversation.java"));
        String shown = source.substring(source.indexOf("/** An agent's loop"));
        assertTrue(Files.readString(Path.of("README.md")).contains("```java\n" + shown + "```"));
    }
}
