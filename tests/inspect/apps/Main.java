/** Waits, with a thread of its own name. */
public class Main {
    public static void main(String[] arguments) throws InterruptedException {
        Thread worker = new Thread(() -> {
            try {
                Thread.sleep(600_000);
            } catch (InterruptedException ended) {
                // The test is over.
            }
        }, "order-worker");
        worker.setDaemon(true);
        worker.start();
        System.out.println("ready");
        Thread.sleep(600_000);
    }
}
