"""Type at a shell on a terminal, and read what comes back.

terminal.py STEP...: runs an interactive bash on a pseudo-terminal.  A step is
"wait:TEXT" (until the terminal shows it), "type:LINE" (with a newline), "key:C"
(a control character), or "sleep:SECONDS".  Exit status 1 when a text does not
come within 30 seconds, or bash does not end.
"""
import os
import pty
import select
import sys
import time

PATIENCE = 30


class Terminal:
    def __init__(self):
        self.shown = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "prompt> "
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])

    def read(self, seconds):
        """What is shown within the time; False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: nobody has the other end
            return False
        self.shown += data
        return bool(data)

    def wait(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.shown:
            if time.monotonic() > end or not self.read(0.1):
                sys.exit("no %r in:\n%s" % (
                    text, self.shown.decode("utf-8", "replace")))
        self.shown = self.shown.split(text, 1)[1]

    def finish(self):
        end = time.monotonic() + PATIENCE
        while self.read(0.1):
            if time.monotonic() > end:
                os.kill(self.pid, 9)
                sys.exit("bash does not end:\n%s" % self.shown.decode(
                    "utf-8", "replace"))
        os.waitpid(self.pid, 0)


def main(steps):
    term = Terminal()
    term.wait(b"prompt> ")
    for step in steps:
        what, _, value = step.partition(":")
        if what == "wait":
            term.wait(value.encode())
        elif what == "type":
            os.write(term.fd, value.encode() + b"\n")
            term.wait(value.encode())  # its echo
        elif what == "key":
            os.write(term.fd, bytes([ord(value) & 31]))
        else:
            time.sleep(float(value))
    os.write(term.fd, b"exit\n")
    term.finish()


main(sys.argv[1:])
