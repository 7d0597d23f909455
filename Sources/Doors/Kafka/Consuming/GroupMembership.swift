import CRdKafka

/// Who a consumer was in its group at one moment: member id and generation. Offsets that a transaction carries under it are refused
/// once the group has gone on to another generation, or without this member.
///
/// `@unchecked Sendable`: what it points to is never changed.
public final class GroupMembership: @unchecked Sendable {
    let pointer: OpaquePointer

    /// A consumer that is no member has an empty id and no generation, and brokers take offsets of such a one unchecked (KIP-447 left that to
    /// older clients). So its id is looked at before and after: ids are given once, so what lies between was taken under the same one.
    init(of client: Client) throws(KafkaError) {
        let before = client.memberID
        guard let before, let pointer = rd_kafka_consumer_group_metadata(client.pointer) else {
            throw Self.noMember
        }
        self.pointer = pointer
        if client.memberID != before { throw Self.noMember }
    }

    deinit { rd_kafka_consumer_group_metadata_destroy(pointer) }

    private static let noMember = KafkaError(
        code: .unknownMember, message: "the consumer is no member of its group now")
}

extension Client {
    /// Nil when the consumer is no member.
    fileprivate var memberID: String? {
        guard let id = rd_kafka_memberid(pointer) else { return nil }
        defer { rd_kafka_mem_free(pointer, id) }
        return id.pointee == 0 ? nil : String(cString: id)
    }
}
