package org.example.halcyon;

/** An image was uploaded to a URL that only the submitter of the job knows. */
public final class NotDeliveredException extends HalcyonException {
    private static final long serialVersionUID = 1;

    NotDeliveredException(String address) {
        super("the image was uploaded to a URL of " + address + " that only the submitter knows", null);
    }
}
