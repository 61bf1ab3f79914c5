"""Connects `plumbline check` with a test process: lines go through, both ways.

    python -m plumbline.bridge PORT TOKEN

The program starts implementations as processes of their own; a function of a running test cannot be one. This is that
process, and the test answers through it.
"""

import socket
import sys
import threading


def main(port, token):
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(token.encode() + b"\n")

        def requests():
            for line in sys.stdin.buffer:
                connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)

        threading.Thread(target=requests, daemon=True).start()
        with connection.makefile("rb") as answers:
            for line in answers:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
