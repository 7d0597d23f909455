import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.example.halcyon.Event;
import org.example.halcyon.Job;

/**
 * Submits a job over Kafka with Apache's Java client: java -cp "$KAFKA_HOME/libs/*:halcyon-client-0.1.0.jar" Example.java BROKERS SOURCE. Prints the events
 * of the job as they arrive, up to its terminal event. Exits with 1 if that is not "ready". clients/java/pack builds the JAR.
 */
class Example {
    private static final String TEXT = "org.apache.kafka.common.serialization.String";

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2) {
            System.err.println("usage: Example BROKERS SOURCE");
            System.exit(2);
        }
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", arguments[0],
            "key.serializer", TEXT + "Serializer", "value.serializer", TEXT + "Serializer",
            "key.deserializer", TEXT + "Deserializer", "value.deserializer", TEXT + "Deserializer",
            // Terminal events are valid once they are committed. By default, Java's client also reads uncommitted and aborted records.
            "isolation.level", "read_committed"));
        String id = "java-" + UUID.randomUUID();

        try (KafkaConsumer<String, String> events = new KafkaConsumer<>(settings)) {
            // Starts at the end offsets before the job is submitted, so no event is missed. A consumer group is not needed.
            List<TopicPartition> partitions = events.partitionsFor("halcyon.events").stream()
                .map(each -> new TopicPartition(each.topic(), each.partition())).collect(Collectors.toList());
            events.assign(partitions);
            events.endOffsets(partitions).forEach(events::seek);
            try (KafkaProducer<String, String> jobs = new KafkaProducer<>(settings)) {
                Job job = Job.of(arguments[1]).id(id).width(400).height(300);
                jobs.send(new ProducerRecord<>("halcyon.jobs", arguments[1], job.toJson())).get();
            }
            System.exit(follow(events, id) ? 0 : 1);
        }
    }

    /** Prints the events of a job. Returns true if the terminal event is "ready". */
    private static boolean follow(KafkaConsumer<String, String> events, String id) {
        while (true) {
            for (var record : events.poll(Duration.ofSeconds(1))) {
                // The key of an event record is the job id.
                if (!id.equals(record.key())) continue;
                System.out.println(record.value());
                Event event = Event.parse(record.value());
                if (event.endsJob()) return event.data() instanceof Event.Ready;
            }
        }
    }
}
