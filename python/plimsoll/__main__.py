"""The command ``plimsoll``, which ``pip`` installs: the same command line as that of a Rust build."""

import signal
import sys

from . import _plimsoll


def main() -> None:
    """Run the command line of this process and exit with its status."""
    # The command line handles Ctrl-C itself: the first ends it in order, the second at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_plimsoll.main(["plimsoll", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
