#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

/// Lets the first member of a group start without waiting for others, where librdkafka can do so: 2.0 always waits 3 s.
static inline void crdkafka_mock_join_at_once(rd_kafka_mock_cluster_t *cluster)
{
#if RD_KAFKA_VERSION >= 0x02080000
    rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
#else
    (void)cluster;
#endif
}
