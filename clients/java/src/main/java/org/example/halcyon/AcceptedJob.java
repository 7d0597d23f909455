package org.example.halcyon;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * A job that a gateway has accepted and written to the brokers.
 *
 * @param id the id of the job
 * @param lane the lane, such as normal
 * @param keys the keys of the images that the job makes, in the order of its variants
 * @param unknownFields fields that the gateway does not know
 */
public record AcceptedJob(String id, String lane, List<String> keys, List<String> unknownFields) {
    static AcceptedJob of(Fields fields) {
        List<String> keys = fields.texts("images").stream()
            .map(path -> URLDecoder.decode(path.substring(path.lastIndexOf('/') + 1), StandardCharsets.UTF_8)).toList();
        return new AcceptedJob(fields.text("id"), fields.text("lane"), keys, fields.texts("unknownFields"));
    }
}
