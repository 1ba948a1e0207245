"""``python -m stampcache.cli`` is the command ``stampcache``."""

from stampcache.cli import main

main()
