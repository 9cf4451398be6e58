import java.util.ArrayList;
import java.util.List;

public class App {
    static final class CartItem {
        final long[] payload = new long[16];
    }

    static volatile double sink;
    static final List<CartItem> cart = new ArrayList<>();

    static double burnTheProcessor(int n) {
        // Calls, for the sampler sees little of a loop that makes none.
        StringBuilder text = new StringBuilder();
        java.util.HashMap<String, Integer> counts = new java.util.HashMap<>();
        for (int i = 0; i < n; i++) {
            text.setLength(0);
            counts.merge(text.append("key ").append(i % 1000).toString(), 1, Integer::sum);
        }
        return counts.size();
    }

    public static void main(String[] arguments) {
        for (int i = 0; i < 50000; i++) cart.add(new CartItem());
        System.out.println("ready 0");
        while (true) sink = burnTheProcessor(100000);
    }
}
