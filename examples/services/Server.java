// The web server that comes with Java: java Server.java PORT

import com.sun.net.httpserver.HttpServer;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Server {
    public static void main(String[] arguments) throws IOException {
        // Connections may rest for longer than the default of 30 s, while other servers have their turn.
        System.setProperty("sun.net.httpserver.idleInterval", "3600");
        byte[] body = new byte[1000];
        Arrays.fill(body, (byte) 'x');
        String path = System.getenv("SERVICE_LOG");
        Writer log = path == null || path.isEmpty() ? null : new FileWriter(path, true);
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        HttpServer server = HttpServer.create(address, 4096);
        server.setExecutor(executor());
        server.createContext("/", exchange -> {
            if (log != null) {
                synchronized (log) {
                    log.write(exchange.getRequestMethod() + " " + exchange.getRequestURI() + "\n");
                    log.flush();
                }
            }
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    /** Virtual threads since Java 21, a pool of threads before. */
    private static ExecutorService executor() {
        try {
            return (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        } catch (ReflectiveOperationException older) {
            return Executors.newFixedThreadPool(8);
        }
    }
}
