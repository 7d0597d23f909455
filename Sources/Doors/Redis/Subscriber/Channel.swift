/// What a subscriber knows of one channel: who reads it, and what the server was asked and has confirmed.
///
/// A pure value. Confirmations come in the order of the requests, so a channel that was left and joined again at once is
/// subscribed to only when the *last* of them has come.
struct Channel {
    private(set) var members: [Subscription] = []
    /// Whether the last thing the server was asked is to subscribe.
    private var isAskedFor = false
    /// SUBSCRIBE commands without their confirmation.
    private var unconfirmed = 0

    /// Whether messages published from now on arrive.
    var isSubscribed: Bool { isAskedFor && unconfirmed == 0 }
    /// Whether nothing more is to be known of the channel.
    var isForgotten: Bool { members.isEmpty && unconfirmed == 0 && !isAskedFor }

    /// Adds a reader. True when the server must be asked to subscribe.
    mutating func join(_ member: Subscription) -> Bool {
        members.append(member)
        return !isAskedFor
    }

    /// Takes a reader out. True when the server must be asked to unsubscribe.
    mutating func leave(_ member: Subscription) -> Bool {
        members.removeAll { $0 === member }
        return members.isEmpty && isAskedFor
    }

    /// SUBSCRIBE was sent.
    mutating func askedToSubscribe() {
        isAskedFor = true
        unconfirmed += 1
    }

    /// UNSUBSCRIBE was sent.
    mutating func askedToUnsubscribe() { isAskedFor = false }

    /// The server has confirmed a SUBSCRIBE.
    mutating func confirmed() { unconfirmed = max(0, unconfirmed - 1) }

    /// The connection is gone, and with it every subscription.
    mutating func lost() { (isAskedFor, unconfirmed) = (false, 0) }
}
