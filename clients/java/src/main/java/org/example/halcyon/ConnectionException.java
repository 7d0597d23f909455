package org.example.halcyon;

/** A gateway could not be reached, or the connection to it broke. */
public final class ConnectionException extends HalcyonException {
    private static final long serialVersionUID = 1;

    ConnectionException(Throwable cause) {
        super("connection to the gateway failed: " + cause, cause);
    }

    @Override
    public boolean isTransient() {
        return true;
    }
}
