package demo;

/** Adds. */
public final class Adder {
    private Adder() {}

    /** The sum. */
    public static int add(int one, int other) {
        return one + other;
    }
}
