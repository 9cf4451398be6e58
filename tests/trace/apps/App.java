import java.util.ArrayList;
import java.util.List;

public class App {
    static final class CartItem {
        final long[] payload = new long[16];
    }

    static volatile double sink;
    static final List<CartItem> cart = new ArrayList<>();

    static double burnTheProcessor(int n) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += Math.sqrt(i);
        return sum;
    }

    public static void main(String[] arguments) {
        for (int i = 0; i < 50000; i++) cart.add(new CartItem());
        System.out.println("ready 0");
        while (true) sink = burnTheProcessor(1000000);
    }
}
