package demo;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AdderTest {
    @Test
    void passes() {
        System.out.println("on standard output");
        assertEquals(3, Adder.add(1, 2));
    }

    @Test
    void fails() {
        System.out.println("on standard output");
        System.err.println("on standard error");
        assertEquals(5, Adder.add(2, 2), "arithmetic");
    }

    @Test
    void panics() {
        throw new IllegalStateException("boom");
    }

    @Test
    @Disabled("not today")
    void isSkipped() {}

    @Test
    void überprüft_名前() {}

    @Test
    void isTooSlow() {
        Assertions.assertTimeoutPreemptively(Duration.ofMillis(20), () -> Thread.sleep(2000));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void withParameters(int value) {
        assertEquals(1, value);
    }
}
