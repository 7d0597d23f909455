package org.example.halcyon;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Signs URLs, for example for images on web pages, with one of the secrets of the setting gateway.urlKeys.
 *
 * @param keyId the id of the secret
 * @param secret the secret
 */
public record UrlSigner(String keyId, String secret) {
    /**
     * Returns a URL that is valid up to this second for whoever has it. Sign the result of {@link Halcyon#renderUri}, {@link Halcyon#imageUri} or
     * {@link Halcyon#eventsUri}: the signature covers the path as the gateway receives it.
     *
     * @param expires the last second; null for a URL that does not expire, which the gateway must allow
     * @throws IllegalArgumentException if the URL is not absolute, or has a fragment
     */
    public URI sign(URI uri, Instant expires) {
        if (uri.getRawAuthority() == null || uri.getRawPath().isEmpty() || uri.getRawFragment() != null)
            throw new IllegalArgumentException(uri + " cannot be signed");
        String query = uri.getRawQuery() == null ? "?" : "?" + uri.getRawQuery() + "&";
        String target = uri.getRawPath() + query + "keyId=" + Target.encode(keyId, "") + (expires == null ? "" : "&expires=" + expires.getEpochSecond());
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
            String signature = HexFormat.of().formatHex(mac.doFinal(target.getBytes(StandardCharsets.UTF_8)));
            return URI.create(uri.getScheme() + "://" + uri.getRawAuthority() + target + "&signature=" + signature);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("every Java platform has HmacSHA256", error);
        }
    }

    /** Hides the secret. */
    @Override
    public String toString() {
        return "UrlSigner[keyId=" + keyId + "]";
    }
}
