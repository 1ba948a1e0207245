"""``python -m stampcache.demo``: the framework is taken from ``FRAMEWORK``."""

import os
import sys

from stampcache.demo.run import run
from stampcache.errors import StampCacheError

if __name__ == "__main__":
    try:
        code = run(framework=os.environ.get("FRAMEWORK", "langchain"), ask="--ask" in sys.argv[1:])
    except StampCacheError as error:
        code = 2
        print(error, file=sys.stderr)
    sys.exit(code)
