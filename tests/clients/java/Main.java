import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Apache kafka-clients as driver.py wants it: "checks BROKER PREFIX TEXT NAME..." and "member BROKER KEY=VALUE...". */
public final class Main {
    interface Check {
        void run() throws Exception;
    }

    static String broker;
    static String prefix;
    static List<String> text;

    private static final Map<String, Check> CHECKS = new LinkedHashMap<>();

    static void add(String name, Check check) {
        CHECKS.put(name, check);
    }

    /** A topic name of this check's own. */
    static String topic(String stem) {
        return prefix + "-" + stem;
    }

    static void require(boolean condition, String why) {
        if (!condition)
            throw new AssertionError(why);
    }

    static void same(Object got, Object want, String what) {
        if (!want.equals(got))
            throw new AssertionError(what + ": got " + got + ", want " + want);
    }

    interface Question {
        boolean ask() throws Exception;
    }

    static void until(String what, Question question) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (!question.ask()) {
            require(System.nanoTime() < end, "not within 30 s: " + what);
            Thread.sleep(20);
        }
    }

    private static String why(Throwable t) {
        StringBuilder says = new StringBuilder();
        for (Throwable at = t; at != null; at = at.getCause())
            says.append(says.length() > 0 ? " <- " : "").append(at.getClass().getSimpleName()).append(' ').append(at.getMessage());
        return says.toString().replace('\n', ' ');
    }

    private static int runChecks(String[] names) {
        int failed = 0;
        RecordChecks.register();
        AdminChecks.register();
        TransactionChecks.register();
        for (String name : names) {
            try {
                Check check = CHECKS.get(name);
                require(check != null, "this program has no such check");
                check.run();
                System.out.println("ok " + name);
            } catch (Throwable t) {
                System.out.println("not ok " + name + ": " + why(t));
                t.printStackTrace();
                failed++;
            }
            System.out.flush();
        }
        return failed == 0 ? 0 : 1;
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "warn");
        broker = args[1];
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        if (args[0].equals("member")) {
            Member.run(rest);
            return;
        }
        prefix = rest[0];
        text = Files.readAllLines(Path.of(rest[1]));
        int status = runChecks(Arrays.copyOfRange(rest, 2, rest.length));
        AdminChecks.close();
        System.exit(status);
    }
}
