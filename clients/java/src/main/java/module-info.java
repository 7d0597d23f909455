/** A client of Halcyon, a cluster of workers that load, resize and cache images. */
module org.example.halcyon {
    requires transitive java.net.http;

    exports org.example.halcyon;
}
