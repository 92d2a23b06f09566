package dev.toolgate.prompt;

/** Texts in prompts. */
final class Texts {
    private Texts() {}

    /** A text on one line. */
    static String oneLine(String text) {
        StringBuilder line = new StringBuilder();
        boolean isBetween = false;
        for (int at = 0; at < text.length(); at++) {
            char character = text.charAt(at);
            if (isWhiteSpace(character)) {
                isBetween = true;
                continue;
            }
            if (isBetween && line.length() > 0) {
                line.append(' ');
            }
            isBetween = false;
            line.append(character);
        }
        return line.toString();
    }

    /**
     * Unicode's white space, which is all in the basic plane; Java's own notion leaves some of it
     * out.
     */
    private static boolean isWhiteSpace(char character) {
        return Character.isSpaceChar(character)
                || (character >= '\t' && character <= '\r')
                || character == '\u0085';
    }
}
