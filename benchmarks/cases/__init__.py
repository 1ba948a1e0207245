"""Faults that released caches of language models had, as cases that a cache passes or fails.

A case is one function (`benchmarks.cases.groups`) that asks an application and looks at what it gets. A
rig (`benchmarks.cases.rigs`) puts one cache at one seam of such an application. So the same suite runs on
every seam of stampcache (``tests/cases``), and on other caches (``python -m benchmarks.cases``).
"""
