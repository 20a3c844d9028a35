import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBRequestHandler;
import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBServerHandler;
import java.net.InetSocketAddress;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ContextHandler;

/**
 * Amazon's DynamoDB Local in memory on a free port of the loopback interface, which it prints; its own way to start listens on every
 * interface. Ends with its standard input.
 */
class DynamoDbLocal {
  public static void main(String[] arguments) throws Exception {
    System.setProperty("org.eclipse.jetty.LEVEL", "WARN");
    // Each access key has a database of its own.
    var requests = new LocalDynamoDBRequestHandler(0, true, null, false, false);
    var context = new ContextHandler("/");
    context.setHandler(new LocalDynamoDBServerHandler(requests, null));
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
