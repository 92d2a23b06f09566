package dev.toolgate;

/** The version of this library. */
public final class Version {
    /** As in Maven's coordinates. */
    public static final String CURRENT = "0.1.0";

    private Version() {}
}
