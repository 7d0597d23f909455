#include "plain_loop.h"

#include <hiredis/hiredis.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 256 };

static long delivered;

static void on_report(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque)
{
    (void) producer;
    (void) opaque;
    delivered += !message->err;
}

static rd_kafka_t *client(rd_kafka_type_t type, const struct plain_hits *run)
{
    char error[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", run->brokers, error, sizeof error);
    if (type == RD_KAFKA_PRODUCER) {
        rd_kafka_conf_set(conf, "queue.buffering.max.messages", "1000000", error, sizeof error);
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    } else {
        rd_kafka_conf_set(conf, "group.id", "plain", error, sizeof error);
        rd_kafka_conf_set(conf, "enable.auto.commit", "false", error, sizeof error);
        rd_kafka_conf_set(conf, "enable.partition.eof", "true", error, sizeof error);
    }
    rd_kafka_t *made = rd_kafka_new(type, conf, error, sizeof error);
    if (!made)
        fprintf(stderr, "%s\n", error);
    return made;
}

// Looks up the keys of a batch in one pipeline, and produces an event for each that is there.
static int answer(
    const struct plain_hits *run, redisContext *redis, rd_kafka_t *producer, rd_kafka_topic_t *events, long first, int count)
{
    for (int i = 0; i < count; i++) {
        const char *key = run->keys[(first + i) % run->key_count];
        const char *words[] = {"HMGET", key, "facts", "expiresAt"};
        redisAppendCommandArgv(redis, 4, words, NULL);
    }
    for (int i = 0; i < count; i++) {
        redisReply *reply = NULL;
        if (redisGetReply(redis, (void **) &reply) != REDIS_OK) {
            fprintf(stderr, "%s\n", redis->errstr);
            return -1;
        }
        int is_there = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING;
        freeReplyObject(reply);
        if (!is_there) {
            fprintf(stderr, "a result is not there\n");
            return -1;
        }
        rd_kafka_produce(
            events, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, (void *) run->event, run->event_length, NULL, 0, NULL);
    }
    rd_kafka_poll(producer, 0);
    return 0;
}

long plain_hits_loop(const struct plain_hits *run)
{
    delivered = 0;
    redisContext *redis = redisConnect("127.0.0.1", run->redis_port);
    rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, run), *producer = client(RD_KAFKA_PRODUCER, run);
    if (!redis || redis->err || !consumer || !producer)
        return -1;
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_topic_t *events = rd_kafka_topic_new(producer, run->events, NULL);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(run->partitions);
    for (int partition = 0; partition < run->partitions; partition++)
        rd_kafka_topic_partition_list_add(list, run->jobs, partition)->offset = RD_KAFKA_OFFSET_TAIL(run->count / run->partitions);
    rd_kafka_assign(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);

    // Jobs do not fall evenly on partitions: one may have fewer than it is asked for.
    long done = 0;
    int failed = 0, ended = 0;
    while (ended < run->partitions && !failed) {
        rd_kafka_message_t *messages[BATCH];
        int count = (int) rd_kafka_consume_batch_queue(queue, 10, messages, BATCH), records = 0;
        for (int i = 0; i < count; i++) {
            records += !messages[i]->err;
            ended += messages[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
            rd_kafka_message_destroy(messages[i]);
        }
        failed = records > 0 && answer(run, redis, producer, events, done, records);
        done += records;
    }
    rd_kafka_flush(producer, 60000);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(consumer);
    rd_kafka_topic_destroy(events);
    rd_kafka_destroy(consumer);
    rd_kafka_destroy(producer);
    redisFree(redis);
    return failed ? -1 : delivered;
}
