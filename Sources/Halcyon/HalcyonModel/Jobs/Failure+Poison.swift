extension Failure {
    /// What workers, or the children that tried it, died of or hung on so often that it is not begun again for now.
    public static let knownPoison = Failure(
        .poison, "workers died or hung over it; it is not tried again for some minutes, unless it is purged or reloaded"
    )
}
