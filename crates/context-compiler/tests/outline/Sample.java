/*
 * Licence.
 */
package jobs;

import java.util.List;

/**
 * A job.
 *
 * <p>More about it.
 *
 * @param <T> what it gives
 */
@Deprecated
public abstract class Sample<T> implements Runnable {
    /** How many are kept. */
    public static final int LIMIT = 1024;
    private final List<String> names = List.of("one", "two", "three", "four", "five", "six", "seven", "eight", "nine");

    static {
        System.out.println("loaded");
    }

    /** One of a name. */
    public Sample(String name) throws IllegalArgumentException {
        this.names.add(name);
    }

    // Not documentation.
    @Override
    public void run() {
        System.out.println(names);
    }

    protected abstract T result();

    public enum State {
        WAITING, DONE;

        public boolean isLast() {
            return this == DONE;
        }
    }

    public record Point(int x, int y) {
        public Point {
            if (x < 0) throw new IllegalArgumentException();
        }
    }

    interface Listener {
        void ended(Sample<?> sample);
    }
}
