"""`plimsoll host apply --confirm-within` on a terminal: terminal.py CASE PLIMSOLL POLICY.toml NAME

Prints how it ended, and whether the policy is still applied. Nothing here waits for a time; what waits for an end waits
for as long as the test's runner lets it.
"""

import fcntl
import os
import pty
import signal
import sys
import termios

case, plimsoll, policy, name = sys.argv[1:]
within = "60s" if case in ("hang-up", "stop-key") else "300ms"
words = [plimsoll, "host", "apply", "--confirm-within", within, policy]


def heard(master, text):
    """Reads until the terminal has shown this, and returns what it has shown."""
    shown = b""
    while text not in shown:
        shown += os.read(master, 4096)
    return shown


def ended(process, options=0):
    _, status = os.waitpid(process, options)
    if os.WIFSTOPPED(status):
        os.kill(process, signal.SIGKILL)
        return "stopped"
    if os.WIFSIGNALED(status):
        return f"killed by {os.WTERMSIG(status)}"
    return f"status {os.WEXITSTATUS(status)}"


def report(how):
    left = [path for path in ("/run/plimsoll/host/", "/sys/fs/bpf/plimsoll/") if os.path.exists(path + name)]
    print(f"{how}, applied: {len(left) == 2}, left: {left if len(left) == 1 else []}")


def hang_up():
    process, master = pty.fork()
    if process == 0:
        os.execv(plimsoll, words)
    heard(master, b"to keep it")
    os.close(master)
    report(ended(process))


def stop_key():
    """Ctrl-Z, and Enter, which is then heard."""
    process, master = pty.fork()
    if process == 0:
        # A group of its own in the foreground: the leader of a session, which a terminal cannot stop, is its parent.
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execv(plimsoll, words)
        how = ended(job, os.WUNTRACED)
        os.write(1, f"ended: {how}.\r\n".encode())
        os._exit(0)
    heard(master, b"to keep it")
    os.write(master, b"\x1a")
    os.write(master, b"\n")
    shown = b""
    while not (b"ended: " in shown and shown.rstrip().endswith(b".")):
        shown += os.read(master, 4096)
    os.waitpid(process, 0)
    report(shown.rsplit(b"ended: ", 1)[1].decode().strip().rstrip("."))


def background():
    """As by `&` in a shell: another group has the foreground."""
    process, master = pty.fork()
    if process == 0:
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.execv(plimsoll, words)
        os.write(1, f"ended: {ended(job, os.WUNTRACED)}.\r\n".encode())
        os._exit(0)
    shown = b""
    while not (b"ended: " in shown and shown.rstrip().endswith(b".")):
        shown += os.read(master, 4096)
    os.waitpid(process, 0)
    report(shown.rsplit(b"ended: ", 1)[1].decode().strip().rstrip("."))


def type_ahead():
    """Enter before anything was asked, while somebody else holds the lock."""
    os.makedirs("/run/plimsoll/host", exist_ok=True)
    lock = os.open("/run/plimsoll/host/.lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process, master = pty.fork()
    if process == 0:
        os.close(lock)
        os.execv(plimsoll, words)
    heard(master, b"waiting: ")
    os.write(master, b"\n")
    heard(master, b"\n")
    fcntl.flock(lock, fcntl.LOCK_UN)
    heard(master, b"rolled back")
    report(ended(process))


def no_thread():
    """No thread can be started, as its stack would be larger than all addresses."""
    os.environ["RUST_MIN_STACK"] = str(1 << 46)
    process, master = pty.fork()
    if process == 0:
        os.execv(plimsoll, words)
    if b"(Enter is not read: " not in heard(master, b"rolled back"):
        print("it was not said")
    report(ended(process))


cases = [hang_up, stop_key, background, type_ahead, no_thread]
{made.__name__.replace("_", "-"): made for made in cases}[case]()
