"""Ports of 127.0.0.1 for servers that tests start."""
import random
import socket

# Below the ephemeral ports of Linux (ip_local_port_range, from 32768), which clients use.
RANGE = range(10_000, 32_768)

_holders = []


def reserve_port():
    """Reserves a random port of 127.0.0.1 until this process exits, as LoopbackPort.reserve() does in Swift.

    A socket of this process is bound to the port and does not listen. Meanwhile no client and no other process gets the
    port, but a server that sets SO_REUSEADDR can listen on it. Clients are refused while no server listens.
    """
    while True:
        holder = socket.socket()
        try:
            # SO_REUSEADDR is set afterwards: with it, bind would also succeed on a port that another process has reserved.
            holder.bind(("127.0.0.1", random.choice(RANGE)))
        except OSError:
            holder.close()
            continue
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _holders.append(holder)
        return holder.getsockname()[1]
